//! The boundary to Python: buffers in, runs out, typed errors, no panic across.

mod answers;
mod calls;
mod component;
mod core;
mod errors;
mod keyframe;
mod list;
mod log;
mod memory;
mod policy;
mod text;
mod tokens;
mod words;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::SCHEMA;
use crate::digest::{page_digests as digest_pages, root_digest};
use crate::journal::pieces_of;
use crate::names::{KeyKind, Kind, Phase, Reason};
use list::List;
use text::Text;
use tokens::Tokens;

#[pyfunction]
#[pyo3(signature = (tokens, page_size, namespace, secret = List::default()))]
fn page_digests<'py>(
    py: Python<'py>,
    tokens: &Bound<'_, PyAny>,
    page_size: usize,
    namespace: Text<'_>,
    secret: List<u8>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    if page_size == 0 {
        return Err(errors::bad_argument("page_size is 0; it must be at least 1 token"));
    }
    let tokens = Tokens::read(tokens, KeyKind::Tokens)?;
    let width = page_size.saturating_mul(4);
    let mut digests = Vec::new();
    let root = root_digest(&namespace, &secret.0);
    digest_pages(KeyKind::Tokens, &root, tokens.as_bytes(), width, &mut digests);
    Ok(digests.iter().map(|digest| PyBytes::new(py, digest)).collect())
}

#[pyfunction]
fn content_hash(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u64> {
    let data = PyUntypedBuffer::get(data)?;
    if !data.is_c_contiguous() {
        return Err(errors::bad_argument("the buffer is not C-contiguous"));
    }
    let (address, len) = (data.buf_ptr() as usize, data.len_bytes());
    // Safety: `data` keeps the buffer alive and in place until it is dropped, after the hash. Whoever writes
    // to it meanwhile gets a hash of neither version, as with any checksum.
    Ok(py.detach(move || {
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
        xxhash_rust::xxh3::xxh3_64(if len == 0 { &[] } else { bytes })
    }))
}

#[pyfunction]
fn whole_pieces(journal: &[u8]) -> PyResult<(usize, usize)> {
    let found = pieces_of(journal)?;
    Ok((found.whole.len(), journal.len() - found.cut))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::guard::quiet_panics();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("SCHEMA", SCHEMA.to_vec())?;
    module.add("KINDS", Kind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>())?;
    module.add("PHASES", Phase::ALL.iter().map(|p| p.name()).collect::<Vec<_>>())?;
    module.add("REASONS", Reason::ALL.iter().map(|r| r.name()).collect::<Vec<_>>())?;
    module.add_function(wrap_pyfunction!(page_digests, module)?)?;
    module.add_function(wrap_pyfunction!(content_hash, module)?)?;
    module.add_function(wrap_pyfunction!(whole_pieces, module)?)?;
    module.add_function(wrap_pyfunction!(memory::copy_pages, module)?)?;
    module.add("POLICIES", crate::policy::NAMES.to_vec())?;
    module.add_class::<component::PyComponent>()?;
    module.add_class::<policy::PyFacts>()?;
    module.add_class::<core::PyCore>()?;
    module.add_class::<log::PyLog>()?;
    module.add_class::<log::PyMessage>()?;
    module.add_class::<log::PyReplica>()?;
    answers::add_to(module)?;
    errors::add_to(module)
}
