//! Free space as a bitmap with a cursor: the same requests always get the same numbers.

use crate::runs::Run;

const WORD: u32 = u64::BITS;

#[derive(Clone, Debug, Default)]
pub struct Bitmap {
    words: Vec<u64>,
    /// A bit for each word that has nothing free: a search passes 4,096 taken numbers at a time.
    full: Vec<u64>,
    capacity: u32,
    taken: u32,
    cursor: u32,
}

impl Bitmap {
    pub fn new(capacity: u32) -> Self {
        let mut map = Bitmap::default();
        map.grow(capacity);
        map
    }

    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    pub fn taken(&self) -> u32 {
        self.taken
    }

    pub fn free(&self) -> u32 {
        self.capacity - self.taken
    }

    pub fn grow(&mut self, capacity: u32) {
        debug_assert!(capacity >= self.capacity);
        self.capacity = capacity;
        self.words.resize(capacity.div_ceil(WORD) as usize, 0);
        self.full.resize(self.words.len().div_ceil(WORD as usize), 0);
    }

    pub fn is_taken(&self, number: u32) -> bool {
        number < self.capacity && self.words[(number / WORD) as usize] >> (number % WORD) & 1 == 1
    }

    /// The lowest free number.
    pub fn first_free(&self) -> Option<u32> {
        let word = self.not_full_from(0).filter(|word| *word < self.words.len())?;
        let number = word as u32 * WORD + self.words[word].trailing_ones();
        (number < self.capacity).then_some(number)
    }

    /// False when it was taken already, or is out of range.
    pub fn take_one(&mut self, number: u32) -> bool {
        if number >= self.capacity || self.is_taken(number) {
            return false;
        }
        self.change((number / WORD) as usize, |word| *word |= 1 << (number % WORD));
        self.taken += 1;
        true
    }

    /// False when it was free already, or is out of range.
    pub fn release_one(&mut self, number: u32) -> bool {
        if !self.is_taken(number) {
            return false;
        }
        self.change((number / WORD) as usize, |word| *word &= !(1 << (number % WORD)));
        self.taken -= 1;
        true
    }

    /// Take or release a whole run, a word at a time. False, and nothing done, when any of it was taken
    /// (released) already or is out of range.
    pub fn take(&mut self, run: Run) -> bool {
        let free = self.all(run, |word, mask| word & mask == 0);
        if free {
            self.each(run, |word, mask| *word |= mask);
            self.taken += run.count;
        }
        free
    }

    pub fn are_taken(&self, run: Run) -> bool {
        self.all(run, |word, mask| word & mask == mask)
    }

    pub fn release(&mut self, run: Run) -> bool {
        let taken = self.are_taken(run);
        if taken {
            self.each(run, |word, mask| *word &= !mask);
            self.taken -= run.count;
        }
        taken
    }

    fn all(&self, run: Run, holds: impl Fn(u64, u64) -> bool) -> bool {
        let end = run.first.checked_add(run.count);
        end.is_some_and(|end| end <= self.capacity)
            && words(run).all(|(at, mask)| holds(self.words[at], mask))
    }

    fn each(&mut self, run: Run, change: impl Fn(&mut u64, u64)) {
        words(run).for_each(|(at, mask)| self.change(at, |word| change(word, mask)));
    }

    #[inline]
    fn change(&mut self, at: usize, change: impl FnOnce(&mut u64)) {
        change(&mut self.words[at]);
        let (above, bit) = (&mut self.full[at / WORD as usize], 1 << (at % WORD as usize));
        if self.words[at] == u64::MAX { *above |= bit } else { *above &= !bit }
    }

    /// Choose `count` free numbers, going round from where the last choice ended. Takes nothing yet: the
    /// row that names them does. Fewer come back when fewer are free.
    pub fn choose(&mut self, count: u32) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut left = count.min(self.free());
        let (mut at, mut seen) = (self.cursor % self.capacity.max(1), 0);
        while left > 0 && seen < self.capacity {
            let free = self.free_from(at).min(left).min(self.capacity - seen);
            if free == 0 {
                let skip = self.taken_from(at).min(self.capacity - seen);
                seen += skip;
                at = (at + skip) % self.capacity;
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.first + last.count == at => last.count += free,
                _ => runs.push(Run { first: at, count: free }),
            }
            left -= free;
            seen += free;
            at = (at + free) % self.capacity;
        }
        self.cursor = at;
        runs
    }

    /// Free numbers in a row from `at`, within its word.
    fn free_from(&self, at: u32) -> u32 {
        let word = self.words[(at / WORD) as usize] >> (at % WORD);
        word.trailing_zeros().min(WORD - at % WORD).min(self.capacity - at)
    }

    /// Numbers in a row from `at` that are taken: to the end of its word, or over the full words after it.
    fn taken_from(&self, at: u32) -> u32 {
        let index = (at / WORD) as usize;
        let ones = (self.words[index] >> (at % WORD)).trailing_ones().min(WORD - at % WORD);
        if at % WORD + ones < WORD {
            return ones.min(self.capacity - at);
        }
        let next = self.not_full_from(index + 1).unwrap_or(self.words.len());
        (next as u32 * WORD).min(self.capacity) - at
    }

    /// The first word from `index` on that has something free.
    fn not_full_from(&self, index: usize) -> Option<usize> {
        let width = WORD as usize;
        let first = self.full.get(index / width)? | ((1u64 << (index % width)) - 1);
        if first != u64::MAX {
            return Some(index / width * width + first.trailing_ones() as usize);
        }
        let after = self.full[index / width + 1..].iter().position(|word| *word != u64::MAX)?;
        let at = index / width + 1 + after;
        Some(at * width + self.full[at].trailing_ones() as usize)
    }
}

/// The words that a run touches, and which of their bits.
fn words(run: Run) -> impl Iterator<Item = (usize, u64)> {
    let (mut at, end) = (run.first, run.first + run.count);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let count = (WORD - at % WORD).min(end - at);
        let mask = (u64::MAX >> (WORD - count)) << (at % WORD);
        let word = (at / WORD) as usize;
        at += count;
        Some((word, mask))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_taken_whole_or_not_at_all(taken in prop::collection::vec(0u32..200, 0..20), first in 0u32..220, count in 0u32..150) {
            let mut map = Bitmap::new(200);
            taken.iter().for_each(|n| { map.take_one(*n); });
            let (before, run) = (map.clone(), Run { first, count });
            let free = first + count <= 200 && run.iter().all(|n| !before.is_taken(n));
            prop_assert_eq!(map.take(run), free);
            let expected = (0..200).filter(|n| before.is_taken(*n) || free && run.iter().contains(n));
            prop_assert_eq!(map.taken() as usize, expected.clone().count());
            prop_assert!(expected.clone().all(|n| map.is_taken(n)));
            prop_assert_eq!(map.release(run), first + count <= 200 && run.iter().all(|n| expected.clone().any(|e| e == n)));
        }

        #[test]
        fn choose_gives_each_free_number_once(capacity in prop_oneof![1u32..200, 4000u32..9000], steps in prop::collection::vec((any::<bool>(), prop_oneof![0u32..70, 0u32..5000]), 1..60)) {
            let mut map = Bitmap::new(capacity);
            let mut model = std::collections::BTreeSet::new();
            for (take, n) in steps {
                if take {
                    let runs = map.choose(n);
                    let got: Vec<u32> = runs.iter().flat_map(|r| r.iter()).collect();
                    prop_assert_eq!(got.len() as u32, n.min(capacity - model.len() as u32));
                    for number in got {
                        prop_assert!(number < capacity && model.insert(number));
                        prop_assert!(map.take_one(number));
                    }
                } else if let Some(number) = model.iter().nth(n as usize % model.len().max(1)).copied() {
                    model.remove(&number);
                    prop_assert!(map.release_one(number));
                    prop_assert!(!map.release_one(number));
                }
                prop_assert_eq!(map.taken(), model.len() as u32);
            }
        }
    }
}
