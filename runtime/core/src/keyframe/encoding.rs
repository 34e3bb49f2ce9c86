//! How records are written.

use smallvec::SmallVec;

use crate::digest::Digest;
use crate::members::Members;
use crate::names::{FamilyName, Reason, Tier};
use crate::records::{Lease, NONE, Namespace, Node, Op, Part, Receipt, Session, Spot};
use crate::runs::Run;
use crate::slots::Slot;
use crate::state::State;
use crate::strip::{Placed, Strip};
use crate::wire::{Wire, fields};

use super::SECTIONS;

/// What the engine is, and what must come out.
pub struct Header {
    pub engine: String,
    pub epoch: String,
    pub seq: u64,
    pub clock: i64,
    pub state_hash: u128,
    pub observed_hash: u128,
    pub page_size: u32,
    pub components: Vec<ComponentHeader>,
    /// Items by section.
    pub counts: Vec<u32>,
}

fields!(Header {
    engine: String, epoch: String, seq: u64, clock: i64, state_hash: u128, observed_hash: u128, page_size: u32,
    components: Vec<ComponentHeader>, counts: Vec<u32>,
});

#[derive(Clone)]
pub struct ComponentHeader {
    pub name: String,
    pub family: FamilyName,
    pub follows: Option<String>,
    pub number: u32,
    pub page_bytes: u64,
    /// By tier.
    pub pages: [u32; 3],
    /// Tiers (bits) that somebody else owns.
    pub observed: u8,
}

fields!(ComponentHeader {
    name: String, family: FamilyName, follows: Option<String>, number: u32, page_bytes: u64, pages: [u32; 3],
    observed: u8,
});

impl Header {
    pub fn of(state: &State, engine: &str, epoch: &str, counts: [u32; SECTIONS]) -> Self {
        let pools = state.components.iter().zip(&state.pools);
        let components = pools.map(|(component, pools)| ComponentHeader {
            name: component.name.into(),
            family: component.kind,
            follows: component.follows.map(|c| state.name_of(c).into()),
            number: component.number,
            page_bytes: component.page_bytes,
            pages: [0, 1, 2].map(|t| pools[t].pages.capacity()),
            observed: Tier::ALL
                .iter()
                .filter(|t| pools[**t as usize].observed)
                .fold(0, |bits, t| bits | t.bit()),
        });
        Header {
            engine: engine.into(),
            epoch: epoch.into(),
            seq: state.seq,
            clock: state.clock,
            state_hash: state.hash(),
            observed_hash: state.observed_hash(),
            page_size: state.page_size,
            components: components.collect(),
            counts: counts.into(),
        }
    }
}

fields!(Namespace { name: Arc<str>, root: u32, retired: bool });

fields!(Node {
    namespace: u32, parent: u32, start: u32, pages: u32, locks: u32, leases: [u32; 3], retains: u32, sessions: u32,
    created: i64, last_use: i64, uses: u32, superseded: bool, priority: i32, returns_at: i64,
    parts: SmallVec<[Part; 1]>,
} counted kids);

fields!(Part { slots: Strip } counted copies, kids_with, bad);

fields!(Spot { locks: u32, leases: [u32; 3], created: i64, last_use: i64, uses: u32 });

fields!(Session {
    parent: Option<Arc<str>>, group: Option<Arc<str>>, priority: i32, node: u32, last_use: i64,
});

fields!(Receipt { node: u32, spots: Vec<u32>, session: Option<Arc<str>>, request: Option<Arc<str>> });

fields!(Lease {
    session: Arc<str>, owner: Arc<str>, worth: Reason, tier: Tier, node: u32, spots: Vec<u32>, ttl: i64,
    expires: i64, forks: u32,
});

fields!(Op {
    kind: Kind, component: u8, tier_from: Option<Tier>, tier_to: Tier, session: Option<Arc<str>>,
    request: Option<Arc<str>>, receipt: Option<u64>, deadline: i64, draining: bool, slots: Members,
});

impl Wire for SmallVec<[Part; 1]> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u8).put(out);
        self.iter().for_each(|part| part.put(out));
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        (0..u8::get(bytes)?).map(|_| Part::get(bytes)).collect()
    }
}

impl Wire for Strip {
    fn put(&self, out: &mut Vec<u8>) {
        (self.placed().len() as u32).put(out);
        self.placed().iter().for_each(|p| [p.at, p.first, p.count].put(out));
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        let mut strip = Strip::default();
        for _ in 0..u32::get(bytes)? {
            let [at, first, count]: [u32; 3] = Wire::get(bytes)?;
            first.checked_add(count).and(at.checked_add(count))?;
            Strip::put(&mut strip, Placed { at, first, count }).then_some(())?;
        }
        Some(strip)
    }
}

impl Wire for Members {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        self.iter().for_each(|slot| slot.put(out));
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        let mut members = Members::default();
        for _ in 0..u32::get(bytes)? {
            let first = u32::get(bytes).filter(|slot| *slot != NONE)?;
            members.join(Run { first, count: 1 });
        }
        Some(members)
    }
}

/// Bits of a slot's flags beside those of its tiers: what follows, since most slots do not have it.
const READ: u16 = 1 << 9;
const LOST: u16 = 1 << 10;
const HAS_DIGEST: u16 = 1 << 11;

/// A slot's pages are those of its copies, there or coming: no other tier has one.
pub fn put_slot(slot: &Slot, out: &mut Vec<u8>) {
    let mut flags = slot.here as u16 | (slot.coming as u16) << 3 | (slot.bad as u16) << 6;
    let has_digest = slot.digest != Digest::default();
    flags |= if slot.is_read() { READ } else { 0 };
    flags |= if slot.lost().is_some() { LOST } else { 0 };
    flags |= if has_digest { HAS_DIGEST } else { 0 };
    flags.put(out);
    slot.component.put(out);
    [slot.node, slot.position].put(out);
    for tier in Tier::ALL.iter().filter(|tier| !slot.lacks(**tier)) {
        slot.page(*tier).put(out);
    }
    if slot.is_read() {
        out.extend_from_slice(&slot.readers);
    }
    if let Some((row, why)) = slot.lost() {
        row.put(out);
        why.put(out);
    }
    if has_digest {
        out.extend_from_slice(&slot.digest);
    }
}

pub fn get_slot(bytes: &mut &[u8]) -> Option<Slot> {
    let flags = u16::get(bytes)?;
    let bits = |at: u16| (flags >> at) as u8 & 7;
    let (here, coming) = (bits(0), bits(3));
    let component = u8::get(bytes)?;
    let [node, position]: [u32; 2] = Wire::get(bytes)?;
    let mut slot = Slot::new(component, node, position);
    for tier in Tier::ALL.iter().filter(|tier| (here | coming) & tier.bit() != 0) {
        slot.await_copy(*tier, u32::get(bytes)?);
        if here & tier.bit() != 0 {
            slot.settle_copy(*tier);
        }
    }
    slot.bad = bits(6);
    if flags & READ != 0 {
        slot.readers = take(bytes)?;
    }
    if flags & LOST != 0 {
        let (row, why) = (u64::get(bytes)?, Reason::get(bytes)?);
        slot.drop_copy(Tier::Device, row, why);
    }
    if flags & HAS_DIGEST != 0 {
        slot.digest = take(bytes)?;
    }
    // Not both there and coming, nor both lost and there.
    let as_said = (slot.here, slot.coming) == (here, coming) && slot.lost().is_some() == (flags & LOST != 0);
    as_said.then_some(slot)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}
