//! Least recently used first.

use super::{Facts, Formula, Recency, Score};

pub struct Lru;

impl Formula for Lru {
    const NAME: &'static str = "lru";
    const RECENCY: Recency = Recency::Whole;

    fn score(facts: &Facts) -> Score {
        Score::of(facts.last_use)
    }
}
