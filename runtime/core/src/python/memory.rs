//! Bytes between two buffers of pages, without the GIL, on several threads. It knows neither tiers nor state.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use super::errors::bad_argument;
use super::list::List;

/// Less than this is copied sooner than another thread has started.
const THREAD_BYTES: usize = 1 << 20;
/// What a thread takes at a time.
const PIECE_BYTES: usize = 1 << 18;

/// (first source page, first destination page, count)
type PageRun = (usize, usize, usize);

#[pyfunction]
pub fn copy_pages(
    py: Python<'_>,
    destination: PyBuffer<u8>,
    source: PyBuffer<u8>,
    page_bytes: usize,
    runs: List<PageRun>,
    threads: usize,
) -> PyResult<()> {
    let mut runs = runs.0;
    let (to, from) = (address(&destination)?, address(&source)?);
    if destination.readonly() {
        return Err(bad_argument("the destination cannot be written"));
    }
    if from < to + destination.len_bytes() && to < from + source.len_bytes() {
        return Err(bad_argument("source and destination overlap"));
    }
    let pages = |buffer: &PyBuffer<u8>| buffer.len_bytes().checked_div(page_bytes).unwrap_or(0);
    let (last_from, last_to) = (pages(&source), pages(&destination));
    let fits = |first: usize, count: usize, last| first.checked_add(count).is_some_and(|end| end <= last);
    if let Some(run) = runs.iter().find(|(a, b, n)| !fits(*a, *n, last_from) || !fits(*b, *n, last_to)) {
        return Err(bad_argument(&format!(
            "run {run:?} (source, destination, count) leaves {last_from} source or {last_to} destination pages"
        )));
    }
    // In the order of the destination: neighbours are easily compared, and written one after the other.
    runs.sort_unstable_by_key(|(_, b, _)| *b);
    if let Some(pair) = runs.windows(2).find(|pair| pair[0].1 + pair[0].2 > pair[1].1) {
        return Err(bad_argument(&format!("destination page {} is written twice", pair[1].1)));
    }
    let total: usize = runs.iter().map(|(.., n)| n).sum();
    let threads = threads.clamp(1, 1 + total * page_bytes / THREAD_BYTES);
    let pieces: Vec<PageRun> =
        runs.iter().flat_map(|run| cut(*run, 1 + PIECE_BYTES / page_bytes.max(1))).collect();
    let next = AtomicUsize::new(0);
    // Whoever is free takes the next piece, so that a thread that starts late delays nobody.
    let work = || {
        while let Some((a, b, n)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Safety: both runs lie in their buffers, which live until after this, do not overlap, and no two
            // runs have the same destination. Who writes to the source meanwhile gets a mixture, as with any copy.
            unsafe {
                let (from, to) = ((from + a * page_bytes) as *const u8, (to + b * page_bytes) as *mut u8);
                std::ptr::copy_nonoverlapping(from, to, n * page_bytes);
            }
        }
    };
    py.detach(|| {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // A helper that cannot be had leaves its work to us.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    });
    Ok(())
}

fn address(buffer: &PyBuffer<u8>) -> PyResult<usize> {
    if !buffer.is_c_contiguous() {
        return Err(bad_argument("the buffer is not C-contiguous"));
    }
    Ok(buffer.buf_ptr() as usize)
}

/// A run in pieces of at most `pages` pages.
fn cut((a, b, n): PageRun, pages: usize) -> impl Iterator<Item = PageRun> {
    (0..n).step_by(pages).map(move |at| (a + at, b + at, pages.min(n - at)))
}
