//! Lowest priority of the session first; among those, least recently used.

use super::{Facts, Formula, Recency, Score};

pub struct Priority;

impl Formula for Priority {
    const NAME: &'static str = "priority";
    const RECENCY: Recency = Recency::Within;

    fn score(facts: &Facts) -> Score {
        Score::new(facts.priority as i64, facts.last_use)
    }
}
