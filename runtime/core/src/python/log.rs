//! The log's drain and the replica, as Python sees them.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::answers::{PyPoolInfo, PySessionInfo};
use super::keyframe::keyframe_slice;
use crate::guard::guard;
use crate::log::Log;
use crate::refusal::{Answer, Refusal};
use crate::replica::Replica;

#[pyclass(frozen, get_all, module = "runtime._core", name = "Message")]
pub struct PyMessage {
    payload: Py<PyBytes>,
    first: u64,
    rows: usize,
    state_hash: String,
}

#[pyclass(frozen, module = "runtime._core", name = "Log")]
pub struct PyLog(pub Log);

#[pymethods]
impl PyLog {
    #[pyo3(signature = (max_rows = 4096))]
    fn drain(&self, py: Python<'_>, max_rows: usize) -> PyResult<Option<PyMessage>> {
        let message = py.detach(|| self.0.drain(max_rows)).map_err(Refusal::Internal)?;
        Ok(message.map(|m| PyMessage {
            payload: PyBytes::new(py, &m.payload).unbind(),
            first: m.first,
            rows: m.rows,
            state_hash: format!("{:032x}", m.state_hash),
        }))
    }

    fn pending(&self) -> usize {
        self.0.pending()
    }

    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}

#[pyclass(frozen, module = "runtime._core", name = "Replica")]
pub struct PyReplica(Mutex<Replica>);

impl PyReplica {
    fn with<R>(&self, look: impl FnOnce(&mut Replica) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyReplica {
    #[new]
    fn new() -> Self {
        PyReplica(Mutex::default())
    }

    fn fold(&self, py: Python<'_>, payload: &[u8]) -> PyResult<String> {
        let folded: Answer<u128> = py.detach(|| {
            guard(|| self.with(|r| r.fold(payload))).unwrap_or_else(|panic| Err(Refusal::Log(panic)))
        });
        Ok(format!("{:032x}", folded?))
    }

    #[staticmethod]
    fn from_keyframe(py: Python<'_>, parts: Vec<PyBackedBytes>) -> PyResult<Self> {
        let rebuilt: Answer<Replica> = py.detach(|| {
            guard(|| Replica::from_keyframe(&parts)).unwrap_or_else(|panic| Err(Refusal::Log(panic)))
        });
        Ok(PyReplica(Mutex::new(rebuilt?)))
    }

    fn keyframe_begin(&self) -> PyResult<u64> {
        Ok(self.with(Replica::keyframe_begin)?)
    }

    #[pyo3(signature = (max_records = 4096))]
    fn keyframe_slice<'py>(
        &self,
        py: Python<'py>,
        max_records: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        keyframe_slice(py, max_records, |most| py.detach(|| self.with(|r| r.keyframe_slice(most))))
    }

    #[getter]
    fn engine(&self) -> String {
        self.with(|r| r.engine.clone())
    }

    #[getter]
    fn epoch(&self) -> String {
        self.with(|r| r.epoch.clone())
    }

    fn seq(&self) -> u64 {
        self.with(|r| r.state.seq)
    }

    fn state_hash(&self) -> String {
        format!("{:032x}", self.with(|r| r.state.hash()))
    }

    fn pools(&self) -> Vec<PyPoolInfo> {
        self.with(|r| r.state.pool_reports()).into_iter().map(Into::into).collect()
    }

    fn sessions(&self) -> Vec<PySessionInfo> {
        self.with(|r| r.state.session_reports()).into_iter().map(Into::into).collect()
    }

    fn check(&self) -> PyResult<()> {
        Ok(self.with(|r| r.state.check()).map_err(Refusal::Log)?)
    }
}
