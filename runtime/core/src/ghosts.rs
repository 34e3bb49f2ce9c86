//! Pages that were lost and whose slots are gone too: a bounded memory for "who took it?".

use crate::digest::Digest;
use crate::names::Reason;

/// A ring of the last pages lost. Losing is frequent and asking is rare: what is kept of each is written in one go,
/// and the question looks through the ring, newest first.
#[derive(Clone, Debug, Default)]
pub struct Ghosts {
    capacity: usize,
    /// First half of each page's digest, and what took it.
    pages: Vec<u64>,
    taken_by: Vec<(u64, Reason)>,
    /// Where the next one goes, once the ring is full.
    next: usize,
}

impl Ghosts {
    pub fn new(capacity: usize) -> Self {
        Ghosts { capacity, ..Ghosts::default() }
    }

    #[inline]
    pub fn remember(&mut self, digest: &Digest, row: u64, why: Reason) {
        if self.pages.len() < self.capacity {
            self.pages.push(short(digest));
            self.taken_by.push((row, why));
        } else if self.capacity > 0 {
            self.pages[self.next] = short(digest);
            self.taken_by[self.next] = (row, why);
            self.next = (self.next + 1) % self.capacity;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The row that took the page last, and why.
    pub fn find(&self, digest: &Digest) -> Option<(u64, Reason)> {
        let (newer, older) = self.pages.split_at(self.next);
        let page = short(digest);
        let newest = newer.iter().rposition(|p| *p == page);
        let found = newest.or_else(|| older.iter().rposition(|p| *p == page).map(|at| self.next + at));
        found.map(|at| self.taken_by[at])
    }
}

fn short(digest: &Digest) -> u64 {
    u64::from_le_bytes(*digest.first_chunk().unwrap_or(&[0; 8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_loss_is_told_and_the_oldest_is_forgotten() {
        let mut ghosts = Ghosts::new(3);
        for (row, page) in [(1, 7), (2, 8), (3, 7), (4, 9)] {
            ghosts.remember(&[page; 32], row, Reason::Pressure);
        }
        let rows = [7, 8, 9, 1].map(|page| ghosts.find(&[page; 32]).map(|(row, _)| row));
        assert_eq!(rows, [Some(3), Some(2), Some(4), None]);
        ghosts.remember(&[8; 32], 5, Reason::Close);
        assert_eq!(ghosts.find(&[8; 32]), Some((5, Reason::Close)));
        assert_eq!(Ghosts::new(0).find(&[8; 32]), None);
    }
}
