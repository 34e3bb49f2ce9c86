//! The log's buffer between the core, which only appends, and a publisher's thread, which drains.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::columns::{Envelope, encode};
use crate::row::Row;

#[derive(Default)]
struct Buffer {
    rows: VecDeque<(Row, u128)>,
    /// Rows lost since the start, and of them those that a message has told already.
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
    buffer: Arc<Mutex<Buffer>>,
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
        Log { buffer: Arc::default(), origin: Arc::new(origin) }
    }

    /// Take over what a command wrote, all at once.
    pub fn extend(&self, rows: &mut Vec<(Row, u128)>) {
        let mut buffer = self.lock();
        buffer.rows.extend(rows.drain(..));
        let excess = buffer.rows.len().saturating_sub(self.origin.capacity);
        buffer.rows.drain(..excess);
        buffer.dropped += excess as u64;
    }

    pub fn drain(&self, max_rows: usize) -> Result<Option<Message>, String> {
        let (rows, dropped): (Vec<_>, u64) = {
            let mut buffer = self.lock();
            let count = buffer.rows.len().min(max_rows.max(1));
            let dropped = buffer.dropped - buffer.told;
            buffer.told = buffer.dropped;
            (buffer.rows.drain(..count).collect(), dropped)
        };
        let (Some(first), Some(state_hash)) = (rows.first().map(|r| r.0.seq), rows.last().map(|r| r.1))
        else {
            return Ok(None);
        };
        let rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
        let Origin { engine, epoch, wall_offset, .. } = (*self.origin).clone();
        let envelope = Envelope { engine, epoch, first, rows: rows.len(), dropped, state_hash };
        let payload = encode(&rows, &envelope, wall_offset).map_err(|e| e.to_string())?;
        Ok(Some(Message { payload, first, rows: rows.len(), state_hash }))
    }

    pub fn pending(&self) -> usize {
        self.lock().rows.len()
    }

    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        // Nothing that runs under this lock can leave the buffer half changed.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
