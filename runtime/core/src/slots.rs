//! Logical pages. There are more of these than of anything else, so they are small, and their hash is a sum of
//! small terms: what a slot is, and each of its copies. A change pays for the terms that it changes.

use crate::bitmap::Bitmap;
use crate::digest::Digest;
use crate::mixer::mix;
use crate::names::{Reason, Tier};
use crate::records::NONE;
use crate::runs::Run;

const CHUNK: usize = 1024;

/// One logical page of one component. Its bytes may be in several tiers at once, or in none (a hole that a path
/// names).
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The node that has it, or NONE while only an operation does. Not hashed: nodes say it.
    pub node: u32,
    /// Index of the page in its sequence. Not hashed once it is in a node.
    pub position: u32,
    /// Number of its component.
    pub component: u8,
    /// Tier bits: settled copies, copies being written, copies known to be damaged.
    pub here: u8,
    pub coming: u8,
    pub bad: u8,
    /// Operations reading each tier's copy.
    pub readers: [u8; 3],
    pub lost_why: Reason,
    /// Page in each tier's pool; NONE where there is neither a copy nor one coming.
    pub page: [u32; 3],
    /// The row that took the last copy away; 0 while there is one.
    pub lost: u64,
    /// Of the page and all before it; zeros where digests are deferred.
    pub digest: Digest,
}

impl Slot {
    pub fn new(component: u8, node: u32, position: u32) -> Self {
        Slot {
            node,
            position,
            component,
            here: 0,
            coming: 0,
            bad: 0,
            readers: [0; 3],
            lost_why: Reason::None,
            page: [NONE; 3],
            lost: 0,
            digest: [0; 32],
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

    pub fn is_read(&self) -> bool {
        self.readers != [0; 3]
    }

    fn own_term(&self, whose: u64) -> u128 {
        let (words, _) = self.digest.as_chunks::<8>();
        let [a, b] = [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])];
        let place = if self.node == NONE { self.position as u64 + 1 } else { 0 };
        let own = mix(a ^ self.component as u64, b ^ place << 8, whose);
        if self.lost == 0 { own } else { own.wrapping_add(mix(self.lost, self.lost_why as u64, whose ^ 1)) }
    }

    fn copy_term(&self, whose: u64, tier: Tier) -> u128 {
        let t = tier as usize;
        if self.page[t] == NONE {
            return 0;
        }
        let bit = |set: u8| (set >> t & 1) as u64;
        let flags = bit(self.here) | bit(self.coming) << 1 | bit(self.bad) << 2 | (self.readers[t] as u64) << 8;
        mix((self.page[t] as u64) << 32 | flags, t as u64 + 2, whose)
    }
}

#[derive(Clone, Debug)]
struct Entry {
    slot: Slot,
    /// Twice the number of lives, and one while it is alive.
    life: u32,
}

impl Entry {
    fn alive(&self) -> bool {
        self.life & 1 == 1
    }

    fn generation(&self) -> u32 {
        self.life.div_ceil(2)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Slots {
    chunks: Vec<Vec<Entry>>,
    ids: Bitmap,
    /// Tiers that somebody else owns: their copies are beliefs, and hashed apart.
    observed: u8,
    owned_hash: u128,
    observed_hash: u128,
}

impl Slots {
    pub fn observe(&mut self, tier: Tier) {
        self.observed |= tier.bit();
    }

    pub fn count(&self) -> usize {
        self.ids.taken() as usize
    }

    pub fn hash(&self) -> u128 {
        self.owned_hash
    }

    pub fn observed_hash(&self) -> u128 {
        self.observed_hash
    }

    /// Numbers for `count` new slots. Takes nothing yet: inserting does.
    pub fn choose(&mut self, count: u32) -> Vec<Run> {
        if self.ids.free() < count {
            self.ids.grow(self.ids.capacity() + count.max(CHUNK as u32));
        }
        self.ids.choose(count)
    }

    pub fn get(&self, id: u32) -> Option<&Slot> {
        self.entry(id).map(|entry| &entry.slot)
    }

    /// How often this number has been given out; with the number it names one life.
    pub fn generation(&self, id: u32) -> u32 {
        let entry = self.chunks.get(id as usize / CHUNK).and_then(|chunk| chunk.get(id as usize % CHUNK));
        entry.map_or(0, Entry::generation)
    }

    /// The slot with its generation, as one number.
    pub fn owner(&self, id: u32) -> u64 {
        (self.generation(id) as u64) << 32 | id as u64
    }

    /// False when the number is in use, or so far off that nobody can have given it out: `choose` goes upwards
    /// without gaps, and a broken log must not cost memory.
    pub fn insert(&mut self, id: u32, slot: Slot) -> bool {
        let chunk = id as usize / CHUNK;
        if chunk > self.chunks.len() {
            return false;
        }
        if chunk == self.chunks.len() {
            let empty = || Entry { slot: Slot::new(0, NONE, NONE), life: 0 };
            self.chunks.push(std::iter::repeat_with(empty).take(CHUNK).collect());
        }
        if id >= self.ids.capacity() {
            self.ids.grow(id + 1);
        }
        if !self.ids.take_one(id) {
            return false;
        }
        let entry = &mut self.chunks[chunk][id as usize % CHUNK];
        entry.life += 1;
        entry.slot = slot;
        let whose = whose(id, entry);
        self.owned_hash = self.owned_hash.wrapping_add(entry.slot.own_term(whose));
        self.add_copies(id, &[0, 1, 2]);
        true
    }

    pub fn remove(&mut self, id: u32) -> Option<Slot> {
        self.entry(id)?;
        self.drop_copies(id, &[0, 1, 2]);
        let entry = self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)?;
        self.owned_hash = self.owned_hash.wrapping_sub(entry.slot.own_term(whose(id, entry)));
        entry.life += 1;
        self.ids.release_one(id);
        Some(entry.slot.clone())
    }

    /// Change anything of a slot. None when there is none.
    pub fn update<R>(&mut self, id: u32, change: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.drop_copies(id, &[0, 1, 2]);
        let entry = self.entry_mut(id)?;
        let whose = whose(id, entry);
        let before = entry.slot.own_term(whose);
        let result = change(&mut entry.slot);
        let after = entry.slot.own_term(whose);
        self.owned_hash = self.owned_hash.wrapping_sub(before).wrapping_add(after);
        self.add_copies(id, &[0, 1, 2]);
        Some(result)
    }

    /// Change what a slot says of these tiers' copies, and nothing else of it.
    pub fn update_copies(&mut self, id: u32, tiers: &[u8], change: impl FnOnce(&mut Slot)) -> Option<()> {
        self.entry(id)?;
        self.drop_copies(id, tiers);
        change(&mut self.entry_mut(id)?.slot);
        self.add_copies(id, tiers);
        Some(())
    }

    /// Put a slot into a node, or into another one. Costs no hashing.
    pub fn set_node(&mut self, id: u32, node: u32) -> Option<()> {
        let entry = self.entry_mut(id)?;
        debug_assert!(entry.slot.node != NONE);
        entry.slot.node = node;
        Some(())
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let entries = self.chunks.iter().flatten().enumerate();
        entries.filter(|(_, e)| e.alive()).map(|(id, e)| (id as u32, &e.slot))
    }

    /// Both hashes from nothing, for `check`.
    pub fn rehash(&self) -> (u128, u128) {
        let mut sums = (0u128, 0u128);
        for (id, slot) in self.iter() {
            let whose = self.owner(id);
            sums.0 = sums.0.wrapping_add(slot.own_term(whose));
            for tier in Tier::ALL {
                let sum = if self.observed & tier.bit() == 0 { &mut sums.0 } else { &mut sums.1 };
                *sum = sum.wrapping_add(slot.copy_term(whose, *tier));
            }
        }
        sums
    }

    fn drop_copies(&mut self, id: u32, tiers: &[u8]) {
        let Some(entry) = self.entry(id) else { return };
        let (mut owned, mut observed) = (0u128, 0u128);
        self.sum_copies(id, entry, tiers, &mut owned, &mut observed);
        self.owned_hash = self.owned_hash.wrapping_sub(owned);
        self.observed_hash = self.observed_hash.wrapping_sub(observed);
    }

    fn add_copies(&mut self, id: u32, tiers: &[u8]) {
        let Some(entry) = self.entry(id) else { return };
        let (mut owned, mut observed) = (0u128, 0u128);
        self.sum_copies(id, entry, tiers, &mut owned, &mut observed);
        self.owned_hash = self.owned_hash.wrapping_add(owned);
        self.observed_hash = self.observed_hash.wrapping_add(observed);
    }

    fn sum_copies(&self, id: u32, entry: &Entry, tiers: &[u8], owned: &mut u128, observed: &mut u128) {
        let whose = whose(id, entry);
        for tier in tiers {
            let tier = Tier::ALL[*tier as usize];
            let sum = if self.observed & tier.bit() == 0 { &mut *owned } else { &mut *observed };
            *sum = sum.wrapping_add(entry.slot.copy_term(whose, tier));
        }
    }

    fn entry(&self, id: u32) -> Option<&Entry> {
        self.chunks.get(id as usize / CHUNK)?.get(id as usize % CHUNK).filter(|e| e.alive())
    }

    fn entry_mut(&mut self, id: u32) -> Option<&mut Entry> {
        self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK).filter(|e| e.alive())
    }
}

fn whose(id: u32, entry: &Entry) -> u64 {
    (entry.generation() as u64) << 32 | id as u64
}
