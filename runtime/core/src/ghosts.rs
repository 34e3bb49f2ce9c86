//! Pages that were lost and whose slots are gone too: a bounded memory for "who took it?".

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::digest::Digest;
use crate::names::Reason;

#[derive(Clone, Debug, Default)]
pub struct Ghosts {
    capacity: usize,
    lost: HashMap<Digest, (u64, Reason), BuildHasherDefault<First>>,
    /// Oldest first; an entry whose row differs from the map's is stale.
    order: VecDeque<(Digest, u64)>,
}

/// A digest is a hash already: its first bytes are as good as any.
#[derive(Clone, Debug, Default)]
struct First(u64);

impl Hasher for First {
    fn write(&mut self, bytes: &[u8]) {
        let first = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.0 = self.0.rotate_left(5) ^ first;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Ghosts {
    pub fn new(capacity: usize) -> Self {
        Ghosts { capacity, ..Ghosts::default() }
    }

    pub fn remember(&mut self, digest: Digest, seq: u64, why: Reason) {
        if self.capacity == 0 {
            return;
        }
        self.lost.insert(digest, (seq, why));
        self.order.push_back((digest, seq));
        while self.lost.len() > self.capacity || self.order.len() > 2 * self.capacity {
            let Some((digest, seq)) = self.order.pop_front() else { break };
            if self.lost.get(&digest).is_some_and(|(s, _)| *s == seq) {
                self.lost.remove(&digest);
            }
        }
    }

    /// The row that took the page, and why.
    pub fn find(&self, digest: &Digest) -> Option<(u64, Reason)> {
        self.lost.get(digest).copied()
    }
}
