//! By what sessions will still do with it: superseded first, then what no open session covers, then what one
//! does, the latest expected return first. Who is due, or whose return is unknown, may come any moment and goes
//! last. Least recently used first within each.

use super::{Facts, Policy, Recency, Score, Verdict};

const SUPERSEDED: i64 = i64::MIN;
const UNREFERENCED: i64 = i64::MIN + 1;
const ANY_MOMENT: i64 = 0;

pub struct Session;

fn score(facts: &Facts) -> Score {
    let first = if facts.superseded {
        SUPERSEDED
    } else if facts.sessions == 0 {
        UNREFERENCED
    } else if facts.returns_at > facts.now {
        (-facts.returns_at).clamp(UNREFERENCED + 1, ANY_MOMENT)
    } else {
        ANY_MOMENT
    };
    Score::new(first, facts.last_use)
}

impl Policy for Session {
    fn name(&self) -> &str {
        "session"
    }

    fn on_insert(&mut self, _item: u32, facts: &Facts) -> Score {
        score(facts)
    }

    fn on_hit(&mut self, _item: u32, facts: &Facts) -> Score {
        score(facts)
    }

    fn on_remove(&mut self, _item: u32, _identity: u64, _evicted: bool) {}

    /// The time of a return may have come since it was scored. It was scored before all that are due, so it
    /// cannot be overlooked.
    fn on_victim(&mut self, _item: u32, facts: &Facts) -> Verdict {
        let due = !facts.superseded && facts.sessions > 0 && facts.returns_at <= facts.now;
        if due { Verdict::Requeue(score(facts)) } else { Verdict::Take }
    }

    fn recency(&self) -> Recency {
        Recency::Within
    }
}
