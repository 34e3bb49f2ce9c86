//! What the state is made of, beside its slots. Everything that `mix` and `use_term` name is in the hash; the rest is counted
//! from it and proven by `check`.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::arena::Record;
use crate::families::{Family, Shape};
use crate::members::Members;
use crate::mixer::{Mixer, mix, mix3};
use crate::names::{FamilyName, Kind, Name, Reason, Tier};
use crate::strip::Strip;

/// "No such number" in records.
pub const NONE: u32 = u32::MAX;
/// The component that every path has.
pub const FULL: usize = 0;

/// A family of state that pages carry. The first is always `full`.
#[derive(Clone, Debug)]
pub struct Component {
    pub name: Name,
    pub kind: FamilyName,
    pub family: Arc<dyn Family>,
    /// Component that it goes with, for a sidecar.
    pub follows: Option<usize>,
    /// The family's number: see `families::make`.
    pub number: u32,
    pub page_bytes: u64,
}

impl Component {
    pub fn shape(&self) -> Shape {
        self.family.shape()
    }
}

/// One component's pages in one node.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub slots: Strip,
    // Counted from the slots.
    /// Copies by tier here, and children that have copies in or below them.
    pub copies: [u32; 3],
    pub kids_with: [u32; 3],
    /// Copies that are damaged and wait to be dropped.
    pub bad: u32,
}

impl Part {
    pub fn has_below(&self, tier: Tier) -> bool {
        self.copies[tier as usize] > 0 || self.kids_with[tier as usize] > 0
    }
}

/// A stretch of pages with one parent. Its last page may have children; no other may.
#[derive(Clone, Debug)]
pub struct Node {
    pub namespace: u32,
    pub parent: u32,
    /// Pages between the root and this node, and in it.
    pub start: u32,
    pub pages: u32,
    /// Receipts, leases by tier, retains and session paths that end here or below.
    pub locks: u32,
    pub leases: [u32; 3],
    pub retains: u32,
    pub sessions: u32,
    pub created: i64,
    pub last_use: i64,
    pub uses: u32,
    /// The last session that had this on its path went another way, and nobody has used it since.
    pub superseded: bool,
    /// Of its last user.
    pub priority: i32,
    /// When somebody whose path this is on is expected back, ns; 0 when nobody said, or when it has been used since.
    pub returns_at: i64,
    pub parts: SmallVec<[Part; 1]>,
    // Counted.
    pub kids: u32,
}

impl Node {
    pub fn new(namespace: u32, parent: u32, start: u32, clock: i64, components: usize) -> Self {
        Node {
            namespace,
            parent,
            start,
            pages: 0,
            locks: 0,
            leases: [0; 3],
            retains: 0,
            sessions: 0,
            created: clock,
            last_use: clock,
            uses: 0,
            superseded: false,
            priority: 0,
            returns_at: 0,
            parts: std::iter::repeat_with(Part::default).take(components).collect(),
            kids: 0,
        }
    }

    pub fn end(&self) -> u32 {
        self.start + self.pages
    }

    /// `full`'s slots, one for every page.
    pub fn slots(&self) -> &Strip {
        &self.parts[FULL].slots
    }

    pub fn is_held(&self, tier: Tier) -> bool {
        self.locks > 0 || self.leases[tier as usize] > 0
    }

    /// Nothing would miss it.
    pub fn is_unnamed(&self) -> bool {
        self.locks == 0 && self.leases == [0; 3] && self.retains == 0 && self.sessions == 0 && self.kids == 0
    }

    /// Whether every page of a component is on the device, undamaged: the common case, told without looking.
    pub fn is_whole_on_device(&self, component: usize) -> bool {
        let part = &self.parts[component];
        part.bad == 0 && part.copies[Tier::Device as usize] == self.pages
    }
}

impl Record for Node {
    const TAG: u64 = 1;
    fn mix(&self, m: &mut Mixer) {
        m.word((self.namespace as u64) << 32 | self.parent as u64);
        m.word((self.start as u64) << 32 | self.pages as u64);
        m.word(self.created as u64);
        self.parts.iter().for_each(|part| m.word(part.slots.hash()));
    }

    /// Who holds it, and its use.
    fn use_term(&self, whose: u64) -> u128 {
        let pair = |a: u32, b: u32| (a as u64) << 32 | b as u64;
        let used = pair(self.uses, self.retains << 1 | self.superseded as u32);
        let mut sum = mix3(pair(self.locks, self.sessions), self.last_use as u64, used, whose);
        if self.leases != [0; 3] {
            let [device, host, storage] = self.leases;
            sum = sum.wrapping_add(mix(pair(device, host), pair(storage, 0x11), whose));
        }
        if (self.priority, self.returns_at) != (0, 0) {
            let at = self.returns_at as u64;
            sum = sum.wrapping_add(mix(at, pair(self.priority as u32, 0x12), whose));
        }
        sum
    }
}

/// What is kept of a spot component's slot beside the slot: who holds it, and its use.
#[derive(Clone, Debug, Default)]
pub struct Spot {
    pub locks: u32,
    pub leases: [u32; 3],
    pub created: i64,
    pub last_use: i64,
    pub uses: u32,
}

impl Spot {
    pub fn is_held(&self, tier: Tier) -> bool {
        self.locks > 0 || self.leases[tier as usize] > 0
    }
}

impl Record for Spot {
    const TAG: u64 = 8;
    fn mix(&self, m: &mut Mixer) {
        m.word((self.locks as u64) << 32 | self.uses as u64);
        m.word((self.leases[0] as u64) << 32 | self.leases[1] as u64);
        m.word(self.leases[2] as u64);
        m.word(self.created as u64);
        m.word(self.last_use as u64);
    }
}

#[derive(Clone, Debug)]
pub struct Session {
    pub parent: Option<Arc<str>>,
    pub group: Option<Arc<str>>,
    pub priority: i32,
    /// Where its last committed path ends; NONE before the first.
    pub node: u32,
    pub last_use: i64,
}

impl Record for Session {
    const TAG: u64 = 3;
    fn mix(&self, m: &mut Mixer) {
        m.text(self.parent.as_deref().unwrap_or(""));
        m.text(self.group.as_deref().unwrap_or(""));
        m.word(self.priority as u64);
        m.word(self.node as u64);
        m.word(self.last_use as u64);
    }
}

/// A lock: the path to `node` stays on every tier until it is released, and of spot components what `spots` lists.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub node: u32,
    pub spots: Vec<u32>,
    pub session: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
}

impl Record for Receipt {
    const TAG: u64 = 4;
    fn mix(&self, m: &mut Mixer) {
        m.word((self.node as u64) << 32 | self.spots.len() as u64);
        self.spots.iter().for_each(|slot| m.word(*slot as u64));
        m.text(self.session.as_deref().unwrap_or(""));
        m.text(self.request.as_deref().unwrap_or(""));
    }
}

/// A claim on a path that ends by itself. What it is worth: `None` is a pin, which nothing evicts in its tier;
/// `Retain` and `Share` only go after everything else.
#[derive(Clone, Debug)]
pub struct Lease {
    pub session: Arc<str>,
    pub owner: Arc<str>,
    pub worth: Reason,
    pub tier: Tier,
    pub node: u32,
    pub spots: Vec<u32>,
    pub ttl: i64,
    pub expires: i64,
    /// For `Share`: sessions still expected to continue from here.
    pub forks: u32,
}

impl Record for Lease {
    const TAG: u64 = 5;
    fn mix(&self, m: &mut Mixer) {
        m.text(&self.session);
        m.text(&self.owner);
        m.word((self.tier as u64) << 32 | self.node as u64);
        m.word((self.worth as u64) << 32 | self.forks as u64);
        m.word(self.ttl as u64);
        m.word(self.expires as u64);
        self.spots.iter().for_each(|slot| m.word(*slot as u64));
    }
}

/// From reserve to commit or abort. Names slots, never nodes, so that a split passes it by.
#[derive(Clone, Debug)]
pub struct Op {
    pub kind: Kind,
    /// Of a move; a reservation has slots of several.
    pub component: u8,
    pub tier_from: Option<Tier>,
    pub tier_to: Tier,
    pub session: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
    pub receipt: Option<u64>,
    /// When the core gives it up, ns; 0 for never.
    pub deadline: i64,
    /// Given up, but somebody may still be writing: its pages stay fenced.
    pub draining: bool,
    /// In the action's order.
    pub slots: Members,
}

impl Record for Op {
    const TAG: u64 = 6;
    fn mix(&self, m: &mut Mixer) {
        let from = self.tier_from.map_or(3, |t| t as u64);
        let tiers = from << 8 | (self.tier_to as u64) << 1 | self.draining as u64;
        m.word((self.component as u64) << 32 | (self.kind as u64) << 16 | tiers);
        m.text(self.session.as_deref().unwrap_or(""));
        m.text(self.request.as_deref().unwrap_or(""));
        m.word(self.receipt.unwrap_or(0));
        m.word(self.deadline as u64);
        m.word(self.slots.len() as u64);
        m.word(self.slots.hash());
    }
}

/// The root under which pages can meet: one model, one revision of its weights, one adapter.
#[derive(Clone, Debug)]
pub struct Namespace {
    pub name: Arc<str>,
    pub root: u32,
    pub retired: bool,
}

impl Record for Namespace {
    const TAG: u64 = 7;
    fn mix(&self, m: &mut Mixer) {
        m.text(&self.name);
        m.word((self.root as u64) << 1 | self.retired as u64);
    }
}
