//! The closed vocabularies, as Python says them.

use pyo3::prelude::*;

use super::errors::bad_argument;
use crate::names::{Reason, Tier};

pub fn parse<T>(
    what: &str,
    text: &str,
    all: &[T],
    parse: fn(&str) -> Option<T>,
    name: fn(&T) -> &str,
) -> PyResult<T> {
    let names = || all.iter().map(name).filter(|n| !n.is_empty()).collect::<Vec<_>>().join(", ");
    parse(text).ok_or_else(|| bad_argument(&format!("{what} is {text:?}; it must be one of {}", names())))
}

pub fn tier(text: &str) -> PyResult<Tier> {
    parse("tier", text, Tier::ALL, Tier::parse, |t| t.name())
}

pub fn optional_tier(text: &str) -> PyResult<Option<Tier>> {
    if text.is_empty() { Ok(None) } else { tier(text).map(Some) }
}

pub fn reason(text: &str) -> PyResult<Reason> {
    parse("reason", text, Reason::ALL, Reason::parse, |r| r.name())
}
