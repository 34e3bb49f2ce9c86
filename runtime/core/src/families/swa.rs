//! Sliding window attention: only the last `window` tokens are read. A length is good when the window before it
//! is whole; what lies further back may be gone, and is worth nothing to this length.

use std::ops::Range;

use super::{Family, Presence, Shape};

#[derive(Debug)]
pub struct Swa {
    /// Pages that a window touches when it ends at a page's end.
    pages: u32,
}

impl Swa {
    pub fn new(window_tokens: u32, page_size: u32) -> Result<Self, String> {
        if window_tokens == 0 {
            return Err("window is 0 tokens; a sliding window has at least 1".into());
        }
        Ok(Swa { pages: window_tokens.div_ceil(page_size.max(1)) })
    }
}

impl Family for Swa {
    fn shape(&self) -> Shape {
        Shape::Spot
    }

    fn reach(&self, there: &dyn Presence, limit: u32) -> u32 {
        let mut length = limit;
        while length > 0 {
            let needed = self.needs(length).start;
            let from = there.back_from(length, needed);
            if from <= needed {
                return length;
            }
            // Every length between the gap at `from - 1` and here has that gap in its window.
            length = from - 1;
        }
        0
    }

    fn needs(&self, length: u32) -> Range<u32> {
        length.saturating_sub(self.pages)..length
    }

    fn keeps(&self, page: u32, landmarks: &[u32]) -> bool {
        landmarks.iter().any(|length| self.needs(*length).contains(&page))
    }
}
