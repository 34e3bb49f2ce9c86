//! What the state is made of. Everything that `mix` names is in the hash; the rest is counted from it
//! and proven by `check`.

use std::sync::Arc;

use crate::arena::Record;
use crate::digest::{Digest, Mixer};
use crate::members::Members;
use crate::names::{Component, Kind, Reason, Tier};
use crate::runs::Runs;

/// "No such number" in records.
pub const NONE: u32 = u32::MAX;

/// A stretch of pages with one parent. Its last page may have children; no other may.
#[derive(Clone, Debug)]
pub struct Node {
    pub namespace: u32,
    pub parent: u32,
    /// Pages between the root and this node.
    pub start: u32,
    /// Receipts, leases by tier and session paths that end here or below.
    pub locks: u32,
    pub leases: [u32; 3],
    pub sessions: u32,
    pub last_use: i64,
    pub uses: u32,

    // Counted, not hashed: slots say it.
    pub slots: Runs,
    pub kids: u32,
    /// Copies by tier in this node, and children that have copies in or below them.
    pub copies: [u32; 3],
    pub kids_with: [u32; 3],
    /// Copies that are damaged and wait to be dropped.
    pub bad: u32,
}

impl Node {
    pub fn end(&self) -> u32 {
        self.start + self.slots.len()
    }

    pub fn is_held(&self, tier: Tier) -> bool {
        self.locks > 0 || self.leases[tier as usize] > 0
    }

    /// Nothing would miss it.
    pub fn is_unnamed(&self) -> bool {
        self.locks == 0 && self.leases == [0; 3] && self.sessions == 0 && self.kids == 0
    }

    pub fn has_below(&self, tier: Tier) -> bool {
        self.copies[tier as usize] > 0 || self.kids_with[tier as usize] > 0
    }
}

impl Record for Node {
    const TAG: u64 = 1;
    fn mix(&self, m: &mut Mixer) {
        m.word((self.namespace as u64) << 32 | self.parent as u64);
        m.word((self.start as u64) << 32 | self.locks as u64);
        m.word((self.leases[0] as u64) << 32 | self.leases[1] as u64);
        m.word((self.leases[2] as u64) << 32 | self.sessions as u64);
        m.word(self.last_use as u64);
        m.word(self.uses as u64);
    }
}

/// One logical page. Its bytes may be in several tiers at once, or in none (a hole that a path names).
#[derive(Clone, Debug)]
pub struct Slot {
    /// The node that has it, or NONE while only an operation does.
    pub node: u32,
    /// Index of the page in its sequence.
    pub position: u32,
    pub component: Component,
    /// Tier bits: settled copies, copies being written, copies known to be damaged, copies of a tier
    /// that somebody else owns.
    pub here: u8,
    pub coming: u8,
    pub bad: u8,
    pub observed: u8,
    /// Operations reading each tier's copy.
    pub readers: [u8; 3],
    /// Page in each tier's pool; NONE where there is neither a copy nor one coming.
    pub page: [u32; 3],
    /// The row that took the last copy away, and why.
    pub lost: u64,
    pub lost_why: Reason,
    pub digest: Digest,
}

impl Slot {
    pub fn new(node: u32, position: u32) -> Self {
        Slot {
            node,
            position,
            component: Component::Full,
            here: 0,
            coming: 0,
            bad: 0,
            observed: 0,
            readers: [0; 3],
            page: [NONE; 3],
            lost: 0,
            lost_why: Reason::None,
            digest: [0; 32],
        }
    }

    /// A settled copy that may be served or moved.
    pub fn usable(&self, tier: Tier) -> bool {
        (self.here & !self.bad) & tier.bit() != 0
    }

    pub fn has(&self, tier: Tier) -> bool {
        self.here & tier.bit() != 0
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
        self.here == 0 && self.coming == 0
    }
}

impl Record for Slot {
    const TAG: u64 = 2;
    fn mix(&self, m: &mut Mixer) {
        m.word((self.node as u64) << 32 | self.position as u64);
        let bits = [self.component as u8, self.here, self.coming, self.bad, self.observed];
        let r = self.readers;
        m.word(u64::from_le_bytes([bits[0], bits[1], bits[2], bits[3], bits[4], r[0], r[1], r[2]]));
        m.word((self.page[0] as u64) << 32 | self.page[1] as u64);
        m.word((self.page[2] as u64) << 32 | self.lost_why as u64);
        m.word(self.lost);
        m.digest(&self.digest);
    }
}

#[derive(Clone, Debug)]
pub struct Session {
    pub parent: Option<Arc<str>>,
    /// Where its last committed path ends; NONE before the first.
    pub node: u32,
    pub last_use: i64,
}

impl Record for Session {
    const TAG: u64 = 3;
    fn mix(&self, m: &mut Mixer) {
        m.text(self.parent.as_deref().unwrap_or(""));
        m.word(self.node as u64);
        m.word(self.last_use as u64);
    }
}

/// A lock: everything from the root to `node` stays on every tier until it is released.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub node: u32,
    pub session: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
}

impl Record for Receipt {
    const TAG: u64 = 4;
    fn mix(&self, m: &mut Mixer) {
        m.word(self.node as u64);
        m.text(self.session.as_deref().unwrap_or(""));
        m.text(self.request.as_deref().unwrap_or(""));
    }
}

#[derive(Clone, Debug)]
pub struct Lease {
    pub session: Arc<str>,
    pub owner: Arc<str>,
    pub tier: Tier,
    pub node: u32,
    pub expires: i64,
}

impl Record for Lease {
    const TAG: u64 = 5;
    fn mix(&self, m: &mut Mixer) {
        m.text(&self.session);
        m.text(&self.owner);
        m.word((self.tier as u64) << 32 | self.node as u64);
        m.word(self.expires as u64);
    }
}

/// From reserve to commit or abort. Names slots, never nodes, so that a split passes it by.
#[derive(Clone, Debug)]
pub struct Op {
    pub kind: Kind,
    pub tier_from: Option<Tier>,
    pub tier_to: Tier,
    pub session: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
    pub receipt: Option<u64>,
    /// Given up, but somebody may still be writing: its pages stay fenced.
    pub draining: bool,
    /// In the action's order.
    pub slots: Members,
}

impl Record for Op {
    const TAG: u64 = 6;
    fn mix(&self, m: &mut Mixer) {
        let from = self.tier_from.map_or(3, |t| t as u64);
        m.word((self.kind as u64) << 16 | from << 8 | (self.tier_to as u64) << 1 | self.draining as u64);
        m.text(self.session.as_deref().unwrap_or(""));
        m.text(self.request.as_deref().unwrap_or(""));
        m.word(self.receipt.unwrap_or(0));
        m.word(self.slots.len() as u64);
        m.word(self.slots.hash());
    }
}

#[derive(Clone, Debug)]
pub struct Namespace {
    pub name: Arc<str>,
    pub root: u32,
}

impl Record for Namespace {
    const TAG: u64 = 7;
    fn mix(&self, m: &mut Mixer) {
        m.text(&self.name);
        m.word(self.root as u64);
    }
}
