//! The log's buffer between the core, which only appends, and a publisher's thread, which drains.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::columns::{Envelope, encode};
use crate::guard::guard;
use crate::row::Row;

/// Rows, each with the state's hash after it.
type Rows = VecDeque<(Row, u128)>;

/// What the core has written and nobody has taken over yet.
#[derive(Default)]
struct Written {
    rows: Rows,
    /// Rows lost since the start.
    dropped: u64,
}

/// What a publisher has taken over, all there was at a time, so that the core never waits while a message is made.
#[derive(Default)]
struct Taken {
    rows: Rows,
    /// Rows lost before the first of these, and before all that messages have told.
    dropped: u64,
    told: u64,
}

/// Who publishes, and how much may wait.
#[derive(Clone, Debug)]
pub struct Origin {
    pub engine: String,
    pub epoch: String,
    pub wall_offset: i64,
    pub capacity: usize,
}

#[derive(Clone)]
pub struct Log {
    written: Arc<Mutex<Written>>,
    taken: Arc<Mutex<Taken>>,
    pub origin: Arc<Origin>,
}

pub struct Message {
    pub payload: Vec<u8>,
    pub first: u64,
    pub rows: usize,
    pub state_hash: u128,
}

impl Log {
    pub fn new(origin: Origin) -> Self {
        Log { written: Arc::default(), taken: Arc::default(), origin: Arc::new(origin) }
    }

    pub fn push(&self, row: Row, state_hash: u128) {
        let mut written = lock(&self.written);
        if written.rows.len() >= self.origin.capacity {
            written.rows.pop_front();
            written.dropped += 1;
        }
        written.rows.push_back((row, state_hash));
    }

    pub fn drain(&self, max_rows: usize) -> Result<Option<Message>, String> {
        let mut taken = lock(&self.taken);
        if taken.rows.is_empty() {
            let mut written = lock(&self.written);
            std::mem::swap(&mut written.rows, &mut taken.rows);
            taken.dropped = written.dropped;
        }
        let count = taken.rows.len().min(max_rows.max(1));
        let dropped = taken.dropped - taken.told;
        let (Some(first), Some((_, state_hash))) =
            (taken.rows.front().map(|row| row.0.seq), taken.rows.get(count.wrapping_sub(1)))
        else {
            return Ok(None);
        };
        let state_hash = *state_hash;
        let rows: Vec<Row> = taken.rows.drain(..count).map(|(row, _)| row).collect();
        taken.told = taken.dropped;
        drop(taken);
        let Origin { engine, epoch, wall_offset, .. } = (*self.origin).clone();
        let envelope = Envelope { engine, epoch, first, rows: rows.len(), dropped, state_hash };
        let payload = guard(|| encode(&rows, &envelope, wall_offset).map_err(|e| e.to_string()));
        let payload = payload.unwrap_or_else(Err).inspect_err(|_| {
            lock(&self.written).dropped += rows.len() as u64;
        })?;
        Ok(Some(Message { payload, first, rows: rows.len(), state_hash }))
    }

    pub fn pending(&self) -> usize {
        lock(&self.taken).rows.len() + lock(&self.written).rows.len()
    }

    pub fn dropped(&self) -> u64 {
        lock(&self.written).dropped
    }
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that runs under these locks can leave what they guard half changed.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
