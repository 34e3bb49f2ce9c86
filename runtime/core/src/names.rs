//! The closed vocabularies of the log. A name never changes its meaning; new ones are appended.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($variant),* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

vocabulary! {
    /// What a row is about.
    Kind {
        Config = "config", Request = "request", Match = "match", Insert = "insert", Split = "split",
        Alloc = "alloc", Free = "free", Evict = "evict", Backup = "backup", Load = "load",
        Prefetch = "prefetch", Offload = "offload", Lock = "lock", Session = "session", Tool = "tool",
        Lease = "lease", Hint = "hint", Canary = "canary", Pd = "pd", Rank = "rank",
        Keyframe = "keyframe", Gap = "gap",
    }
}

vocabulary! {
    /// Which step of it.
    Phase {
        None = "", Engine = "engine", Pool = "pool", Namespace = "namespace",
        Open = "open", Advance = "advance", Close = "close",
        Arrival = "arrival", FirstToken = "first_token", Finish = "finish",
        Look = "look", Acquire = "acquire", Extend = "extend", Release = "release",
        Ask = "ask", Grant = "grant", Reserve = "reserve", Commit = "commit", Fail = "fail",
        Abort = "abort", Done = "done", New = "new", Heal = "heal",
        Kept = "kept", Lost = "lost", Marked = "marked",
        Renew = "renew", Expire = "expire",
        Accepted = "accepted", Clipped = "clipped", Deferred = "deferred", Rejected = "rejected",
        Completed = "completed", Expired = "expired",
        Start = "start", End = "end", Check = "check", Violation = "violation", Inject = "inject",
        Component = "component", Gone = "gone", Expect = "expect", Retire = "retire",
    }
}

vocabulary! {
    /// Why. Match reasons, eviction reasons, failures, and the canary's hops.
    Reason {
        None = "",
        NeverStored = "never_stored", Diverged = "diverged", Evicted = "evicted",
        LoadFailed = "load_failed", NamespaceChanged = "namespace_changed", BelowPage = "below_page",
        ComponentGap = "component_gap", PendingWrite = "pending_write", Admission = "admission",
        Unknown = "unknown",
        Pressure = "pressure", Demote = "demote", Flush = "flush", Close = "close", Damaged = "damaged",
        NoRoom = "no_room", Failed = "failed", Aborted = "aborted", Timeout = "timeout",
        Duplicate = "duplicate", Unused = "unused", Empty = "empty",
        Budget = "budget", Locked = "locked", Leased = "leased", Shared = "shared",
        NotStored = "not_stored", NothingToDo = "nothing_to_do", InFlight = "in_flight",
        Compute = "compute", Backup = "backup", Load = "load", Offload = "offload",
        Prefetch = "prefetch", Read = "read", Sweep = "sweep", Peer = "peer",
        OutOfWindow = "out_of_window", Orphaned = "orphaned", Retired = "retired", Raised = "raised",
        Retain = "retain", Share = "share", Observed = "observed", Forgotten = "forgotten",
    }
}

vocabulary! {
    /// Where bytes can be, fastest first.
    Tier { Device = "device", Host = "host", Storage = "storage" }
}

vocabulary! {
    /// What the tree's keys are made of.
    KeyKind { Tokens = "tokens", Pairs = "pairs", Digests = "digests" }
}

vocabulary! {
    /// How a component's pages live in the tree; one file each in `families`.
    FamilyName { Full = "full", Swa = "swa", Mamba = "mamba", Sidecar = "sidecar", Spans = "spans" }
}

/// A component's or policy's name: chosen by whoever configures an engine, compared by many rows.
pub type Name = &'static str;

/// Names are kept for good, so that rows can point at them. A log of somebody else's making cannot fill memory:
/// beyond this many the next one is refused.
const MOST_NAMES: usize = 4096;

pub fn name(text: &str) -> Option<Name> {
    static NAMES: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(text) {
        return Some(known);
    }
    if names.len() >= MOST_NAMES {
        return None;
    }
    let kept: Name = Box::leak(text.to_string().into_boxed_str());
    names.insert(kept);
    Some(kept)
}

impl Tier {
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}
