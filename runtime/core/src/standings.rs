//! Where the candidates of one queue stand: in the order of (class, score, tie, number), those that are held aside.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use hashbrown::DefaultHashBuilder;

use crate::chunks::Chunks;
use crate::ordered::Ordered;
use crate::policy::{Recency, Score};

/// What anybody asked to keep goes last.
pub const CLASSES: u8 = 2;
const SIDES: usize = 2 * CLASSES as usize;

/// A place within a class. Small: there are as many as nodes, in each tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place<S = Score> {
    pub score: S,
    pub tie: u32,
    pub item: u32,
}

impl Place {
    pub const LAST: Place =
        Place { score: Score { first: i64::MAX, then: i64::MAX }, tie: u32::MAX, item: u32::MAX };

    pub fn first(score: Score) -> Self {
        Place { score, tie: 0, item: 0 }
    }
}

/// Which of the orders a candidate stands in: its class, and whether it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side(u8);

impl Side {
    const NOWHERE: Side = Side(u8::MAX);

    pub fn new(class: u8, held: bool) -> Self {
        Side(class + if held { CLASSES } else { 0 })
    }

    pub fn all() -> impl Iterator<Item = Side> {
        (0..SIDES as u8).map(Side)
    }

    fn is_held(self) -> bool {
        self.0 >= CLASSES
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<S = Score> {
    pub score: S,
    pub tie: u32,
    pub side: Side,
}

impl<S: Default> Default for Candidate<S> {
    fn default() -> Self {
        Candidate { score: S::default(), tie: 0, side: Side::NOWHERE }
    }
}

impl<S: Copy> Candidate<S> {
    fn at(self, item: u32) -> Place<S> {
        Place { score: self.score, tie: self.tie, item }
    }
}

/// What a score is kept as. Where the last use is all of it, one number will do: a third less for a place, and for a
/// candidate.
trait Kept: Copy + Ord + Default + Send {
    fn keep(score: Score) -> Self;
    fn score(self) -> Score;
}

impl Kept for Score {
    fn keep(score: Score) -> Self {
        score
    }

    fn score(self) -> Score {
        self
    }
}

impl Kept for i64 {
    fn keep(score: Score) -> Self {
        score.first
    }

    fn score(self) -> Score {
        Score::of(self)
    }
}

/// Whatever scores are kept as.
pub trait Standings: Send {
    /// None for one that is no candidate.
    fn get(&self, item: u32) -> Option<Candidate>;

    /// A candidate stands so from now on. What is used again while it is held, as most of what is used is, takes its
    /// new place only in `catch_up`.
    fn put(&mut self, item: u32, candidate: Candidate);

    /// False for one that was no candidate.
    fn remove(&mut self, item: u32) -> bool;

    fn catch_up(&mut self);

    /// In order. Held ones as they stood at the last `catch_up`.
    fn range(&self, side: Side, range: RangeInclusive<Place>) -> Box<dyn Iterator<Item = Place> + '_>;

    /// Candidates on a side.
    fn count(&self, side: Side) -> usize;

    /// Whether a candidate is found where it should be.
    fn is_in_place(&self, item: u32) -> bool;
}

pub fn by(recency: Recency) -> Box<dyn Standings> {
    match recency {
        Recency::Whole => Box::<By<i64>>::default(),
        Recency::Within | Recency::None => Box::<By<Score>>::default(),
    }
}

#[derive(Default)]
struct By<S> {
    sides: [Ordered<Place<S>>; SIDES],
    candidates: Chunks<Candidate<S>>,
    /// Held candidates that have changed since they took the place in which they still stand.
    late: HashMap<u32, Place<S>, DefaultHashBuilder>,
}

impl<S: Kept> By<S> {
    fn known(&self, item: u32) -> Option<Candidate<S>> {
        self.candidates.get(item).copied().filter(|candidate| candidate.side != Side::NOWHERE)
    }

    /// Take an item from where it stood.
    fn leave(&mut self, item: u32, before: Candidate<S>) {
        let place = self.late.remove(&item).unwrap_or(before.at(item));
        self.sides[before.side.index()].remove(&place);
    }
}

impl<S: Kept> Standings for By<S> {
    fn get(&self, item: u32) -> Option<Candidate> {
        let Candidate { score, tie, side } = self.known(item)?;
        Some(Candidate { score: score.score(), tie, side })
    }

    fn put(&mut self, item: u32, candidate: Candidate) {
        let Candidate { score, tie, side } = candidate;
        let after = Candidate { score: S::keep(score), tie, side };
        let before = std::mem::replace(self.candidates.entry(item), after);
        if before == after {
            return;
        }
        if before.side == side && side.is_held() {
            self.late.entry(item).or_insert(before.at(item));
            return;
        }
        if before.side != Side::NOWHERE {
            self.leave(item, before);
        }
        self.sides[side.index()].insert(after.at(item));
    }

    fn remove(&mut self, item: u32) -> bool {
        let before = self.known(item);
        if let Some(before) = before {
            self.candidates.clear(item);
            self.leave(item, before);
        }
        before.is_some()
    }

    fn catch_up(&mut self) {
        // Draining what was large once costs its size.
        if self.late.is_empty() {
            return;
        }
        for (item, place) in self.late.drain() {
            if let Some(candidate) = self.candidates.get(item) {
                let side = &mut self.sides[candidate.side.index()];
                side.remove(&place);
                side.insert(candidate.at(item));
            }
        }
    }

    fn range(&self, side: Side, range: RangeInclusive<Place>) -> Box<dyn Iterator<Item = Place> + '_> {
        let keep = |place: &Place| Place { score: S::keep(place.score), tie: place.tie, item: place.item };
        let places = self.sides[side.index()].range(keep(range.start())..=keep(range.end()));
        Box::new(places.map(|p| Place { score: p.score.score(), tie: p.tie, item: p.item }))
    }

    fn count(&self, side: Side) -> usize {
        self.sides[side.index()].len()
    }

    fn is_in_place(&self, item: u32) -> bool {
        self.known(item).is_some_and(|candidate| {
            let place = self.late.get(&item).copied().unwrap_or(candidate.at(item));
            self.sides[candidate.side.index()].contains(&place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_takes_a_third_less() {
        assert_eq!((size_of::<Place<i64>>(), size_of::<Candidate<i64>>()), (16, 16));
        assert_eq!((size_of::<Place>(), size_of::<Candidate>()), (24, 24));
    }
}
