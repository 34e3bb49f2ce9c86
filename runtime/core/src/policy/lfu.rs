//! Least often used first; among those, least recently.

use super::{Facts, Formula, Recency, Score};

pub struct Lfu;

impl Formula for Lfu {
    const NAME: &'static str = "lfu";
    const RECENCY: Recency = Recency::Within;

    fn score(facts: &Facts) -> Score {
        Score::new(facts.uses as i64, facts.last_use)
    }
}
