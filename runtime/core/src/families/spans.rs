//! Spans compressed from full attention (DeepSeek-V4's c4 and c128): one entry for every `ratio` tokens, at an
//! index that follows from full's. So they have no slots: page p of the span pool belongs to page p of full's, in
//! every tier, and comes and goes with it.

use std::ops::Range;

use super::{Family, Presence, Shape};

#[derive(Debug)]
pub struct Spans;

impl Spans {
    pub fn new(ratio_tokens: u32, page_size: u32) -> Result<Self, String> {
        if ratio_tokens == 0 || !page_size.is_multiple_of(ratio_tokens) {
            return Err(format!(
                "ratio is {ratio_tokens} tokens; pages of {page_size} tokens must hold whole spans"
            ));
        }
        Ok(Spans)
    }
}

impl Family for Spans {
    fn shape(&self) -> Shape {
        Shape::Shadow
    }

    fn reach(&self, _there: &dyn Presence, limit: u32) -> u32 {
        limit
    }

    fn needs(&self, length: u32) -> Range<u32> {
        0..length
    }
}
