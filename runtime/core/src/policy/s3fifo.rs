//! S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, SOSP 2023): three queues and no order by use.
//!
//! What is new enters `small`, a tenth of the pages. Used twice there, it moves to `main` when its turn to go
//! comes; else it goes, and its identity stays among the ghosts. What comes back while its ghost is there enters
//! `main` at once. In `main`, each use (three count) buys one more round.
//!
//! What stops being a candidate without being evicted (a node that has children now) leaves a ghost too: it is
//! known to be used when it comes back. The paper's capacity is here what the candidates hold together.

use std::collections::BTreeMap;

use super::{Facts, Policy, Score, Verdict};
use crate::chunks::Chunks;

const MOST_USES: u8 = 3;
/// More uses than this take an item from small to main.
const USES_TO_STAY: u8 = 1;
const SMALL_IS_ONE_IN: u64 = 10;
/// Ghosts are as many as the candidates, and at least this many, so that a nearly empty tier has a memory.
const LEAST_GHOSTS: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Lane {
    #[default]
    None,
    Small,
    Main,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Of one that stands in a lane; None of a head that only has the tail's `lane` and `uses` to begin with.
    turn: Option<u64>,
    lane: Lane,
    uses: u8,
    pages: u32,
}

#[derive(Default)]
pub struct S3Fifo {
    places: Chunks<Place>,
    turns: u64,
    pages: [u64; 2],
    items: usize,
    ghosts: BTreeMap<u64, u64>,
    ghosts_by_age: BTreeMap<u64, u64>,
}

impl S3Fifo {
    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn pages_of(&mut self, lane: Lane) -> &mut u64 {
        &mut self.pages[(lane == Lane::Main) as usize]
    }

    /// To the end of a lane.
    fn enqueue(&mut self, item: u32, lane: Lane, uses: u8, pages: u32) -> Score {
        let turn = self.next_turn();
        *self.pages_of(lane) += pages as u64;
        *self.places.entry(item) = Place { turn: Some(turn), lane, uses, pages };
        Score::new((lane == Lane::Main) as i64, turn as i64)
    }

    fn remember(&mut self, identity: u64) {
        self.forget(identity);
        let turn = self.next_turn();
        self.ghosts.insert(identity, turn);
        self.ghosts_by_age.insert(turn, identity);
        while self.ghosts.len() > self.items.max(LEAST_GHOSTS) {
            let Some((_, oldest)) = self.ghosts_by_age.pop_first() else { break };
            self.ghosts.remove(&oldest);
        }
    }

    /// Whether it was there.
    fn forget(&mut self, identity: u64) -> bool {
        let turn = self.ghosts.remove(&identity);
        turn.is_some_and(|turn| self.ghosts_by_age.remove(&turn).is_some())
    }
}

impl Policy for S3Fifo {
    fn name(&self) -> &str {
        "s3fifo"
    }

    fn on_insert(&mut self, item: u32, facts: &Facts) -> Score {
        let place = *self.places.entry(item);
        if let Some(turn) = place.turn {
            let pages = self.pages_of(place.lane);
            *pages = *pages - place.pages as u64 + facts.pages as u64;
            self.places.entry(item).pages = facts.pages;
            return Score::new((place.lane == Lane::Main) as i64, turn as i64);
        }
        self.items += 1;
        let known = self.forget(facts.identity);
        let lane = if known || place.lane == Lane::Main { Lane::Main } else { Lane::Small };
        self.enqueue(item, lane, place.uses, facts.pages)
    }

    fn on_hit(&mut self, item: u32, facts: &Facts) -> Score {
        let place = self.places.entry(item);
        place.uses = (place.uses + 1).min(MOST_USES);
        self.on_insert(item, facts)
    }

    fn on_remove(&mut self, item: u32, identity: u64, evicted: bool) {
        let place = self.places.get(item).copied().unwrap_or_default();
        self.places.clear(item);
        if place.turn.is_none() {
            return;
        }
        self.items -= 1;
        *self.pages_of(place.lane) -= place.pages as u64;
        if !evicted || place.lane == Lane::Small {
            self.remember(identity);
        }
    }

    fn on_split(&mut self, tail: u32, head: u32) {
        let tail = self.places.get(tail).copied().unwrap_or_default();
        *self.places.entry(head) = Place { turn: None, pages: 0, ..tail };
    }

    fn on_victim(&mut self, item: u32, _facts: &Facts) -> Verdict {
        let place = self.places.get(item).copied().unwrap_or_default();
        let uses = match place.lane {
            Lane::Small if place.uses > USES_TO_STAY => 0,
            Lane::Main if place.uses > 0 => place.uses - 1,
            _ => return Verdict::Take,
        };
        *self.pages_of(place.lane) -= place.pages as u64;
        Verdict::Requeue(self.enqueue(item, Lane::Main, uses, place.pages))
    }

    /// At main, unless small has more than its share.
    fn begins_at(&self) -> Option<Score> {
        let [small, main] = self.pages;
        (small * SMALL_IS_ONE_IN <= small + main).then_some(Score::new(1, i64::MIN))
    }
}
