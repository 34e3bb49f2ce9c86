//! A keyframe's parts, of a core or a replica.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors::bad_argument;

/// The next part, in which at least one record is looked at.
pub fn keyframe_slice<'py>(
    py: Python<'py>,
    max_records: usize,
    cut: impl FnOnce(usize) -> Option<Vec<u8>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if max_records == 0 {
        return Err(bad_argument("max_records is 0; a slice has at least 1"));
    }
    Ok(cut(max_records).map(|part| PyBytes::new(py, &part)))
}
