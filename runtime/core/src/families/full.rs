//! Full attention: every page from the first on is read by every later token.

use std::ops::Range;

use super::{Family, Presence, Shape};

#[derive(Debug)]
pub struct Full;

impl Family for Full {
    fn shape(&self) -> Shape {
        Shape::Path
    }

    fn reach(&self, there: &dyn Presence, limit: u32) -> u32 {
        there.leading(limit)
    }

    fn needs(&self, length: u32) -> Range<u32> {
        0..length
    }
}
