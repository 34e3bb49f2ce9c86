//! Token ids from whatever Python has them in, without a copy where that is possible.

use std::borrow::Cow;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;

use super::errors::bad_argument;

pub enum Tokens {
    Unsigned(PyBuffer<u32>),
    Signed(PyBuffer<i32>),
    Copied(Vec<u32>),
}

impl Tokens {
    /// Only while the GIL is held: it is what keeps other threads from writing to the buffer.
    pub fn as_slice(&self) -> &[u32] {
        match self {
            Tokens::Unsigned(buffer) => view(buffer),
            Tokens::Signed(buffer) => view(buffer),
            Tokens::Copied(tokens) => tokens,
        }
    }

    pub fn as_cow(&self) -> Cow<'_, [u32]> {
        Cow::Borrowed(self.as_slice())
    }
}

/// A buffer of 32-bit integers as unsigned ones.
fn view<T: Element>(buffer: &PyBuffer<T>) -> &[u32] {
    if buffer.item_count() == 0 {
        return &[];
    }
    // Safety: contiguous, aligned and of this length, as `PyBuffer::get` and `contiguous` have checked; i32 and
    // u32 have the same layout; alive as long as `buffer`; not written to while the GIL is held.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.item_count()) }
}

fn contiguous<T: Element>(object: &Bound<'_, PyAny>) -> PyResult<Option<PyBuffer<T>>> {
    let Ok(buffer) = PyBuffer::<T>::get(object) else { return Ok(None) };
    // PyO3 takes ">" for the native order, also where it is not (seen in 0.30).
    let foreign = if cfg!(target_endian = "big") { b"<".as_slice() } else { b">!" };
    if buffer.format().to_bytes().first().is_some_and(|order| foreign.contains(order)) {
        return Err(bad_argument("tokens have another machine's byte order; convert them to the native one"));
    }
    if buffer.dimensions() != 1 || !buffer.is_c_contiguous() {
        return Err(bad_argument(&format!(
            "tokens have shape {:?}; they must be one-dimensional and contiguous",
            buffer.shape()
        )));
    }
    Ok(Some(buffer))
}

impl<'a, 'py> FromPyObject<'a, 'py> for Tokens {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let object = &*object;
        if let Some(buffer) = contiguous::<u32>(object)? {
            return Ok(Tokens::Unsigned(buffer));
        }
        if let Some(buffer) = contiguous::<i32>(object)? {
            if let Some(negative) = view(&buffer).iter().find(|t| **t > i32::MAX as u32) {
                return Err(bad_argument(&format!("token {} is negative", *negative as i32)));
            }
            return Ok(Tokens::Signed(buffer));
        }
        let wide: Vec<i64> = match contiguous::<i64>(object)? {
            Some(buffer) => buffer.to_vec(object.py())?,
            None if PyBuffer::<u8>::get(object).is_ok() => {
                return Err(bad_argument("tokens are bytes; pass 32-bit integers, such as array('I')"));
            }
            None => object.extract().map_err(|_| {
                let kind = object.get_type();
                bad_argument(&format!(
                    "tokens are {kind}; pass a buffer of 32-bit integers or a list of ints"
                ))
            })?,
        };
        let narrow = |token: i64| u32::try_from(token);
        match wide.iter().copied().map(narrow).collect() {
            Ok(tokens) => Ok(Tokens::Copied(tokens)),
            Err(_) => {
                let bad = wide.iter().find(|t| narrow(**t).is_err()).copied().unwrap_or(0);
                Err(bad_argument(&format!("token {bad} does not fit into 32 bits, unsigned")))
            }
        }
    }
}
