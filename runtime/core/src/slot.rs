//! One logical page. Its hash is a sum of small terms: what it is, and each of its copies.

use crate::digest::Digest;
use crate::mixer::mix;
use crate::names::{Reason, Tier};
use crate::records::NONE;

/// One logical page of one component. Its bytes may be in several tiers at once, or in none (a hole that a path
/// names).
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Of the page and all before it; zeros where digests are deferred.
    pub digest: Digest,
    /// The node that has it, or NONE while only an operation does. Not hashed: nodes say it.
    pub node: u32,
    /// Index of the page in its sequence. Not hashed once it is in a node.
    pub position: u32,
    /// Page in each tier's pool, where there is a copy or one coming. Of a lost one, the row that took the last copy.
    page: [u32; 3],
    /// Number of its component.
    pub component: u8,
    /// Tier bits: settled copies, copies being written, copies known to be damaged.
    pub here: u8,
    pub coming: u8,
    pub bad: u8,
    /// Operations reading each tier's copy.
    pub readers: [u8; 3],
    lost_why: Reason,
}

impl Slot {
    pub fn new(component: u8, node: u32, position: u32) -> Self {
        Slot {
            digest: [0; 32],
            node,
            position,
            page: [NONE; 3],
            component,
            here: 0,
            coming: 0,
            bad: 0,
            readers: [0; 3],
            lost_why: Reason::None,
        }
    }

    /// A settled copy that may be served or moved.
    pub fn usable(&self, tier: Tier) -> bool {
        self.usable_in(tier.bit())
    }

    /// One in any of these tiers (bits).
    pub fn usable_in(&self, tiers: u8) -> bool {
        self.here & !self.bad & tiers != 0
    }

    pub fn has(&self, tier: Tier) -> bool {
        self.here & tier.bit() != 0
    }

    /// There is a copy, and nobody reads it; what somebody else does with his device, he does whether we read or not.
    pub fn may_leave(&self, tier: Tier, observed: bool) -> bool {
        self.has(tier) && (observed || self.readers[tier as usize] == 0)
    }

    /// A copy in this tier, and none in another or on its way.
    pub fn is_only_on(&self, tier: Tier) -> bool {
        self.here == tier.bit() && self.coming == 0
    }

    pub fn awaits(&self, tier: Tier) -> bool {
        self.coming & tier.bit() != 0
    }

    /// Neither a copy there, not even a damaged one, nor one on its way.
    pub fn lacks(&self, tier: Tier) -> bool {
        (self.here | self.coming) & tier.bit() == 0
    }

    pub fn best(&self) -> Option<Tier> {
        Tier::ALL.iter().copied().find(|t| self.usable(*t))
    }

    pub fn is_gone(&self) -> bool {
        self.here | self.coming == 0
    }

    pub fn is_read(&self) -> bool {
        self.readers != [0; 3]
    }

    /// Its page in a tier's pool; NONE where there is neither a copy nor one coming.
    pub fn page(&self, tier: Tier) -> u32 {
        if self.lacks(tier) { NONE } else { self.page[tier as usize] }
    }

    /// A copy is on its way into this page. What took the last one is forgotten.
    pub fn await_copy(&mut self, tier: Tier, page: u32) {
        self.coming |= tier.bit();
        self.lost_why = Reason::None;
        self.page[tier as usize] = page;
    }

    /// The copy on its way is there.
    pub fn settle_copy(&mut self, tier: Tier) {
        self.coming &= !tier.bit();
        self.here |= tier.bit();
    }

    /// Neither there nor on its way any more. Where it was the last, `row` took it.
    pub fn drop_copy(&mut self, tier: Tier, row: u64, why: Reason) {
        self.here &= !tier.bit();
        self.coming &= !tier.bit();
        self.bad &= !tier.bit();
        if self.is_gone() {
            (self.page[0], self.page[1], self.lost_why) = (row as u32, (row >> 32) as u32, why);
        }
    }

    /// The row that took the last copy away, and why.
    pub fn lost(&self) -> Option<(u64, Reason)> {
        let row = (self.page[1] as u64) << 32 | self.page[0] as u64;
        (self.is_gone() && self.lost_why != Reason::None).then_some((row, self.lost_why))
    }

    /// What it is. A page that is only reserved is nothing yet but its copy on the way.
    #[inline]
    pub(crate) fn own_term(&self, whose: u64) -> u128 {
        if self.node == NONE && self.position == NONE {
            return 0;
        }
        let (words, _) = self.digest.as_chunks::<8>();
        let [a, b] = [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])];
        let place = if self.node == NONE { self.position as u64 + 1 } else { 0 };
        mix(a ^ self.component as u64, b ^ place << 8, whose)
    }

    /// A copy, there or on its way.
    #[inline(always)]
    pub(crate) fn copy_term(&self, whose: u64, tier: Tier) -> Option<u128> {
        if self.lacks(tier) {
            return None;
        }
        let t = tier as usize;
        let bit = |set: u8| (set >> t & 1) as u64;
        let flags =
            bit(self.here) | bit(self.coming) << 1 | bit(self.bad) << 2 | (self.readers[t] as u64) << 8;
        Some(mix((self.page[t] as u64) << 32 | flags, t as u64 + 2, whose))
    }
}
