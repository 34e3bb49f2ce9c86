//! One row of the log: a decision and its result. Wide; most fields are empty in most rows.

use std::sync::Arc;

use crate::digest::Digest;
use crate::names::{Kind, Name, Phase, Reason, Tier};
use crate::runs::Run;

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub seq: u64,
    pub clock: i64,
    pub kind: Kind,
    pub phase: Phase,
    pub cause: Option<u64>,
    pub op: Option<u64>,
    pub session: Option<Arc<str>>,
    pub parent_session: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
    pub namespace: Option<u32>,
    pub node: Option<u32>,
    pub parent: Option<u32>,
    pub slot_from: Option<u32>,
    pub page_from: Option<u32>,
    pub pages: Option<u32>,
    pub end_page: Option<u32>,
    pub component: Option<Name>,
    pub tier_from: Option<Tier>,
    pub tier_to: Option<Tier>,
    pub tokens: Option<i64>,
    /// Tokens found, by the fastest tier that had them.
    pub hit_tokens: Option<[i64; 3]>,
    pub bytes: Option<u64>,
    pub duration: Option<i64>,
    pub reason: Reason,
    pub policy: Option<Name>,
    pub score: Option<i64>,
    pub skipped: Option<u32>,
    pub receipt: Option<u64>,
    pub digests: Vec<Digest>,
    pub detail: Option<Arc<str>>,
}

impl Row {
    pub fn new(kind: Kind, phase: Phase) -> Self {
        Row {
            seq: 0,
            clock: 0,
            kind,
            phase,
            cause: None,
            op: None,
            session: None,
            parent_session: None,
            request: None,
            namespace: None,
            node: None,
            parent: None,
            slot_from: None,
            page_from: None,
            pages: None,
            end_page: None,
            component: None,
            tier_from: None,
            tier_to: None,
            tokens: None,
            hit_tokens: None,
            bytes: None,
            duration: None,
            reason: Reason::None,
            policy: None,
            score: None,
            skipped: None,
            receipt: None,
            digests: Vec::new(),
            detail: None,
        }
    }

    /// The slots that the row names; empty when it names none.
    pub fn slots(&self) -> Run {
        match (self.slot_from, self.pages) {
            (Some(first), Some(count)) => Run { first, count },
            _ => Run { first: 0, count: 0 },
        }
    }
}
