//! Which slot stands at which page: the slots of one component in one node, as runs by position.

use smallvec::SmallVec;

use crate::mixer::mix;
use crate::runs::Run;

/// Slots `first..first + count` at pages `at..at + count` of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub at: u32,
    pub first: u32,
    pub count: u32,
}

impl Placed {
    pub fn end(&self) -> u32 {
        self.at + self.count
    }

    pub fn slots(&self) -> Run {
        Run { first: self.first, count: self.count }
    }

    fn between(&self, from: u32, to: u32) -> Option<Placed> {
        let (at, end) = (from.max(self.at), to.min(self.end()));
        (at < end).then(|| Placed { at, first: self.first + (at - self.at), count: end - at })
    }

    fn joins(&self, next: &Placed) -> bool {
        self.end() == next.at && self.first + self.count == next.first
    }

    fn term(&self) -> u64 {
        mix((self.at as u64) << 32 | self.count as u64, self.first as u64, 11) as u64
    }
}

/// Ordered by position, runs as long as they can be: one content has one form, and one hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strip {
    placed: SmallVec<[Placed; 1]>,
    /// Wrapping sum over the runs, kept as they change.
    hash: u64,
}

impl Strip {
    pub fn len(&self) -> u32 {
        self.placed.iter().map(|placed| placed.count).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.placed.is_empty()
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The hash from nothing, for `check`.
    pub fn rehash(&self) -> u64 {
        self.placed.iter().fold(0, |sum, placed| sum.wrapping_add(placed.term()))
    }

    pub fn placed(&self) -> &[Placed] {
        &self.placed
    }

    pub fn get(&self, at: u32) -> Option<u32> {
        let found = self.placed.get(self.after(at).checked_sub(1)?)?;
        found.between(at, at + 1).map(|one| one.first)
    }

    /// (page, slot) in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + '_ {
        self.placed.iter().flat_map(|p| (p.at..p.end()).zip(p.slots().iter()))
    }

    /// What stands at pages `from..to`, as runs.
    pub fn between(&self, from: u32, to: u32) -> impl DoubleEndedIterator<Item = Placed> + '_ {
        let first = self.after(from).saturating_sub(1);
        let rest = self.placed[first..].iter().take_while(move |p| p.at < to);
        rest.filter_map(move |p| p.between(from, to)).collect::<SmallVec<[Placed; 4]>>().into_iter()
    }

    /// False, and nothing done, when a page has a slot already.
    pub fn put(&mut self, new: Placed) -> bool {
        if new.count == 0 {
            return true;
        }
        let mut index = self.after(new.at);
        let free = index.checked_sub(1).is_none_or(|before| self.placed[before].end() <= new.at)
            && self.placed.get(index).is_none_or(|next| new.end() <= next.at);
        if !free || new.at.checked_add(new.count).is_none() {
            return false;
        }
        let mut whole = new;
        if let Some(before) = index.checked_sub(1).filter(|i| self.placed[*i].joins(&whole)) {
            let old = self.remove(before);
            whole = Placed { count: old.count + whole.count, ..old };
            index = before;
        }
        if self.placed.get(index).is_some_and(|next| whole.joins(next)) {
            whole.count += self.remove(index).count;
        }
        self.insert(index, whole);
        true
    }

    /// Take what stands at `at..at + count`; None, and nothing done, when a page of it has no slot or the
    /// slots are not consecutive.
    pub fn take(&mut self, at: u32, count: u32) -> Option<Run> {
        let index = self.after(at).checked_sub(1)?;
        let old = *self.placed.get(index)?;
        let run = old.between(at, at.checked_add(count)?).filter(|run| run.count == count)?;
        self.remove(index);
        for left in [old.between(0, at), old.between(at + count, u32::MAX)].into_iter().flatten().rev() {
            self.insert(index, left);
        }
        Some(run.slots())
    }

    /// Keep what stands before page `at`, return the rest.
    pub fn split_off(&mut self, at: u32) -> Strip {
        let mut tail = Strip::default();
        while let Some(last) = self.placed.last().copied().filter(|last| last.end() > at) {
            let index = self.placed.len() - 1;
            self.remove(index);
            if let Some(front) = last.between(0, at) {
                self.insert(index, front);
            }
            if let Some(back) = last.between(at, u32::MAX) {
                tail.insert(0, back);
            }
        }
        tail
    }

    /// Index of the first run that begins after page `at`.
    fn after(&self, at: u32) -> usize {
        match self.placed.last() {
            Some(last) if last.at <= at => self.placed.len(),
            _ => self.placed.partition_point(|p| p.at <= at),
        }
    }

    fn insert(&mut self, index: usize, placed: Placed) {
        self.hash = self.hash.wrapping_add(placed.term());
        self.placed.insert(index, placed);
    }

    fn remove(&mut self, index: usize) -> Placed {
        let placed = self.placed.remove(index);
        self.hash = self.hash.wrapping_sub(placed.term());
        placed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_strip_is_a_map_from_page_to_slot(steps in prop::collection::vec((0u8..3, 0u32..40, 0u32..60, 1u32..9), 1..60)) {
            let (mut strip, mut model) = (Strip::default(), BTreeMap::new());
            for (what, at, first, count) in steps {
                match what {
                    0 => {
                        let free = (at..at + count).all(|page| !model.contains_key(&page));
                        prop_assert_eq!(strip.put(Placed { at, first, count }), free);
                        if free {
                            (0..count).for_each(|i| { model.insert(at + i, first + i); });
                        }
                    }
                    1 => {
                        let there: Vec<u32> = (at..at + count).map_while(|page| model.get(&page).copied()).collect();
                        let whole = there.len() == count as usize && there.windows(2).all(|w| w[0] + 1 == w[1]);
                        prop_assert_eq!(strip.take(at, count).is_some(), whole);
                        if whole {
                            (at..at + count).for_each(|page| { model.remove(&page); });
                        }
                    }
                    _ => {
                        let mut front = strip.clone();
                        let back = front.split_off(at);
                        let both: BTreeMap<u32, u32> = front.iter().chain(back.iter()).collect();
                        prop_assert_eq!(&both, &model);
                        prop_assert!(front.iter().all(|(page, _)| page < at) && back.iter().all(|(page, _)| page >= at));
                        prop_assert_eq!((front.hash, back.hash), (front.rehash(), back.rehash()));
                    }
                }
                prop_assert_eq!(&strip.iter().collect::<BTreeMap<_, _>>(), &model);
                prop_assert_eq!(strip.len() as usize, model.len());
                prop_assert_eq!(strip.hash(), strip.rehash());
                prop_assert!(strip.placed.windows(2).all(|w| !w[0].joins(&w[1])));
                for page in 0..50 {
                    prop_assert_eq!(strip.get(page), model.get(&page).copied());
                }
                let between: Vec<u32> = strip.between(at, at + count).flat_map(|p| p.slots().iter()).collect();
                prop_assert_eq!(between, model.range(at..at + count).map(|(_, s)| *s).collect::<Vec<_>>());
            }
        }
    }
}
