//! What a store held at one moment, read bit by bit while it goes on changing: whoever changes what has not been
//! read yet saves its old image first. Beginning costs nothing, and a change saves a bounded number of entries.

use crate::chunks::Chunks;

/// Entries that are saved together: few, since a path's nodes are scattered, and each saves its neighbours too; not
/// one by one, since an eviction's slots are not.
const BLOCK: usize = 16;

/// Where a store has its snapshot, while one is being read.
#[derive(Clone, Debug)]
pub struct Frozen<E>(Option<Box<Snapshot<E>>>);

impl<E> Default for Frozen<E> {
    fn default() -> Self {
        Frozen(None)
    }
}

impl<E: Clone> Frozen<E> {
    /// `used`: whether an entry has ever held anything. Returns how many numbers there are.
    pub fn begin(&mut self, chunks: &[Vec<E>], used: impl Fn(&E) -> bool) -> u32 {
        self.0.insert(Box::new(Snapshot::new(chunks, used))).count
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Entry `id` is about to change.
    #[inline]
    pub fn keep(&mut self, id: u32, chunks: &[Vec<E>]) {
        if let Some(snapshot) = &mut self.0 {
            snapshot.keep(id, chunks);
        }
    }

    /// Look at the next entries, at most `most`, or until `visit` says that it is enough. Returns how many, and
    /// whether that was all; then it ends.
    pub fn read(
        &mut self,
        chunks: &[Vec<E>],
        most: usize,
        visit: &mut impl FnMut(&E) -> bool,
    ) -> (usize, bool) {
        let Some(snapshot) = &mut self.0 else { return (0, true) };
        let looked = snapshot.read(chunks, most, visit);
        let all = snapshot.is_read();
        if all {
            self.0 = None;
        }
        (looked, all)
    }
}

/// Of entries found by number, in chunks that never move and whose length is a multiple of `BLOCK`.
#[derive(Clone, Debug)]
struct Snapshot<E> {
    /// Entries there were, and how many of them have been read, in order.
    count: u32,
    read: u32,
    saved: Chunks<Option<Box<[E]>>>,
}

impl<E: Clone> Snapshot<E> {
    /// The last entries that have never held anything are left out.
    fn new(chunks: &[Vec<E>], used: impl Fn(&E) -> bool) -> Self {
        let (last, before) = chunks.split_last().map_or((&[][..], 0), |(last, rest)| (last, rest.len()));
        let in_last = last.iter().rposition(used).map_or(0, |at| at + 1);
        let count = (before * last.len() + in_last) as u32;
        Snapshot { count, read: 0, saved: Chunks::default() }
    }

    fn keep(&mut self, id: u32, chunks: &[Vec<E>]) {
        if id < self.read || id >= self.count {
            return;
        }
        let size = chunks.first().map_or(1, Vec::len);
        let (chunk, at) = (&chunks[id as usize / size], id as usize % size / BLOCK * BLOCK);
        self.saved.entry(id / BLOCK as u32).get_or_insert_with(|| chunk[at..at + BLOCK].into());
    }

    fn read(&mut self, chunks: &[Vec<E>], most: usize, visit: &mut impl FnMut(&E) -> bool) -> usize {
        let size = chunks.first().map_or(1, Vec::len);
        let mut looked = 0;
        while looked < most && !self.is_read() {
            let (id, block) = (self.read as usize, self.read / BLOCK as u32);
            let saved = self.saved.get(block).and_then(Option::as_ref);
            let entry = saved.map_or_else(|| &chunks[id / size][id % size], |saved| &saved[id % BLOCK]);
            let more = visit(entry);
            looked += 1;
            self.read += 1;
            if (id + 1).is_multiple_of(BLOCK) {
                self.saved.clear(block);
            }
            if !more {
                break;
            }
        }
        looked
    }

    fn is_read(&self) -> bool {
        self.read == self.count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::arena::{Arena, Life};
    use crate::records::{NONE, Namespace, Spot};
    use crate::runs::Run;
    use crate::slots::{Slot, Slots};
    use crate::table::Table;

    fn namespace(root: u32) -> Namespace {
        Namespace { name: "n".into(), root, retired: false }
    }

    fn one(first: u32) -> Run {
        Run { first, count: 1 }
    }

    /// Changes before the store is frozen, and then changes with looks between them: (what, number, value).
    fn changes() -> impl Strategy<Value = Vec<(u8, u32, u32)>> {
        prop::collection::vec((0u8..4, 0u32..70, any::<u32>()), 0..120)
    }

    macro_rules! reads_what_was {
        ($store:expr, $before:ident, $after:ident, $change:expr, $read:expr) => {{
            let mut store = $store;
            $before.iter().for_each(|step| $change(&mut store, step));
            let (mut plain, mut expected, mut got) = (store.clone(), Vec::new(), Vec::new());
            let count = plain.freeze();
            assert!($read(&mut plain, usize::MAX, &mut expected).1);
            assert_eq!(store.freeze(), count);
            for step in &$after {
                match step.0 {
                    3 => {
                        let most = step.2 as usize % 9;
                        assert!($read(&mut store, most, &mut got).0 <= most);
                    }
                    _ => $change(&mut store, step),
                }
            }
            assert!($read(&mut store, usize::MAX, &mut got).1);
            assert_eq!(got, expected);
        }};
    }

    proptest! {
        #[test]
        fn numbers_that_go_come_or_change_are_read_as_they_were(before in changes(), after in changes()) {
            reads_what_was!(
                Arena::<Namespace>::default(), before, after,
                |arena: &mut Arena<Namespace>, step: &(u8, u32, u32)| match step.0 {
                    0 => drop(arena.insert(step.1, namespace(step.2))),
                    1 => drop(arena.remove(step.1)),
                    _ => drop(arena.update(step.1, |n| n.root = step.2)),
                },
                |arena: &mut Arena<Namespace>, most, out: &mut Vec<(Life, Option<u32>)>| arena.read_frozen(most, |life, n| {
                    out.push((life, n.map(|n| n.root)));
                    true
                })
            );
        }

        #[test]
        fn slots_that_go_come_or_change_are_read_as_they_were(before in changes(), after in changes()) {
            reads_what_was!(
                Slots::default(), before, after,
                |slots: &mut Slots, step: &(u8, u32, u32)| match step.0 {
                    0 => drop(slots.insert(one(step.1), |_| Slot::new(0, NONE, step.2))),
                    1 => drop(slots.remove(one(step.1), |_| ())),
                    _ => drop(slots.update(step.1, |s| s.position = step.2)),
                },
                |slots: &mut Slots, most, out: &mut Vec<(Life, Option<Slot>)>| slots.read_frozen(most, |life, slot| {
                    out.push((life, slot.cloned()));
                    true
                })
            );
        }

        #[test]
        fn keys_that_go_come_or_change_are_read_as_they_were(before in changes(), after in changes()) {
            reads_what_was!(
                Table::<u32, Spot>::default(), before, after,
                |table: &mut Table<u32, Spot>, step: &(u8, u32, u32)| match step.0 {
                    0 => drop(table.insert(step.1, Spot { uses: step.2, ..Spot::default() })),
                    1 => drop(table.remove(&step.1)),
                    _ => drop(table.update(&step.1, |s| s.uses = step.2)),
                },
                |table: &mut Table<u32, Spot>, most, out: &mut Vec<Option<(u32, u32)>>| table.read_frozen(most, |entry| {
                    out.push(entry.map(|(key, spot)| (*key, spot.uses)));
                    true
                })
            );
        }
    }
}
