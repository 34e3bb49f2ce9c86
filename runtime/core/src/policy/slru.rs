//! Segmented LRU: what was used once is on probation and goes before what was used again; least recently used
//! first within each. SGLang's, whose segments have no quota.

use super::{Facts, Formula, Recency, Score};

/// SGLang's `protected_threshold`.
const PROTECTED_FROM_USES: u32 = 2;

pub struct Slru;

impl Formula for Slru {
    const NAME: &'static str = "slru";
    const RECENCY: Recency = Recency::Within;

    fn score(facts: &Facts) -> Score {
        Score::new((facts.uses >= PROTECTED_FROM_USES) as i64, facts.last_use)
    }
}
