//! All slots, by number, in chunks that never move. There are more of these than of anything else, so they are small,
//! and what is done to many in a row is done in one pass. A change pays for the terms of the hash that it changes.

use std::ops::Range;

use crate::arena::Life;
use crate::bitmap::Bitmap;
use crate::mixer::mix;
use crate::names::Tier;
use crate::records::NONE;
use crate::runs::Run;
pub use crate::slot::Slot;
use crate::snapshot::Frozen;

const CHUNK: usize = 1024;
/// No row is about more slots than this.
const MOST_AT_ONCE: usize = 1 << 30;

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
    sums: Sums,
    frozen: Frozen<Entry>,
}

impl Slots {
    pub fn observe(&mut self, tier: Tier) {
        self.sums.observed |= tier.bit();
    }

    pub fn count(&self) -> usize {
        self.ids.taken() as usize
    }

    pub fn hash(&self) -> u128 {
        self.sums.owned
    }

    pub fn observed_hash(&self) -> u128 {
        self.sums.of_observed
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

    /// Those of a run that exist, with their numbers, in order.
    #[inline]
    pub fn of(&self, run: Run) -> impl DoubleEndedIterator<Item = (u32, &Slot)> {
        let entries = pieces(run).flat_map(|(chunk, ids)| {
            let entries = self.chunks.get(chunk).map_or(&[][..], |entries| &entries[within(&ids)]);
            ids.zip(entries)
        });
        entries.filter(|(_, entry)| entry.alive()).map(|(id, entry)| (id, &entry.slot))
    }

    /// The slots at the end of a run, which all exist, that `look` the same, at most `most`. None when there are none.
    pub fn tail<L: PartialEq>(&self, run: Run, most: u32, look: impl Fn(&Slot) -> L) -> Option<(Run, L)> {
        let (count, end) = (run.count.min(most), run.first + run.count);
        let last = look(self.get(end.checked_sub(1).filter(|_| count > 0)?)?);
        let mut first = end;
        for (chunk, ids) in pieces(Run { first: end - count, count }).rev() {
            let entries = &self.chunks[chunk][within(&ids)];
            first -= entries.iter().rev().take_while(|entry| look(&entry.slot) == last).count() as u32;
            if first > ids.start {
                break;
            }
        }
        Some((Run { first, count: end - first }, last))
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

    /// New slots for a run of numbers. False, and nothing done, when one is in use, or so far off that nobody can have
    /// given it out: `choose` goes upwards without gaps, and a broken log must not cost memory.
    pub fn insert(&mut self, run: Run, mut make: impl FnMut(u32) -> Slot) -> bool {
        let Some(end) = run.first.checked_add(run.count) else { return false };
        if run.first as usize / CHUNK > self.chunks.len() || run.count as usize > MOST_AT_ONCE {
            return false;
        }
        self.make_room(end);
        if !self.ids.take(run) {
            return false;
        }
        self.each(run, |id, entry, sums| {
            entry.life += 1;
            entry.slot = make(id - run.first);
            sums.all(&entry.slot, whose(id, entry), u128::wrapping_add);
        });
        true
    }

    fn make_room(&mut self, end: u32) {
        while self.chunks.len() * CHUNK < end as usize {
            let empty = || Entry { slot: Slot::new(0, NONE, NONE), life: 0 };
            self.chunks.push(std::iter::repeat_with(empty).take(CHUNK).collect());
        }
        if end > self.ids.capacity() {
            self.ids.grow(end);
        }
    }

    /// Slots end. False, and nothing done, when one of them does not exist.
    pub fn remove(&mut self, run: Run, mut last: impl FnMut(&Slot)) -> bool {
        if !self.ids.release(run) {
            return false;
        }
        self.each(run, |id, entry, sums| {
            sums.all(&entry.slot, whose(id, entry), u128::wrapping_sub);
            entry.life += 1;
            last(&entry.slot);
        });
        true
    }

    /// Change a run's entries, which there are, and with each what the hashes have of it. Inlined, with all that is
    /// done to each: the sums stay in registers.
    #[inline(always)]
    fn each(&mut self, run: Run, mut change: impl FnMut(u32, &mut Entry, &mut Sums)) {
        if self.frozen.is_on() {
            run.iter().for_each(|id| self.keep(id));
        }
        let mut sums = self.sums;
        for (chunk, ids) in pieces(run) {
            let entries = &mut self.chunks[chunk][within(&ids)];
            ids.zip(entries).for_each(|(id, entry)| change(id, entry, &mut sums));
        }
        self.sums = sums;
    }

    /// Change anything of a slot. None when there is none.
    pub fn update<R>(&mut self, id: u32, change: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let mut sums = self.sums;
        let entry = self.entry_mut(id)?;
        let whose = whose(id, entry);
        sums.all(&entry.slot, whose, u128::wrapping_sub);
        let result = change(&mut entry.slot);
        sums.all(&entry.slot, whose, u128::wrapping_add);
        self.sums = sums;
        Some(result)
    }

    /// Change what a run of slots says of these tiers' copies, and of the loss of the last one; nothing else of them.
    /// False when one of them does not exist.
    #[inline(always)]
    pub fn update_copies<const N: usize>(
        &mut self,
        run: Run,
        tiers: [Tier; N],
        mut change: impl FnMut(u32, &mut Slot),
    ) -> bool {
        let there = self.ids.are_taken(run);
        if there {
            self.each(run, |id, entry, sums| {
                let whose = whose(id, entry);
                sums.copies(&entry.slot, whose, &tiers, u128::wrapping_sub);
                change(id, &mut entry.slot);
                sums.copies(&entry.slot, whose, &tiers, u128::wrapping_add);
            });
        }
        there
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
        let mut sums = Sums { observed: self.sums.observed, ..Sums::default() };
        self.iter().for_each(|(id, slot)| sums.all(slot, self.owner(id), u128::wrapping_add));
        (sums.owned, sums.of_observed)
    }

    /// See `Arena::freeze`, `Arena::read_frozen` and `Arena::restore`.
    pub fn freeze(&mut self) -> u32 {
        self.frozen.begin(&self.chunks, |entry| entry.life > 0)
    }

    pub fn read_frozen(
        &mut self,
        most: usize,
        mut visit: impl FnMut(Life, Option<&Slot>) -> bool,
    ) -> (usize, bool) {
        let mut entry = |e: &Entry| visit(Life(e.life), e.alive().then_some(&e.slot));
        self.frozen.read(&self.chunks, most, &mut entry)
    }

    pub fn restore(&mut self, id: u32, life: Life, slot: Option<Slot>) -> bool {
        if life.is_on() != slot.is_some() || id == NONE || id as usize / CHUNK > self.chunks.len() {
            return false;
        }
        self.make_room(id + 1);
        self.chunks[id as usize / CHUNK][id as usize % CHUNK].life = life.0 - life.is_on() as u32;
        slot.is_none_or(|slot| self.insert(Run { first: id, count: 1 }, |_| slot.clone()))
    }

    /// A number's entry is about to change.
    #[inline]
    fn keep(&mut self, id: u32) {
        self.frozen.keep(id, &self.chunks);
    }

    fn entry(&self, id: u32) -> Option<&Entry> {
        self.chunks.get(id as usize / CHUNK)?.get(id as usize % CHUNK).filter(|e| e.alive())
    }

    fn entry_mut(&mut self, id: u32) -> Option<&mut Entry> {
        self.keep(id);
        self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK).filter(|e| e.alive())
    }
}

/// The hashes: sums of the slots' terms, by whose tiers they speak of.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Tiers that somebody else owns: their copies are beliefs, and hashed apart.
    observed: u8,
    owned: u128,
    of_observed: u128,
}

impl Sums {
    #[inline(always)]
    fn all(&mut self, slot: &Slot, whose: u64, put: impl Fn(u128, u128) -> u128) {
        self.owned = put(self.owned, slot.own_term(whose));
        self.copies(slot, whose, Tier::ALL, put);
    }

    #[inline(always)]
    fn copies(&mut self, slot: &Slot, whose: u64, tiers: &[Tier], put: impl Fn(u128, u128) -> u128) {
        if let Some((row, why)) = slot.lost() {
            self.owned = put(self.owned, mix(row, (why as u64) << 8 | 5, whose));
        }
        for tier in tiers {
            let Some(term) = slot.copy_term(whose, *tier) else { continue };
            if self.observed & tier.bit() == 0 {
                self.owned = put(self.owned, term);
            } else {
                self.of_observed = put(self.of_observed, term);
            }
        }
    }
}

/// The chunks that a run lies in, and the numbers in each.
#[inline]
fn pieces(run: Run) -> impl DoubleEndedIterator<Item = (usize, Range<u32>)> {
    let (first, end, size) = (run.first, run.first + run.count, CHUNK as u32);
    (first / size..end.div_ceil(size)).map(move |chunk| {
        (chunk as usize, first.max(chunk * size)..end.min((chunk + 1).saturating_mul(size)))
    })
}

#[inline]
fn within(ids: &Range<u32>) -> Range<usize> {
    let at = ids.start as usize % CHUNK;
    at..at + ids.len()
}

#[inline]
fn whose(id: u32, entry: &Entry) -> u64 {
    (entry.generation() as u64) << 32 | id as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_fills_one_cache_line() {
        assert_eq!(size_of::<Entry>(), 64);
    }
}
