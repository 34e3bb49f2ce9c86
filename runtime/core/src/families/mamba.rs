//! Linear and recurrent state (Mamba, gated delta nets): one state says everything about the tokens before it and
//! cannot be rewound. A checkpoint at page p is the state after that page, and good for length p + 1 alone.
//!
//! A checkpoint in the tree is never written again: who resumes from it copies it into a state of its own, and
//! what that becomes is another checkpoint, in another slot.

use std::ops::Range;

use super::{Family, Presence, Shape};

#[derive(Debug)]
pub struct Mamba {
    /// Pages from one checkpoint to the next within a long computation; 0: only where it ends or branches.
    pub interval: u32,
}

impl Family for Mamba {
    fn shape(&self) -> Shape {
        Shape::Spot
    }

    fn reach(&self, there: &dyn Presence, limit: u32) -> u32 {
        there.last_before(limit).map_or(0, |page| page + 1)
    }

    fn needs(&self, length: u32) -> Range<u32> {
        length.saturating_sub(1)..length
    }

    fn plans(&self, computed: Range<u32>, branch: u32) -> Option<Vec<u32>> {
        let regular = |length: u32| self.interval > 0 && length.is_multiple_of(self.interval);
        let worth = |length: &u32| *length == computed.end || *length == branch || regular(*length);
        Some((computed.start + 1..=computed.end).filter(worth).map(|length| length - 1).collect())
    }
}
