//! `runtime._core.Component`: one family of state beside `full`.

use pyo3::prelude::*;

use super::errors::bad_argument;
use super::text::Text;
use crate::config::ComponentConfig;
use crate::names::FamilyName;

#[pyclass(frozen, from_py_object, module = "runtime._core", name = "Component")]
#[derive(Clone)]
pub struct PyComponent(pub ComponentConfig);

#[pymethods]
impl PyComponent {
    #[new]
    #[pyo3(signature = (name, family, *, follows = Text::default(), window = 0, interval = 0, ratio = 0, device = 0,
        host = 0, storage = 0, page_bytes = 0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        name: Text<'_>,
        family: Text<'_>,
        follows: Text<'_>,
        window: u32,
        interval: u32,
        ratio: u32,
        device: u32,
        host: u32,
        storage: u32,
        page_bytes: u64,
    ) -> PyResult<Self> {
        let numbers = [
            ("window", window, FamilyName::Swa),
            ("interval", interval, FamilyName::Mamba),
            ("ratio", ratio, FamilyName::Spans),
        ];
        let families = FamilyName::ALL.iter().filter(|f| **f != FamilyName::Full).map(|f| f.name());
        let known = FamilyName::parse(&family).filter(|f| *f != FamilyName::Full);
        let Some(kind) = known else {
            let families = families.collect::<Vec<_>>().join(", ");
            return Err(bad_argument(&format!("family is {:?}; it must be one of {families}", &*family)));
        };
        if let Some((what, value, whose)) =
            numbers.iter().find(|(_, value, whose)| *value > 0 && *whose != kind)
        {
            return Err(bad_argument(&format!(
                "{what} is {value}, which says nothing of a {}; it is for {}",
                kind.name(),
                whose.name()
            )));
        }
        if (kind == FamilyName::Sidecar) == follows.is_empty() {
            return Err(bad_argument(&format!(
                "follows is {:?}; a sidecar names what it follows, nothing else does",
                follows.into_string()
            )));
        }
        let number = numbers.iter().map(|(_, value, _)| *value).max().unwrap_or(0);
        let pages = [device, host, storage];
        Ok(PyComponent(ComponentConfig {
            name: name.into_string(),
            family: kind,
            follows: follows.into_string(),
            number,
            pages,
            page_bytes,
        }))
    }

    fn __repr__(&self) -> String {
        let ComponentConfig { name, family, number, pages, .. } = &self.0;
        format!("Component({name:?}, {:?}, number={number}, pages={pages:?})", family.name())
    }
}
