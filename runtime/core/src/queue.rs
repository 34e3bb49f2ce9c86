//! Who goes first in one tier of one component: candidates in the order of a policy, kept as they change.
//!
//! The order is (class, score, tie, number), lowest first, so that nothing depends on the order of a hash table.
//! Held candidates stand aside in an order of their own: they never go, and are counted when they would have.

use crate::chunks::Chunks;
use crate::policy::{Facts, Policy, Recency, Score, Verdict};
use crate::standings::{self, CLASSES, Candidate, Place, Side, Standings};

/// Candidates used too recently that one search passes before it finds nothing. They stand in the way only of
/// copies that are not worth evicting anything for.
const TOO_RECENT_PASSED: u32 = 1024;

/// A place in the order, and which class it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub class: u8,
    place: Place,
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

pub struct Queue {
    policy: Box<dyn Policy>,
    standings: Box<dyn Standings>,
    /// What the policy was last told of each, where it goes by more than the last use. `now` in it is 0: the time
    /// alone changes nothing.
    facts: Option<Chunks<Option<Box<Facts>>>>,
}

impl Queue {
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let recency = policy.recency();
        let facts = (recency != Recency::Whole).then(Chunks::default);
        Queue { policy, standings: standings::by(recency), facts }
    }

    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// An item may have changed; `hit` when it was used. None: it is no candidate any more, but may be one again.
    /// A hit counts only for one that was a candidate already: entering is no use.
    pub fn place(&mut self, item: u32, standing: Option<Standing>, hit: bool) {
        let before = self.standings.get(item);
        let Some(standing) = standing else {
            return if before.is_some() {
                self.remove(item, false)
            };
        };
        let told = self.facts.as_ref().filter(|_| before.is_some());
        let told = told.and_then(|facts| facts.get(item)?.as_deref());
        let same = told.is_some_and(|told| *told == Facts { now: 0, ..standing.facts });
        let score = match before {
            Some(_) if hit => self.policy.on_hit(item, &standing.facts),
            Some(before) if same => before.score,
            _ => self.policy.on_insert(item, &standing.facts),
        };
        let side = Side::new(standing.class, standing.held);
        self.standings.put(item, Candidate { score, tie: standing.tie, side });
        if !same && let Some(facts) = &mut self.facts {
            *facts.entry(item) = Some(Box::new(Facts { now: 0, ..standing.facts }));
        }
    }

    /// An item is gone, and its number may come again for another. Also for items that are no candidates.
    pub fn remove(&mut self, item: u32, evicted: bool) {
        let told = self.facts.as_mut().and_then(|facts| facts.get_mut(item)?.take());
        self.standings.remove(item);
        self.policy.on_remove(item, told.map_or(0, |facts| facts.identity), evicted);
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
        let open = (0..CLASSES).map(|class| self.standings.count(Side::new(class, false)));
        let mut chances = open.sum::<usize>() * 4;
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
                    let side = Side::new(rank.class, false);
                    self.standings.put(item, Candidate { score, tie: rank.place.tie, side });
                }
                _ => return Some(Victim { item, score_shown: rank.place.score.shown(), rank }),
            }
        }
    }

    /// Held candidates that would have gone before the victim at `rank`, in order. Ask before it leaves.
    pub fn passed_over(&mut self, rank: &Rank) -> impl Iterator<Item = u32> + '_ {
        self.standings.catch_up();
        let (this, rank) = (&*self, *rank);
        let stretches =
            (0..=rank.class).flat_map(move |class| this.stretches().map(move |(from, to)| (class, from, to)));
        let before = stretches.scan(false, move |met, (class, from, to)| {
            let last = *met;
            *met = class == rank.class && (from..=to).contains(&rank.place);
            (!last).then_some((class, from, if *met { rank.place } else { to }))
        });
        before
            .flat_map(move |(class, from, to)| this.standings.range(Side::new(class, true), from..=to))
            .map(|p| p.item)
    }

    /// Candidates, held or not.
    pub fn len(&self) -> usize {
        Side::all().map(|side| self.standings.count(side)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exactly `expected` stand here, each once and as it should. `now` in the facts is not compared.
    pub fn check(&self, expected: &mut dyn Iterator<Item = (u32, Standing)>) -> Result<(), String> {
        let (mut count, name) = (0, self.policy.name());
        for (item, standing) in expected {
            count += 1;
            let Some(candidate) = self.standings.get(item) else {
                return Err(format!("item {item} is missing in the {name} order"));
            };
            if (candidate.tie, candidate.side) != (standing.tie, Side::new(standing.class, standing.held)) {
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
            if !self.standings.is_in_place(item) {
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
        for class in 0..CLASSES {
            for (mut from, to) in self.stretches() {
                'seek: while from <= to {
                    for place in self.standings.range(Side::new(class, false), from..=to) {
                        if older_than.is_none_or(|limit| self.last_use(&place) < limit) {
                            if accept(place.item) {
                                return Some(Rank { class, place });
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
