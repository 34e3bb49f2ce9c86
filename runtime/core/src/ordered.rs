//! An ordered set in sorted chunks. Like a B-tree of two levels, but full where things come in order, which eviction
//! orders mostly do: the standard one leaves its leaves half empty then. What is used again leaves the middle for the
//! end: chunks that thin out are put together.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const MOST: usize = 64;
/// Neighbours that have no more than this together become one chunk, which has room to grow then.
const MOST_JOINED: usize = 48;
/// A chunk is looked at each time that so many of its items have gone.
const LOOKED_AT_EVERY: usize = 8;

/// Each chunk stands under a bound that is at most its first item and above all items of the chunks before it.
#[derive(Clone, Debug)]
pub struct Ordered<T> {
    chunks: BTreeMap<T, Vec<T>>,
    len: usize,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Ordered { chunks: BTreeMap::new(), len: 0 }
    }
}

impl<T: Ord + Copy> Ordered<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn contains(&self, item: &T) -> bool {
        self.chunks.range(..=*item).next_back().is_some_and(|(_, chunk)| chunk.binary_search(item).is_ok())
    }

    /// False when it was there already.
    pub fn insert(&mut self, item: T) -> bool {
        let last = self.chunks.last_key_value().map(|(bound, _)| *bound);
        let Some((bound, chunk)) = self.chunks.range_mut(..=item).next_back() else {
            // Before all others: the first chunk's bound goes down to it.
            match self.chunks.pop_first() {
                Some((_, mut first)) if first.len() < MOST => {
                    first.insert(0, item);
                    self.chunks.insert(item, first);
                }
                Some((bound, first)) => {
                    self.chunks.insert(bound, first);
                    self.chunks.insert(item, vec![item]);
                }
                None => drop(self.chunks.insert(item, vec![item])),
            }
            self.len += 1;
            return true;
        };
        let Err(at) = chunk.binary_search(&item) else { return false };
        let (bound, at_end) = (*bound, at == chunk.len());
        if chunk.len() < MOST {
            if chunk.len() == chunk.capacity() {
                chunk.reserve_exact((MOST - chunk.len()).min(chunk.len().max(4)));
            }
            chunk.insert(at, item);
        } else if at_end && last == Some(bound) {
            // What comes in order goes on to. Growth would leave a hole in the heap at every step.
            let mut chunk = Vec::with_capacity(MOST);
            chunk.push(item);
            self.chunks.insert(item, chunk);
        } else {
            let mut upper = chunk.split_off(MOST / 2);
            chunk.shrink_to_fit();
            let side = if at <= MOST / 2 { chunk } else { &mut upper };
            side.insert(if at <= MOST / 2 { at } else { at - MOST / 2 }, item);
            self.chunks.insert(upper[0], upper);
        }
        self.len += 1;
        true
    }

    /// False when it was not there.
    pub fn remove(&mut self, item: &T) -> bool {
        let Some((bound, chunk)) = self.chunks.range_mut(..=*item).next_back() else { return false };
        let Ok(at) = chunk.binary_search(item) else { return false };
        let bound = *bound;
        chunk.remove(at);
        match chunk.len() {
            0 => drop(self.chunks.remove(&bound)),
            left if left < MOST_JOINED && left.is_multiple_of(LOOKED_AT_EVERY) => self.join(bound),
            _ => {}
        }
        self.len -= 1;
        true
    }

    /// A chunk that has lost items takes in its neighbours, or gives back the room that it cannot need soon. Not the
    /// last one, where items go that come in order.
    fn join(&mut self, bound: T) {
        let before = self.chunks.range(..bound).next_back().map(|(before, _)| *before);
        for bound in [Some(bound), before].into_iter().flatten() {
            let mut from = self.chunks.range_mut(bound..);
            let (Some((_, chunk)), Some((next, after))) = (from.next(), from.next()) else { return };
            if chunk.len() + after.len() <= MOST_JOINED {
                chunk.reserve_exact(after.len());
                chunk.append(after);
                let next = *next;
                self.chunks.remove(&next);
            } else if chunk.len() * 2 < chunk.capacity() {
                chunk.shrink_to_fit();
            }
        }
    }

    pub fn range(&self, range: RangeInclusive<T>) -> impl Iterator<Item = &T> {
        let (from, to) = range.into_inner();
        let first = self.chunks.range(..=from).next_back().map_or(from, |(bound, _)| *bound);
        let chunks = self.chunks.range(first.min(to)..=to).flat_map(|(_, chunk)| chunk);
        chunks.skip_while(move |item| **item < from).take_while(move |item| **item <= to)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set_in_order(steps in prop::collection::vec((any::<bool>(), 0u32..400, any::<bool>()), 1..900)) {
            let (mut set, mut model, mut next) = (Ordered::default(), BTreeSet::new(), 400);
            for (insert, item, in_order) in steps {
                if insert {
                    next += 1;
                    let item = if in_order { next } else { item };
                    prop_assert_eq!(set.insert(item), model.insert(item));
                } else {
                    prop_assert_eq!(set.remove(&item), model.remove(&item));
                }
                prop_assert_eq!((set.len(), set.contains(&item)), (model.len(), model.contains(&item)));
            }
            for from in [0, 13, 399, 420] {
                for to in [from, from + 1, 399, 500, u32::MAX] {
                    let expected: Vec<u32> = if from <= to { model.range(from..=to).copied().collect() } else { vec![] };
                    let range: Vec<u32> = if from <= to { set.range(from..=to).copied().collect() } else { vec![] };
                    prop_assert_eq!(range, expected);
                }
            }
        }

        #[test]
        fn what_comes_in_order_fills_its_chunks(count in 1usize..2000) {
            let mut set = Ordered::default();
            (0..count).for_each(|item| { set.insert(item); });
            prop_assert_eq!(set.chunks.len(), count.div_ceil(MOST));
        }

        #[test]
        fn what_leaves_the_middle_for_the_end_leaves_little_room_behind(
            count in 1u32..300, uses in prop::collection::vec(any::<prop::sample::Index>(), 0..3000),
        ) {
            let mut set = Ordered::default();
            let mut stands: Vec<u32> = (0..count).collect();
            stands.iter().for_each(|place| { set.insert(*place); });
            for (place, item) in (count..).zip(uses) {
                let old = std::mem::replace(&mut stands[item.index(count as usize)], place);
                prop_assert!(set.remove(&old) && set.insert(place));
            }
            let room: usize = set.chunks.values().map(Vec::capacity).sum();
            prop_assert!(room <= 3 * set.len() + 2 * MOST, "room for {room}, {} there", set.len());
        }
    }
}
