//! Oldest first, used or not.

use super::{Facts, Formula, Recency, Score};

pub struct Fifo;

impl Formula for Fifo {
    const NAME: &'static str = "fifo";
    const RECENCY: Recency = Recency::None;

    fn score(facts: &Facts) -> Score {
        Score::of(facts.created)
    }
}
