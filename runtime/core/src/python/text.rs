//! Text from Python. A str may hold lone surrogates (`json.loads` makes them); no name in the log can.

use std::borrow::Cow;
use std::ops::Deref;

use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;

use super::errors::bad_argument;

/// As it lies in Python's memory.
#[derive(Default)]
pub struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text(text.into())
    }
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> FromPyObject<'a, '_> for Text<'a> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, '_, PyAny>) -> PyResult<Self> {
        object.extract().map(|text: &str| Text(text.into())).map_err(|error: PyErr| {
            if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) {
                bad_argument(&format!("{:?} cannot be encoded as UTF-8; remove its surrogates", *object))
            } else {
                error
            }
        })
    }
}

/// The same, kept.
#[derive(PartialEq, Eq, Hash)]
pub struct OwnText(pub String);

impl FromPyObject<'_, '_> for OwnText {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        object.extract().map(|text: Text| OwnText(text.into_string()))
    }
}
