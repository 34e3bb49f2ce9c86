//! One tree of exceptions; see runtime/_core.pyi for what each means.

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::refusal::Refusal;

struct Errors {
    core: Py<PyType>,
    bad_argument: Py<PyType>,
    session: Py<PyType>,
    operation: Py<PyType>,
    lease: Py<PyType>,
    receipt: Py<PyType>,
    log: Py<PyType>,
}

static ERRORS: PyOnceLock<Errors> = PyOnceLock::new();

fn errors(py: Python<'_>) -> PyResult<&Errors> {
    ERRORS.get_or_try_init(py, || {
        let make = |name: &str, bases: &[&Bound<'_, PyType>]| -> PyResult<Py<PyType>> {
            let attributes = PyDict::new(py);
            attributes.set_item("__module__", "runtime._core")?;
            let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, attributes))?;
            Ok(class.cast_into::<PyType>()?.unbind())
        };
        let core = make("CoreError", &[&py.get_type::<PyException>()])?;
        let root = core.bind(py);
        Ok(Errors {
            bad_argument: make("BadArgument", &[root, &py.get_type::<PyValueError>()])?,
            session: make("UnknownSession", &[root])?,
            operation: make("UnknownOperation", &[root])?,
            lease: make("UnknownLease", &[root])?,
            receipt: make("UnknownReceipt", &[root])?,
            log: make("LogError", &[root])?,
            core: core.clone_ref(py),
        })
    })
}

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let e = errors(module.py())?;
    for class in [&e.core, &e.bad_argument, &e.session, &e.operation, &e.lease, &e.receipt, &e.log] {
        let class = class.bind(module.py());
        module.add(class.name()?, class)?;
    }
    Ok(())
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> PyErr {
        Python::attach(|py| {
            let e = match errors(py) {
                Ok(e) => e,
                Err(err) => return err,
            };
            let (class, text) = match refusal {
                Refusal::BadArgument(text) => (&e.bad_argument, text),
                Refusal::UnknownSession(text) => (&e.session, text),
                Refusal::UnknownOperation(text) => (&e.operation, text),
                Refusal::UnknownLease(text) => (&e.lease, text),
                Refusal::UnknownReceipt(text) => (&e.receipt, text),
                Refusal::Log(text) => (&e.log, text),
                Refusal::Internal(text) => (&e.core, format!("internal fault, please report: {text}")),
            };
            PyErr::from_type(class.bind(py).clone(), text)
        })
    }
}

pub fn bad_argument(text: &str) -> PyErr {
    Refusal::BadArgument(text.to_string()).into()
}
