//! Text from Python. A str may hold lone surrogates (`json.loads` makes them); no name in the log can.

use std::ops::Deref;

use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;

use super::errors::bad_argument;

#[derive(Default, PartialEq, Eq, Hash)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(text.into())
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Text).map_err(|error: PyErr| {
            if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) {
                bad_argument(&format!("{:?} cannot be encoded as UTF-8; remove its surrogates", *object))
            } else {
                error
            }
        })
    }
}
