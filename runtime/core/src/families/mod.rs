//! How each family of state lives in the tree: the one place where they differ. A new family is one file.

pub mod full;
pub mod mamba;
pub mod sidecar;
pub mod spans;
pub mod swa;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::names::FamilyName;

/// What kind of slots a component has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One after the other from the root on; held by node, evicted from the tail. `full` has one for every page: a
    /// lost page is a named hole.
    Path,
    /// Only where there are bytes; held slot by slot, any of them can be evicted.
    Spot,
    /// None: its page lies wherever `full`'s does.
    Shadow,
}

/// Which pages of a path have a copy that can be used, for one component.
pub trait Presence {
    /// Leading pages that are all there, at most `limit`.
    fn leading(&self, limit: u32) -> u32;
    /// Where the stretch without a gap begins that ends just before page `end`; `end` when that page is missing.
    /// Need not look below `enough`.
    fn back_from(&self, end: u32, enough: u32) -> u32;
    /// The last page before `limit` that is there.
    fn last_before(&self, limit: u32) -> Option<u32>;
}

/// The rules of one family. Lengths and positions are pages from the start of the sequence; a length of 0 can
/// always be resumed, from nothing.
pub trait Family: Debug + Send + Sync {
    fn shape(&self) -> Shape;

    /// The longest length, at most `limit`, at which this state can be resumed.
    fn reach(&self, there: &dyn Presence, limit: u32) -> u32;

    /// The pages that a request which resumes at `length` reads.
    fn needs(&self, length: u32) -> Range<u32>;

    /// Whether a computed page is worth keeping, for those who will resume at one of `landmarks`: the end of the
    /// computation, where others leave the path, and where any component makes a checkpoint.
    fn keeps(&self, _page: u32, _landmarks: &[u32]) -> bool {
        true
    }

    /// Pages to reserve for a computation, when they are not simply all of it. `branch`: a length at which other
    /// requests leave this path, 0 for none.
    fn plans(&self, _computed: Range<u32>, _branch: u32) -> Option<Vec<u32>> {
        None
    }
}

/// What a component is made from: a family, the component it follows, and the family's number (swa: window in
/// tokens; mamba: pages between checkpoints, 0 for none; spans: tokens to one entry).
pub fn make(
    family: FamilyName,
    number: u32,
    page_size: u32,
    follows: Option<&Arc<dyn Family>>,
) -> Result<Arc<dyn Family>, String> {
    Ok(match family {
        FamilyName::Full => Arc::new(full::Full),
        FamilyName::Swa => Arc::new(swa::Swa::new(number, page_size)?),
        FamilyName::Mamba => Arc::new(mamba::Mamba { interval: number }),
        FamilyName::Spans => Arc::new(spans::Spans::new(number, page_size)?),
        FamilyName::Sidecar => {
            let followed = follows.ok_or("a sidecar follows a component; name it")?;
            Arc::new(sidecar::Sidecar::new(followed.clone())?)
        }
    })
}
