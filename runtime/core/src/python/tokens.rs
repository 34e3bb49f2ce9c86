//! Keys from whatever Python has them in, without a copy where that is possible.

use std::borrow::Cow;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;

use super::errors::bad_argument;
use super::list::check_length;
use crate::names::KeyKind;

/// What a caller passes as `tokens`, as the bytes of a key: token ids, pairs of them, or digests.
pub enum Tokens {
    Unsigned(PyBuffer<u32>),
    Signed(PyBuffer<i32>),
    Bytes(PyBuffer<u8>),
    Copied(Vec<u8>),
}

impl Tokens {
    pub fn read(object: &Bound<'_, PyAny>, kind: KeyKind) -> PyResult<Self> {
        match kind {
            KeyKind::Tokens => match integers(object, flat)? {
                Some(tokens) => Ok(tokens),
                None => copied(&list(
                    object,
                    "tokens",
                    "a buffer of 32-bit integers or a list of ints below 2**32",
                )?),
            },
            KeyKind::Pairs => match integers(object, pairs)? {
                Some(tokens) => Ok(tokens),
                None => {
                    let expected = "a buffer of 32-bit integers, two a pair, or a list of pairs of ints";
                    copied(list::<[i64; 2]>(object, "pairs", expected)?.as_flattened())
                }
            },
            KeyKind::Digests => match contiguous::<u8>(object, digests)? {
                Some(buffer) => Ok(Tokens::Bytes(buffer)),
                None => {
                    let list = list::<[u8; 32]>(object, "digests", "a buffer or a list of 32-byte digests")?;
                    Ok(Tokens::Copied(list.into_flattened()))
                }
            },
        }
    }

    /// Only while the GIL is held: it is what keeps other threads from writing to the buffer.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Tokens::Unsigned(buffer) => view(buffer),
            Tokens::Signed(buffer) => view(buffer),
            Tokens::Bytes(buffer) => view(buffer),
            Tokens::Copied(bytes) => bytes,
        }
    }

    /// The same; a copy where something else may run in between and write to it.
    pub fn view(&self, interrupted: bool) -> Cow<'_, [u8]> {
        if interrupted { self.as_bytes().to_vec().into() } else { self.as_bytes().into() }
    }
}

/// A buffer of integers as it lies in memory.
fn view<T: Element>(buffer: &PyBuffer<T>) -> &[u8] {
    if buffer.item_count() == 0 {
        return &[];
    }
    // Safety: contiguous and of this length, as `PyBuffer::get` and `contiguous` have checked; integers have no
    // padding and any alignment suits bytes; alive as long as `buffer`; not written to while the GIL is held.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
}

/// Says what is wrong with a buffer's shape, if anything is.
type Fault = fn(&[usize]) -> Option<String>;

fn flat(shape: &[usize]) -> Option<String> {
    (shape.len() != 1).then(|| format!("tokens have shape {shape:?}; they must be one-dimensional"))
}

fn pairs(shape: &[usize]) -> Option<String> {
    let whole = matches!(shape, [_, 2]) || matches!(shape, [count] if count % 2 == 0);
    (!whole).then(|| format!("pairs have shape {shape:?}; it must be [n, 2] or [2 * n]"))
}

fn digests(shape: &[usize]) -> Option<String> {
    let whole = matches!(shape, [_, 32]) || matches!(shape, [count] if count % 32 == 0);
    (!whole).then(|| format!("digests have shape {shape:?} in bytes; it must be [n, 32] or [32 * n]"))
}

fn contiguous<T: Element>(object: &Bound<'_, PyAny>, fault: Fault) -> PyResult<Option<PyBuffer<T>>> {
    let Ok(buffer) = PyBuffer::<T>::get(object) else { return Ok(None) };
    // PyO3 takes ">" for the native order, also where it is not (seen in 0.30).
    let foreign = buffer.format().to_bytes().first().is_some_and(|order| b">!".contains(order));
    if foreign && size_of::<T>() > 1 {
        return Err(bad_argument("tokens have another machine's byte order; convert them to the native one"));
    }
    if let Some(fault) = fault(buffer.shape()) {
        return Err(bad_argument(&fault));
    }
    if !buffer.is_c_contiguous() {
        return Err(bad_argument("tokens are not contiguous; copy them into a contiguous array"));
    }
    Ok(Some(buffer))
}

/// The tokens in a buffer; None when `object` is none.
fn integers(object: &Bound<'_, PyAny>, fault: Fault) -> PyResult<Option<Tokens>> {
    if let Some(buffer) = contiguous::<u32>(object, fault)? {
        return Ok(Some(Tokens::Unsigned(buffer)));
    }
    if let Some(buffer) = contiguous::<i32>(object, fault)? {
        let tokens = view(&buffer).as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes));
        if let Some(negative) = tokens.clone().find(|token| *token < 0) {
            return Err(bad_argument(&format!("token {negative} is negative")));
        }
        return Ok(Some(Tokens::Signed(buffer)));
    }
    if let Some(buffer) = contiguous::<i64>(object, fault)? {
        return copied(&buffer.to_vec(object.py())?).map(Some);
    }
    if PyBuffer::<u8>::get(object).is_ok() {
        return Err(bad_argument("tokens are bytes; pass 32-bit integers, such as array('I')"));
    }
    Ok(None)
}

fn copied(tokens: &[i64]) -> PyResult<Tokens> {
    let mut bytes = Vec::with_capacity(tokens.len() * 4);
    for token in tokens {
        let Ok(token) = u32::try_from(*token) else {
            return Err(bad_argument(&format!("token {token} does not fit into 32 bits, unsigned")));
        };
        bytes.extend(token.to_ne_bytes());
    }
    Ok(Tokens::Copied(bytes))
}

/// Where a fault in a list is looked for: whoever passes something endless waits no longer.
const LOOKED_THROUGH: usize = 1 << 20;

fn list<'py, T>(object: &Bound<'py, PyAny>, what: &str, expected: &str) -> PyResult<Vec<T>>
where
    Vec<T>: for<'a> FromPyObject<'a, 'py>,
    T: for<'a> FromPyObject<'a, 'py>,
{
    check_length(object)?;
    object.extract().map_err(|_| {
        let items = object.try_iter().into_iter().flatten().flatten().take(LOOKED_THROUGH);
        let unfit = items.enumerate().find(|(_, item)| item.extract::<T>().is_err());
        let found = match unfit {
            Some((i, item)) => {
                // It may be long, of the wrong length, or nothing that can be shown.
                let length = item.len().map_or(String::new(), |length| format!(" (length {length})"));
                let shown = item.repr().map_or_else(|_| "?".to_string(), |text| text.to_string());
                format!("item {i} of {what} is {shown:.60}{length}")
            }
            None => format!("{what} are {}", object.get_type()),
        };
        bad_argument(&format!("{found}; pass {expected}"))
    })
}
