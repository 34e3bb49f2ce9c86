//! Runs of consecutive numbers: how slots and pages are named in bulk.

/// `count` numbers from `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: u32,
    pub count: u32,
}

impl Run {
    pub fn iter(self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}

/// An ordered list of numbers, kept as runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    runs: Vec<Run>,
    len: u32,
}

impl Runs {
    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push(&mut self, first: u32, count: u32) {
        if count == 0 {
            return;
        }
        self.len += count;
        match self.runs.last_mut() {
            Some(last) if first.wrapping_sub(last.first) == last.count => last.count += count,
            _ => self.runs.push(Run { first, count }),
        }
    }

    pub fn as_runs(&self) -> &[Run] {
        &self.runs
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.runs.iter().flat_map(|run| run.iter())
    }

    pub fn get(&self, mut index: u32) -> Option<u32> {
        for run in &self.runs {
            if index < run.count {
                return Some(run.first + index);
            }
            index -= run.count;
        }
        None
    }

    /// Numbers at `from..to`.
    pub fn slice(&self, from: u32, to: u32) -> Runs {
        let mut out = Runs::default();
        let mut at = 0;
        for run in &self.runs {
            let begin = from.max(at);
            let end = to.min(at + run.count);
            if begin < end {
                out.push(run.first + (begin - at), end - begin);
            }
            at += run.count;
        }
        out
    }

    /// Keep the numbers before `index`, return the rest.
    pub fn split_off(&mut self, index: u32) -> Runs {
        let tail = self.slice(index, self.len);
        *self = self.slice(0, index);
        tail
    }
}

impl FromIterator<u32> for Runs {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut runs = Runs::default();
        for number in numbers {
            runs.push(number, 1);
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_split_and_find_like_a_plain_list() {
        let numbers = [4, 5, 6, 9, 10, 2, 3, 4];
        let mut runs: Runs = numbers.iter().copied().collect();
        assert_eq!(runs.as_runs().len(), 3);
        for (i, n) in numbers.iter().enumerate() {
            assert_eq!(runs.get(i as u32), Some(*n));
        }
        for from in 0..numbers.len() {
            for to in from..=numbers.len() {
                let slice: Vec<u32> = runs.slice(from as u32, to as u32).iter().collect();
                assert_eq!(slice, &numbers[from..to]);
            }
        }
        let tail = runs.split_off(5);
        assert_eq!(runs.iter().collect::<Vec<_>>(), &numbers[..5]);
        assert_eq!(tail.iter().collect::<Vec<_>>(), &numbers[5..]);
    }
}
