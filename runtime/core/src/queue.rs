//! Who goes first in one tier of one component: candidates in the order of a policy, kept as they change.
//!
//! The order is (class, score, tie, number), lowest first, so that nothing depends on the order of a hash table.
//! Held candidates stand aside in an order of their own: they never go, and are counted when they would have.

use std::collections::BTreeSet;

use crate::chunks::Chunks;
use crate::policy::{Facts, Policy, Recency, Score, Verdict};

/// Candidates used too recently that one search passes before it finds nothing. They stand in the way only of
/// copies that are not worth evicting anything for.
const TOO_RECENT_PASSED: u32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub class: u8,
    pub score: Score,
    pub tie: u64,
    pub item: u32,
}

impl Rank {
    fn first(class: u8, score: Score) -> Self {
        Rank { class, score, tie: 0, item: 0 }
    }

    fn last(class: u8) -> Self {
        Rank { class, score: Score::new(i64::MAX, i64::MAX), tie: u64::MAX, item: u32::MAX }
    }
}

/// What a candidate is, and how it stands beside the policy's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    pub facts: Facts,
    /// Before the score: all of a lower class go first.
    pub class: u8,
    pub held: bool,
    /// After the score: the lower goes first.
    pub tie: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Victim {
    pub item: u32,
    pub score_shown: i64,
    pub rank: Rank,
}

/// `standing.facts.now` is 0: the time alone changes nothing.
#[derive(Clone, Debug)]
struct Candidate {
    standing: Standing,
    score: Score,
}

impl Candidate {
    fn rank(&self, item: u32) -> Rank {
        Rank { class: self.standing.class, score: self.score, tie: self.standing.tie, item }
    }
}

pub struct Queue {
    policy: Box<dyn Policy>,
    open: BTreeSet<Rank>,
    held: BTreeSet<Rank>,
    /// By item. Most items are no candidates: those cost a pointer.
    candidates: Chunks<Option<Box<Candidate>>>,
}

impl Queue {
    pub fn new(policy: Box<dyn Policy>) -> Self {
        Queue { policy, open: BTreeSet::new(), held: BTreeSet::new(), candidates: Chunks::default() }
    }

    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// An item may have changed; `hit` when it was used. None: it is no candidate any more, but may be one again.
    /// A hit counts only for one that was a candidate already: entering is no use.
    pub fn place(&mut self, item: u32, standing: Option<Standing>, hit: bool) {
        let before = self.candidates.get_mut(item).and_then(Option::as_mut);
        let (mut standing, before) = match (standing, before) {
            (None, None) => return,
            (None, Some(_)) => return self.remove(item, false),
            (Some(standing), before) => (standing, before),
        };
        let facts = standing.facts;
        standing.facts.now = 0;
        let Some(candidate) = before else {
            let score = self.policy.on_insert(item, &facts);
            let candidate = Candidate { standing, score };
            side(&mut self.open, &mut self.held, standing.held).insert(candidate.rank(item));
            *self.candidates.entry(item) = Some(Box::new(candidate));
            return;
        };
        if candidate.standing == standing && !hit {
            return;
        }
        let (rank, held) = (candidate.rank(item), candidate.standing.held);
        if hit {
            candidate.score = self.policy.on_hit(item, &facts);
        } else if candidate.standing.facts != standing.facts {
            candidate.score = self.policy.on_insert(item, &facts);
        }
        candidate.standing = standing;
        let now = candidate.rank(item);
        if (rank, held) != (now, standing.held) {
            side(&mut self.open, &mut self.held, held).remove(&rank);
            side(&mut self.open, &mut self.held, standing.held).insert(now);
        }
    }

    /// An item is gone, and its number may come again for another. Also for items that are no candidates.
    pub fn remove(&mut self, item: u32, evicted: bool) {
        let Some(candidate) = self.candidates.get_mut(item).and_then(Option::take) else {
            return self.policy.on_remove(item, 0, evicted);
        };
        side(&mut self.open, &mut self.held, candidate.standing.held).remove(&candidate.rank(item));
        self.policy.on_remove(item, candidate.standing.facts.identity, evicted);
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
        let mut chances = self.open.len() * 4;
        loop {
            let rank = self.search(older_than, accept)?;
            let candidate = self.candidates.get_mut(rank.item)?.as_mut()?;
            let facts = Facts { now, ..candidate.standing.facts };
            let verdict = if chances > 0 { self.policy.on_victim(rank.item, &facts) } else { Verdict::Take };
            match verdict {
                Verdict::Requeue(score) if score > rank.score => {
                    chances -= 1;
                    candidate.score = score;
                    self.open.remove(&rank);
                    self.open.insert(candidate.rank(rank.item));
                }
                _ => return Some(Victim { item: rank.item, score_shown: rank.score.shown(), rank }),
            }
        }
    }

    /// Held candidates that would have gone before the victim at `rank`, in order. Ask before it leaves.
    pub fn passed_over(&self, rank: &Rank) -> impl Iterator<Item = u32> + '_ {
        let rank = *rank;
        let stretches = (0..=rank.class).flat_map(move |class| self.stretches(class));
        let before = stretches.scan(false, move |met, (from, to)| {
            let last = *met;
            *met = (from..=to).contains(&rank);
            (!last).then_some((from, if *met { rank } else { to }))
        });
        before.flat_map(|(from, to)| self.held.range(from..=to)).map(|r| r.item)
    }

    /// Candidates, held or not.
    pub fn len(&self) -> usize {
        self.open.len() + self.held.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exactly `expected` stand here, each once and as it should. `now` in the facts is not compared.
    pub fn check(&self, expected: &mut dyn Iterator<Item = (u32, Standing)>) -> Result<(), String> {
        let mut count = 0;
        for (item, mut standing) in expected {
            count += 1;
            standing.facts.now = 0;
            let Some(candidate) = self.candidates.get(item).and_then(Option::as_ref) else {
                return Err(format!("item {item} is missing in the {} order", self.policy.name()));
            };
            if candidate.standing != standing {
                let (is, name) = (&candidate.standing, self.policy.name());
                return Err(format!("item {item} stands as {is:?} in the {name} order, not as {standing:?}"));
            }
            let side = if standing.held { &self.held } else { &self.open };
            if !side.contains(&candidate.rank(item)) {
                return Err(format!("item {item} has lost its place in the {} order", self.policy.name()));
            }
        }
        if count != self.len() {
            let (len, name) = (self.len(), self.policy.name());
            return Err(format!("the {name} order has {len} items of which {count} are candidates"));
        }
        Ok(())
    }

    /// The parts of one class, in the order of a search.
    fn stretches(&self, class: u8) -> impl Iterator<Item = (Rank, Rank)> + use<> {
        let lowest = Rank::first(class, Score::LOWEST);
        let (from, rest) = match self.policy.begins_at() {
            None => (lowest, None),
            Some(score) => {
                let from = Rank::first(class, score);
                (from, Some((lowest, from)))
            }
        };
        std::iter::once((from, Rank::last(class))).chain(rest)
    }

    fn search(&self, older_than: Option<i64>, accept: &mut dyn FnMut(u32) -> bool) -> Option<Rank> {
        let mut too_recent = 0;
        let mut class = self.open.first()?.class;
        loop {
            for (mut from, to) in self.stretches(class) {
                'seek: while from <= to {
                    for rank in self.open.range(from..=to) {
                        if older_than.is_none_or(|limit| self.last_use(rank.item) < limit) {
                            if accept(rank.item) {
                                return Some(*rank);
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
                            Recency::Within if rank.score.first == i64::MAX => break 'seek,
                            Recency::Within => {
                                from = Rank::first(class, Score::new(rank.score.first + 1, i64::MIN));
                                continue 'seek;
                            }
                        }
                    }
                    break;
                }
            }
            let above = Rank::first(class.checked_add(1)?, Score::LOWEST);
            class = self.open.range(above..).next()?.class;
        }
    }

    fn last_use(&self, item: u32) -> i64 {
        let candidate = self.candidates.get(item).and_then(Option::as_ref);
        candidate.map_or(i64::MAX, |c| c.standing.facts.last_use)
    }
}

fn side<'a>(
    open: &'a mut BTreeSet<Rank>,
    held: &'a mut BTreeSet<Rank>,
    is_held: bool,
) -> &'a mut BTreeSet<Rank> {
    if is_held { held } else { open }
}
