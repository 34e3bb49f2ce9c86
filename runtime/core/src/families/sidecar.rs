//! State that goes with another component's pages (an indexer's keys, a draft model's, the canary's marks): the
//! same rules on slots of its own. It is restored with what it follows, or it shortens the match.

use std::ops::Range;
use std::sync::Arc;

use super::{Family, Presence, Shape};

#[derive(Debug)]
pub struct Sidecar(Arc<dyn Family>);

impl Sidecar {
    pub fn new(followed: Arc<dyn Family>) -> Result<Self, String> {
        if followed.shape() == Shape::Shadow {
            return Err("a sidecar cannot follow spans; let it follow full".into());
        }
        Ok(Sidecar(followed))
    }
}

impl Family for Sidecar {
    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn reach(&self, there: &dyn Presence, limit: u32) -> u32 {
        self.0.reach(there, limit)
    }

    fn needs(&self, length: u32) -> Range<u32> {
        self.0.needs(length)
    }

    fn keeps(&self, page: u32, landmarks: &[u32]) -> bool {
        self.0.keeps(page, landmarks)
    }

    fn plans(&self, computed: Range<u32>, branch: u32) -> Option<Vec<u32>> {
        self.0.plans(computed, branch)
    }
}
