//! What is cheapest to compute again for the room it takes goes first; among those, least recently used.
//!
//! GreedyDual-Size (Cao and Irani, 1997): a score is the cost per byte plus the clock of the last use, and the
//! clock moves up to the score of what goes. So what is dear and never used again leaves in the end.

use super::{Facts, Policy, Recency, Score, Verdict};
use crate::chunks::Chunks;

/// Tokens of context at which attention costs as much as the rest of the model: 2 × parameters over
/// 4 × layers × width, between 13k and 33k for dense models of 1B to 70B.
const PARITY_TOKENS: u128 = 16_384;
/// Cost is in tokens per byte, in fixed point with this many bits after the point.
const FRACTION_BITS: u32 = 32;

#[derive(Default)]
pub struct Cost {
    clock: i64,
    /// The clock at each item's last use. 0 is also right for what was never seen.
    since: Chunks<Option<i64>>,
}

/// Attention to all that stands before makes a token's cost grow with its position.
fn cost_per_byte(facts: &Facts) -> i64 {
    let page_tokens = facts.page_tokens as u128;
    let tokens = facts.pages as u128 * page_tokens;
    let before = facts.depth as u128 * page_tokens;
    let bytes = facts.pages as u128 * facts.page_bytes.max(1) as u128;
    let cost = tokens * (PARITY_TOKENS + before + tokens / 2);
    i64::try_from((cost << FRACTION_BITS) / PARITY_TOKENS / bytes.max(1)).unwrap_or(i64::MAX)
}

impl Cost {
    fn score(&self, item: u32, facts: &Facts) -> Score {
        let since = self.since.get(item).copied().flatten().unwrap_or(0);
        Score::new(since.saturating_add(cost_per_byte(facts)), facts.last_use)
    }
}

impl Policy for Cost {
    fn name(&self) -> &str {
        "cost"
    }

    fn on_insert(&mut self, item: u32, facts: &Facts) -> Score {
        self.since.entry(item).get_or_insert(self.clock);
        self.score(item, facts)
    }

    fn on_hit(&mut self, item: u32, facts: &Facts) -> Score {
        *self.since.entry(item) = Some(self.clock);
        self.score(item, facts)
    }

    fn on_remove(&mut self, item: u32, _identity: u64, _evicted: bool) {
        self.since.clear(item);
    }

    fn on_split(&mut self, tail: u32, head: u32) {
        *self.since.entry(head) = self.since.get(tail).copied().flatten();
    }

    fn on_victim(&mut self, item: u32, facts: &Facts) -> Verdict {
        self.clock = self.clock.max(self.score(item, facts).first);
        Verdict::Take
    }

    fn recency(&self) -> Recency {
        Recency::Within
    }
}
