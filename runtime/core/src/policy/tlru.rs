//! Tail-optimized LRU (Zhang, Li, Moallemi and Peng, arXiv 2510.15152), SGLang's `tlru`: first goes what the next
//! turn could compute again and still prefill no more than `threshold` tokens; then the least recently used.
//!
//! A turn of a conversation of L tokens, of which the first k are cached, prefills L + estimate - k. So the page
//! [a, b) at the end of what is cached is free to go while L + estimate - a <= threshold.
//!
//! L counts what was evicted since, or a trimmed conversation would be trimmed again, down to nothing. It is
//! remembered by item: the longest it was while a candidate, and a split gives the head what the tail had. A node
//! whose later children are all gone counts to its own end only: its pages may go a little early.

use super::{Facts, Policy, Recency, Score};
use crate::chunks::Chunks;

const THRESHOLD_TOKENS: u64 = 4096;
const NEXT_PROMPT_TOKENS: u64 = 512;

pub struct Tlru {
    threshold: u64,
    next_prompt_estimate: u64,
    /// Pages of the path up to the end of each item, those included that were evicted from its end.
    ends: Chunks<u32>,
}

impl Tlru {
    /// Both in tokens.
    pub fn new(threshold: u64, next_prompt_estimate: u64) -> Self {
        Tlru { threshold, next_prompt_estimate, ends: Chunks::default() }
    }

    /// `tlru`, or `tlru(threshold=4096,next_prompt_estimate=512)` with either or both.
    pub fn parse(text: &str) -> Option<Self> {
        let mut made = Tlru::new(THRESHOLD_TOKENS, NEXT_PROMPT_TOKENS);
        let settings = text.strip_prefix("tlru")?;
        if settings.is_empty() {
            return Some(made);
        }
        for setting in settings.strip_prefix('(')?.strip_suffix(')')?.split(',') {
            let (name, value) = setting.split_once('=')?;
            let value = value.trim().parse().ok()?;
            match name.trim() {
                "threshold" => made.threshold = value,
                "next_prompt_estimate" => made.next_prompt_estimate = value,
                _ => return None,
            }
        }
        Some(made)
    }

    fn score(&mut self, item: u32, facts: &Facts) -> Score {
        let end = self.ends.entry(item);
        *end = facts.end().max(*end);
        let page_tokens = facts.page_tokens as u64;
        let next_turn = (*end as u64 * page_tokens).saturating_add(self.next_prompt_estimate);
        let left = facts.end().saturating_sub(1) as u64 * page_tokens;
        let needed = next_turn - left > self.threshold;
        Score::new(needed as i64, facts.last_use)
    }
}

impl Policy for Tlru {
    fn name(&self) -> &str {
        "tlru"
    }

    fn on_insert(&mut self, item: u32, facts: &Facts) -> Score {
        self.score(item, facts)
    }

    fn on_hit(&mut self, item: u32, facts: &Facts) -> Score {
        self.score(item, facts)
    }

    fn on_remove(&mut self, item: u32, _identity: u64, _evicted: bool) {
        self.ends.clear(item);
    }

    fn on_split(&mut self, tail: u32, head: u32) {
        *self.ends.entry(head) = self.ends.get(tail).copied().unwrap_or(0);
    }

    fn recency(&self) -> Recency {
        Recency::Within
    }
}
