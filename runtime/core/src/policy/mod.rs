//! Eviction policies: each gives every candidate a score when something happens to it; the lowest score goes
//! first. One file per policy. A policy sees numbers only (`Facts`), never the state, and is asked in the order
//! of the log, so that every rank and every replay gives the same victims.
//!
//! A policy may keep a memory of its own (ghosts, an ageing clock). It is an index, not state: it is in no hash
//! and no keyframe.

mod cost;
mod fifo;
mod lfu;
mod lru;
mod priority;
mod s3fifo;
mod session;
mod slru;
mod tlru;

pub use cost::Cost;
pub use fifo::Fifo;
pub use lfu::Lfu;
pub use lru::Lru;
pub use priority::Priority;
pub use s3fifo::S3Fifo;
pub use session::Session;
pub use slru::Slru;
pub use tlru::Tlru;

pub const NAMES: &[&str] = &["lru", "fifo", "lfu", "slru", "s3fifo", "tlru", "priority", "cost", "session"];

/// What a policy may know of one candidate. Integers only; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    pub now: i64,
    pub created: i64,
    pub last_use: i64,
    pub uses: u32,
    /// Copies in this tier.
    pub pages: u32,
    /// Pages before it on its path.
    pub depth: u32,
    pub page_tokens: u32,
    pub page_bytes: u64,
    /// Of its session; the lowest goes first.
    pub priority: i32,
    /// Open sessions whose path covers it.
    pub sessions: u32,
    /// A later turn of its session took another path.
    pub superseded: bool,
    /// When its last user is expected back; 0 when unknown.
    pub returns_at: i64,
    /// Of its content: the same when the same pages come again.
    pub identity: u64,
}

impl Facts {
    /// Where its copies end, in pages from the start of the path.
    pub fn end(&self) -> u32 {
        self.depth.saturating_add(self.pages)
    }
}

/// The lowest goes first; `then` decides among the same `first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    pub first: i64,
    pub then: i64,
}

impl Score {
    pub const LOWEST: Score = Score { first: i64::MIN, then: i64::MIN };

    pub fn new(first: i64, then: i64) -> Self {
        Score { first, then }
    }

    /// One number decides.
    pub fn of(first: i64) -> Self {
        Score { first, then: 0 }
    }

    /// What the log shows: the number that decides first. What it means is the policy's.
    pub fn shown(self) -> i64 {
        self.first
    }
}

/// What a policy says when its first candidate is about to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Take,
    /// A second chance: it stands at this score from now on. One that is not behind its old score is taken.
    Requeue(Score),
}

/// How the order of scores follows the last use; lets a search for old candidates stop early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recency {
    /// It does not.
    None,
    /// Among the same `first`, the earlier last use goes first.
    Within,
    /// The earlier last use goes first: it is the score, all of it, and `on_victim` is not asked.
    Whole,
}

/// Called in the order of the log. May not panic, read a clock or draw a random number.
pub trait Policy: Send {
    fn name(&self) -> &str;

    /// It became a candidate, or its facts changed other than by a use.
    fn on_insert(&mut self, item: u32, facts: &Facts) -> Score;

    /// A candidate was used; `facts` have the use already.
    fn on_hit(&mut self, item: u32, facts: &Facts) -> Score;

    /// It is a candidate no longer: evicted, gone otherwise, or an interior node again. `identity` is 0 for one
    /// that was none when it went. Its number may come again for something else.
    fn on_remove(&mut self, item: u32, identity: u64, evicted: bool);

    /// `head` is new and has the front pages of `tail`, which keeps its number. Both are the same to history.
    fn on_split(&mut self, _tail: u32, _head: u32) {}

    /// It has the lowest score of all that may go, and `Take` sends it off.
    fn on_victim(&mut self, _item: u32, _facts: &Facts) -> Verdict {
        Verdict::Take
    }

    /// Where the search begins now; it goes on from the lowest score when nothing is found to the end. None:
    /// at the lowest.
    fn begins_at(&self) -> Option<Score> {
        None
    }

    fn recency(&self) -> Recency {
        Recency::None
    }

    /// Whether it may ever have a `fault`.
    fn can_fail(&self) -> bool {
        false
    }

    /// Why this policy has stopped to decide and only answers the last use.
    fn fault(&self) -> Option<&str> {
        None
    }
}

/// A policy that is one formula over the facts, without memory.
pub trait Formula: Send {
    const NAME: &'static str;
    const RECENCY: Recency;

    fn score(facts: &Facts) -> Score;
}

impl<T: Formula> Policy for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn on_insert(&mut self, _item: u32, facts: &Facts) -> Score {
        T::score(facts)
    }

    fn on_hit(&mut self, _item: u32, facts: &Facts) -> Score {
        T::score(facts)
    }

    fn on_remove(&mut self, _item: u32, _identity: u64, _evicted: bool) {}

    fn recency(&self) -> Recency {
        T::RECENCY
    }
}

/// One of `NAMES`; `tlru` also with its settings, as in `tlru(threshold=4096,next_prompt_estimate=512)`.
pub fn by_name(name: &str) -> Option<Box<dyn Policy>> {
    Some(match name {
        "lru" => Box::new(Lru),
        "fifo" => Box::new(Fifo),
        "lfu" => Box::new(Lfu),
        "slru" => Box::new(Slru),
        "s3fifo" => Box::new(S3Fifo::default()),
        "priority" => Box::new(Priority),
        "cost" => Box::new(Cost::default()),
        "session" => Box::new(Session),
        _ => Box::new(Tlru::parse(name)?),
    })
}
