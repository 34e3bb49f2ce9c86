//! Lists from Python. PyO3 makes room for as many items as an object says that it has, and an object may say anything
//! (`range(2**40)`): what cannot be had would end the process.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;

use super::errors::bad_argument;

const MOST_ITEMS: usize = 1 << 26;

pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        List(Vec::new())
    }
}

impl<'py, T> FromPyObject<'_, 'py> for List<T>
where
    Vec<T>: FromPyObjectOwned<'py>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        check_length(&object)?;
        object.extract::<Vec<T>>().map(List).map_err(Into::into)
    }
}

pub fn check_length(object: &Bound<'_, PyAny>) -> PyResult<()> {
    match object.len() {
        Ok(length) if length > MOST_ITEMS => {
            Err(bad_argument(&format!("a list of {length} items is too long; at most {MOST_ITEMS}")))
        }
        _ => Ok(()),
    }
}
