//! The closed vocabularies of the log. A name never changes its meaning; new ones are appended.

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
    }
}

vocabulary! {
    /// Where bytes can be, fastest first.
    Tier { Device = "device", Host = "host", Storage = "storage" }
}

vocabulary! {
    /// State family that the tree carries.
    Component { Full = "full" }
}

impl Tier {
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}
