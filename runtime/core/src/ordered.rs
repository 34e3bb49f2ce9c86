//! An ordered set in sorted chunks. Like a B-tree of two levels, but full where things come in order, which eviction
//! orders mostly do: the standard one leaves its leaves half empty then.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const MOST: usize = 64;

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
                chunk.reserve_exact(MOST.min(chunk.len().max(4)));
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
        if chunk.is_empty() {
            self.chunks.remove(&bound);
        } else if chunk.len() < chunk.capacity() / 4 {
            chunk.shrink_to(chunk.capacity() / 2);
        }
        self.len -= 1;
        true
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
    }
}
