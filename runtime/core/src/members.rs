//! The slots of an operation, in order, with a hash that costs what a change costs: an operation of thousands
//! of slots changes by a row for each of its runs.

use std::ops::Deref;

use crate::mixer::mix;
use crate::runs::Run;

#[derive(Clone, Debug, Default)]
pub struct Members {
    slots: Vec<u32>,
    /// Wrapping sum over the slots; their order follows from the rows that named them.
    hash: u64,
}

impl Members {
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The hash from nothing, for `check`.
    pub fn rehash(&self) -> u64 {
        self.slots.iter().fold(0, |sum, slot| sum.wrapping_add(term(*slot)))
    }

    pub fn join(&mut self, run: Run) {
        self.slots.extend(run.iter());
        run.iter().for_each(|slot| self.hash = self.hash.wrapping_add(term(slot)));
    }

    /// Take out a run that stands here in one piece. False when it does not.
    pub fn leave(&mut self, run: Run) -> bool {
        let from = self.slots.iter().position(|slot| *slot == run.first).unwrap_or(0);
        let to = from + run.count as usize;
        if !self.slots.get(from..to).is_some_and(|slots| slots.iter().copied().eq(run.iter())) {
            return false;
        }
        self.slots.drain(from..to);
        run.iter().for_each(|slot| self.hash = self.hash.wrapping_sub(term(slot)));
        true
    }
}

impl From<Run> for Members {
    fn from(run: Run) -> Self {
        let mut members = Members::default();
        members.join(run);
        members
    }
}

impl Deref for Members {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.slots
    }
}

fn term(slot: u32) -> u64 {
    mix(slot as u64, 0, 9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_leave_whole_or_not_at_all() {
        let mut members = Members::default();
        members.join(Run { first: 7, count: 3 });
        members.join(Run { first: 2, count: 2 });
        for missing in [Run { first: 8, count: 3 }, Run { first: 3, count: 2 }, Run { first: 5, count: 1 }] {
            assert!(!members.leave(missing));
        }
        assert!(members.leave(Run { first: 8, count: 2 }));
        assert_eq!(*members, [7, 2, 3]);
        assert_eq!(members.hash(), members.rehash());
        assert!(members.leave(Run { first: 2, count: 2 }) && members.leave(Run { first: 7, count: 1 }));
        assert_eq!((members.len(), members.hash()), (0, 0));
    }
}
