//! Who goes first in one tier of one component: candidates in the order of a policy, kept as they change.
//!
//! The order is (class, score, tie, number), lowest first, so that nothing depends on the order of a hash table.
//! Held candidates stand aside in an order of their own: they never go, and are counted when they would have. What is
//! used again while it is held, as most of what is used is, moves there only when somebody looks.

use std::collections::HashMap;

use hashbrown::DefaultHashBuilder;

use crate::chunks::Chunks;
use crate::ordered::Ordered;
use crate::policy::{Facts, Policy, Recency, Score, Verdict};

/// Candidates used too recently that one search passes before it finds nothing. They stand in the way only of
/// copies that are not worth evicting anything for.
const TOO_RECENT_PASSED: u32 = 1024;
/// What anybody asked to keep goes last.
const CLASSES: usize = 2;

/// A place in the order, and which class it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub class: u8,
    place: Place,
}

/// A place within a class. Small: there are as many as nodes, in each tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    score: Score,
    tie: u32,
    item: u32,
}

impl Place {
    fn first(score: Score) -> Self {
        Place { score, tie: 0, item: 0 }
    }

    const LAST: Place =
        Place { score: Score { first: i64::MAX, then: i64::MAX }, tie: u32::MAX, item: u32::MAX };
}

/// What a candidate is, and how it stands beside the policy's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    pub facts: Facts,
    /// Before the score: all of class 0 go before those of class 1.
    pub class: u8,
    pub held: bool,
    /// After the score: the lower goes first.
    pub tie: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Victim {
    pub item: u32,
    pub score_shown: i64,
    pub rank: Rank,
}

/// Where an item stands; `side` is NOWHERE for one that is no candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    score: Score,
    tie: u32,
    side: u8,
}

const NOWHERE: u8 = u8::MAX;
const HELD: u8 = CLASSES as u8;

impl Default for Candidate {
    fn default() -> Self {
        Candidate { score: Score::default(), tie: 0, side: NOWHERE }
    }
}

impl Candidate {
    fn place(&self, item: u32) -> Place {
        Place { score: self.score, tie: self.tie, item }
    }
}

fn side(class: u8, held: bool) -> u8 {
    class + if held { HELD } else { 0 }
}

pub struct Queue {
    policy: Box<dyn Policy>,
    /// By class: those that may go, then those that are held.
    sides: [Ordered<Place>; 2 * CLASSES],
    candidates: Chunks<Candidate>,
    /// Held candidates that have changed since they took the place in which they still stand.
    late: HashMap<u32, Place, DefaultHashBuilder>,
    /// What the policy was last told of each, where it goes by more than the last use. `now` in it is 0: the time
    /// alone changes nothing.
    facts: Option<Chunks<Option<Box<Facts>>>>,
}

impl Queue {
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let facts = (policy.recency() != Recency::Whole).then(Chunks::default);
        let (sides, candidates, late) = Default::default();
        Queue { policy, sides, candidates, late, facts }
    }

    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// An item may have changed; `hit` when it was used. None: it is no candidate any more, but may be one again.
    /// A hit counts only for one that was a candidate already: entering is no use.
    pub fn place(&mut self, item: u32, standing: Option<Standing>, hit: bool) {
        let before = self.candidates.get(item).copied().unwrap_or_default();
        let known = before.side != NOWHERE;
        let Some(standing) = standing else {
            return if known {
                self.remove(item, false)
            };
        };
        let told = self.facts.as_ref().filter(|_| known).and_then(|facts| facts.get(item)?.as_deref());
        let same = told.is_some_and(|told| *told == Facts { now: 0, ..standing.facts });
        let score = match () {
            () if known && hit => self.policy.on_hit(item, &standing.facts),
            () if same => before.score,
            () => self.policy.on_insert(item, &standing.facts),
        };
        let after = Candidate { score, tie: standing.tie, side: side(standing.class, standing.held) };
        if after != before {
            *self.candidates.entry(item) = after;
            if known && before.side == after.side && after.side >= HELD {
                self.late.entry(item).or_insert(before.place(item));
            } else {
                self.leave(item, &before);
                self.sides[after.side as usize].insert(after.place(item));
            }
        }
        if !same && let Some(facts) = &mut self.facts {
            *facts.entry(item) = Some(Box::new(Facts { now: 0, ..standing.facts }));
        }
    }

    /// An item is gone, and its number may come again for another. Also for items that are no candidates.
    pub fn remove(&mut self, item: u32, evicted: bool) {
        let before = self.candidates.get(item).copied().unwrap_or_default();
        let told = self.facts.as_mut().and_then(|facts| facts.get_mut(item)?.take());
        if before.side != NOWHERE {
            self.candidates.clear(item);
            self.leave(item, &before);
        }
        self.policy.on_remove(item, told.map_or(0, |facts| facts.identity), evicted);
    }

    /// Take an item from where it stood.
    fn leave(&mut self, item: u32, before: &Candidate) {
        if before.side != NOWHERE {
            let place = self.late.remove(&item).unwrap_or(before.place(item));
            self.sides[before.side as usize].remove(&place);
        }
    }

    /// Held candidates take the places that are theirs now.
    fn catch_up(&mut self) {
        for (item, place) in self.late.drain() {
            if let Some(candidate) = self.candidates.get(item) {
                let side = &mut self.sides[candidate.side as usize];
                side.remove(&place);
                side.insert(candidate.place(item));
            }
        }
    }

    /// `head` is new and took the front pages of `tail`. Before either is placed.
    pub fn split(&mut self, tail: u32, head: u32) {
        self.policy.on_split(tail, head);
    }

    /// Who goes now: the first that is not held, that `accept` takes, and that was last used before `older_than`.
    /// It stays until it is placed or removed. The policy may give second chances, so `accept` may be asked about
    /// an item more than once, and must answer the same.
    pub fn next(
        &mut self,
        older_than: Option<i64>,
        now: i64,
        accept: &mut dyn FnMut(u32) -> bool,
    ) -> Option<Victim> {
        // What a policy of ours grants: a move to main, and three rounds there.
        let mut chances = self.sides[..CLASSES].iter().map(Ordered::len).sum::<usize>() * 4;
        loop {
            let rank = self.search(older_than, accept)?;
            let item = rank.place.item;
            let facts = self.facts.as_ref().and_then(|facts| facts.get(item)?.as_deref()).copied();
            let verdict = match facts {
                Some(facts) if chances > 0 => self.policy.on_victim(item, &Facts { now, ..facts }),
                _ => Verdict::Take,
            };
            match verdict {
                Verdict::Requeue(score) if score > rank.place.score => {
                    chances -= 1;
                    self.candidates.entry(item).score = score;
                    let open = &mut self.sides[rank.class as usize];
                    open.remove(&rank.place);
                    open.insert(Place { score, ..rank.place });
                }
                _ => return Some(Victim { item, score_shown: rank.place.score.shown(), rank }),
            }
        }
    }

    /// Held candidates that would have gone before the victim at `rank`, in order. Ask before it leaves.
    pub fn passed_over(&mut self, rank: &Rank) -> impl Iterator<Item = u32> + '_ {
        self.catch_up();
        let (this, rank) = (&*self, *rank);
        let stretches =
            (0..=rank.class).flat_map(move |class| this.stretches().map(move |(from, to)| (class, from, to)));
        let before = stretches.scan(false, move |met, (class, from, to)| {
            let last = *met;
            *met = class == rank.class && (from..=to).contains(&rank.place);
            (!last).then_some((class, from, if *met { rank.place } else { to }))
        });
        before
            .flat_map(move |(class, from, to)| this.sides[side(class, true) as usize].range(from..=to))
            .map(|p| p.item)
    }

    /// Candidates, held or not.
    pub fn len(&self) -> usize {
        self.sides.iter().map(Ordered::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.sides.iter().all(Ordered::is_empty)
    }

    /// Exactly `expected` stand here, each once and as it should. `now` in the facts is not compared.
    pub fn check(&self, expected: &mut dyn Iterator<Item = (u32, Standing)>) -> Result<(), String> {
        let (mut count, name) = (0, self.policy.name());
        for (item, standing) in expected {
            count += 1;
            let candidate = self.candidates.get(item).copied().unwrap_or_default();
            if candidate.side == NOWHERE {
                return Err(format!("item {item} is missing in the {name} order"));
            }
            if (candidate.tie, candidate.side) != (standing.tie, side(standing.class, standing.held)) {
                return Err(format!(
                    "item {item} stands as {candidate:?} in the {name} order, not as {standing:?}"
                ));
            }
            let facts = Facts { now: 0, ..standing.facts };
            let told =
                self.facts.as_ref().map(|told| told.get(item).and_then(|facts| facts.as_deref()).copied());
            if told.is_some_and(|told| told != Some(facts)) {
                return Err(format!(
                    "item {item} was told of as {told:?} in the {name} order, and is {facts:?}"
                ));
            }
            if self.facts.is_none() && candidate.score.first != facts.last_use {
                return Err(format!(
                    "item {item} has the score {:?} in the {name} order, and is {facts:?}",
                    candidate.score
                ));
            }
            let place = self.late.get(&item).copied().unwrap_or(candidate.place(item));
            if !self.sides[candidate.side as usize].contains(&place) {
                return Err(format!("item {item} has lost its place in the {name} order"));
            }
        }
        if count != self.len() {
            return Err(format!("the {name} order has {} items of which {count} are candidates", self.len()));
        }
        Ok(())
    }

    /// The parts of one class, in the order of a search.
    fn stretches(&self) -> impl Iterator<Item = (Place, Place)> + use<> {
        let lowest = Place::first(Score::LOWEST);
        let (from, rest) = match self.policy.begins_at() {
            None => (lowest, None),
            Some(score) => {
                let from = Place::first(score);
                (from, Some((lowest, from)))
            }
        };
        std::iter::once((from, Place::LAST)).chain(rest)
    }

    fn search(&self, older_than: Option<i64>, accept: &mut dyn FnMut(u32) -> bool) -> Option<Rank> {
        let mut too_recent = 0;
        for class in 0..CLASSES as u8 {
            for (mut from, to) in self.stretches() {
                'seek: while from <= to {
                    for place in self.sides[class as usize].range(from..=to) {
                        if older_than.is_none_or(|limit| self.last_use(place) < limit) {
                            if accept(place.item) {
                                return Some(Rank { class, place: *place });
                            }
                            continue;
                        }
                        too_recent += 1;
                        if too_recent > TOO_RECENT_PASSED {
                            return None;
                        }
                        match self.policy.recency() {
                            Recency::None => continue,
                            Recency::Whole => break 'seek,
                            Recency::Within if place.score.first == i64::MAX => break 'seek,
                            Recency::Within => {
                                from = Place::first(Score::new(place.score.first + 1, i64::MIN));
                                continue 'seek;
                            }
                        }
                    }
                    break;
                }
            }
        }
        None
    }

    fn last_use(&self, place: &Place) -> i64 {
        match &self.facts {
            Some(facts) => facts.get(place.item).and_then(|f| f.as_deref()).map_or(i64::MAX, |f| f.last_use),
            None => place.score.first,
        }
    }
}
