//! Bytes between two buffers of pages, without the GIL, on several threads. It knows neither tiers nor state.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use super::errors::bad_argument;

/// Less than this is copied sooner than another thread has started.
const THREAD_BYTES: usize = 1 << 20;

/// (first source page, first destination page, count)
type PageRun = (usize, usize, usize);

#[pyfunction]
pub fn copy_pages(
    py: Python<'_>,
    destination: PyBuffer<u8>,
    source: PyBuffer<u8>,
    page_bytes: usize,
    runs: Vec<PageRun>,
    threads: usize,
) -> PyResult<()> {
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
    let mut targets: Vec<(usize, usize)> = runs.iter().map(|(_, b, n)| (*b, *n)).collect();
    targets.sort_unstable();
    if let Some(pair) = targets.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
        return Err(bad_argument(&format!("destination page {} is written twice", pair[1].0)));
    }
    let total: usize = runs.iter().map(|(.., n)| n).sum();
    let threads = threads.clamp(1, 1 + total * page_bytes / THREAD_BYTES);
    let copy = |runs: &[PageRun]| {
        for (a, b, n) in runs {
            // Safety: both runs lie in their buffers, which live until after this, do not overlap, and no two
            // runs have the same destination. Who writes to the source meanwhile gets a mixture, as with any copy.
            unsafe {
                let (from, to) = ((from + a * page_bytes) as *const u8, (to + b * page_bytes) as *mut u8);
                std::ptr::copy_nonoverlapping(from, to, n * page_bytes);
            }
        }
    };
    py.detach(|| {
        let shares = share(&runs, total.div_ceil(threads));
        std::thread::scope(|scope| {
            for share in shares.iter().skip(1) {
                let helper = std::thread::Builder::new().spawn_scoped(scope, || copy(share));
                if helper.is_err() {
                    copy(share);
                }
            }
            shares.first().into_iter().for_each(|share| copy(share));
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

/// Cut runs into shares of `pages` pages.
fn share(runs: &[PageRun], pages: usize) -> Vec<Vec<PageRun>> {
    let mut shares: Vec<Vec<PageRun>> = Vec::new();
    let mut room = 0;
    for (mut a, mut b, mut n) in runs.iter().copied() {
        while n > 0 {
            if room == 0 {
                shares.push(Vec::new());
                room = pages;
            }
            let count = n.min(room);
            shares.last_mut().into_iter().for_each(|share| share.push((a, b, count)));
            (a, b, n, room) = (a + count, b + count, n - count, room - count);
        }
    }
    shares
}
