//! Everything that can be said to the core, as one encodable enum: what a journal keeps and a replay repeats.

use std::borrow::Cow;
use std::sync::Arc;

use crate::commit::Commit;
use crate::config::{ComponentConfig, Config};
use crate::core::Core;
use crate::find::{Ask, Match};
use crate::hints::Outcome;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::refusal::{Answer, Refusal};
use crate::reserve::Reservation;
use crate::restore::Restore;
use crate::row::Row;
use crate::wire::{Wire, fields};

macro_rules! commands {
    ($($tag:literal $name:ident { $($field:ident: $t:ty),* })*) => {
        #[derive(Clone, Debug, PartialEq)]
        pub enum Command<'a> { $($name { $($field: $t),* },)* }

        impl Command<'_> {
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Command::$name { $($field),* } => { out.push($tag); $($field.put(out);)* })*
                }
            }

            pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Command<'static>> {
                match u8::get(bytes)? {
                    $($tag => Some(Command::$name { $($field: Wire::get(bytes)?),* }),)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    1 OpenSession { session: String, parent: String, group: String, priority: i32 }
    2 CloseSession { session: String }
    3 Look { session: Cow<'a, str>, request: Cow<'a, str>, namespace: u32, skip: u32, key: Cow<'a, [u8]> }
    4 Acquire {
        session: Cow<'a, str>, request: Cow<'a, str>, namespace: u32, skip: u32, key: Cow<'a, [u8]>, grid: u32
    }
    5 Release { receipt: u64 }
    6 Restore { receipt: u64, into: Option<Vec<u32>> }
    7 Reserve { receipt: u64, pages: u32, start: Option<u32> }
    8 Commit { op: u64, key: Cow<'a, [u8]>, skip: u32, start: u32, pages: u32 }
    9 Abort { op: u64, reason: Reason }
    10 Complete { op: u64, results: Vec<u8>, bytes: u64, duration: i64, detail: String }
    11 Damaged { tier: Tier, slot: u32, generation: u32 }
    12 Pin { session: String, tier: Tier, ttl: i64, owner: String }
    13 Unpin { lease: u64 }
    14 Demote { session: String, owner: String }
    15 Prefetch { session: String, owner: String }
    16 Flush { session: String, owner: String }
    17 Tick { }
    18 Note { note: Note }
    19 OpenNamespace { name: String }
    20 Retire { namespace: u32 }
    21 Retain { session: String, ttl: i64, owner: String }
    22 Share { session: String, forks: u32, ttl: i64, owner: String }
    23 Expect { session: String, at: i64 }
    24 CloseGroup { group: String }
    25 Observe { receipt: u64, key: Cow<'a, [u8]>, skip: u32, start: u32, blocks: Vec<u32>, component: u32 }
    26 Forget { blocks: Vec<u32>, component: u32 }
    27 Hold { receipt: u64 }
    28 Evict { tier: Tier, pages: u32, component: u32 }
}

/// A row that the shell wants in the log and that changes no state.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub kind: Kind,
    pub phase: Phase,
    pub session: String,
    pub request: String,
    pub reason: Reason,
    pub cause: u64,
    pub op: u64,
    pub slot: Option<u32>,
    pub pages: u32,
    pub tokens: i64,
    pub bytes: u64,
    pub duration: i64,
    pub tier_from: Option<Tier>,
    pub tier_to: Option<Tier>,
    pub detail: String,
}

fields!(Note {
    kind: Kind, phase: Phase, session: String, request: String, reason: Reason, cause: u64, op: u64,
    slot: Option<u32>, pages: u32, tokens: i64, bytes: u64, duration: i64, tier_from: Option<Tier>,
    tier_to: Option<Tier>, detail: String,
});

fields!(Config {
    engine: String, epoch: String, namespace: String, key: KeyKind, page_size: u32,
    components: Vec<ComponentConfig>, observed_device: bool, secret: Vec<u8>, wall_offset: i64, now: i64,
    write_through: bool, policies: [String; 3], admit: [u32; 2], move_timeout: i64, defer_digests: bool,
    pin_permille: u32, ghosts: u32, log_rows: u32,
});

fields!(ComponentConfig {
    name: String,
    family: FamilyName,
    follows: String,
    number: u32,
    pages: [u32; 3],
    page_bytes: u64,
});

/// What a command answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Nothing,
    Number(u64),
    Flag(bool),
    Match(Match),
    Restore(Restore),
    Reservation(Reservation),
    Commit(Commit),
    Outcome(Outcome),
}

impl Core {
    /// Do one command at a moment. The only way in which anything changes. A refused command has changed nothing.
    pub fn run(&mut self, now: i64, command: &Command) -> Answer<Reply> {
        self.now = self.now.max(now);
        let answer = self.obey(command);
        self.tell_faults().and(answer)
    }

    fn obey(&mut self, command: &Command) -> Answer<Reply> {
        Ok(match command {
            Command::OpenSession { session, parent, group, priority } => {
                self.open_session(session, parent, group, *priority)?;
                Reply::Nothing
            }
            Command::CloseSession { session } => Reply::Number(self.close_session(session)? as u64),
            Command::Look { session, request, namespace, skip, key } => {
                Reply::Match(self.look(&Ask { session, request, namespace: *namespace, skip: *skip, key })?)
            }
            Command::Acquire { session, request, namespace, skip, key, grid } => {
                let ask = Ask { session, request, namespace: *namespace, skip: *skip, key };
                Reply::Match(self.acquire(&ask, *grid)?)
            }
            Command::Release { receipt } => {
                self.release(*receipt)?;
                Reply::Nothing
            }
            Command::Restore { receipt, into } => Reply::Restore(self.restore(*receipt, into.as_deref())?),
            Command::Reserve { receipt, pages, start } => {
                Reply::Reservation(self.reserve(*receipt, *pages, *start)?)
            }
            Command::Commit { op, key, skip, start, pages } => {
                Reply::Commit(self.commit(*op, key, *skip, *start, *pages)?)
            }
            Command::Abort { op, reason } => {
                self.abort(*op, *reason)?;
                Reply::Nothing
            }
            Command::Complete { op, results, bytes, duration, detail } => {
                self.complete(*op, results, *bytes, *duration, detail)?;
                Reply::Nothing
            }
            Command::Damaged { tier, slot, generation } => {
                Reply::Flag(self.damaged(*tier, *slot, *generation)?)
            }
            Command::Pin { session, tier, ttl, owner } => {
                Reply::Outcome(self.pin(session, *tier, *ttl, owner)?)
            }
            Command::Unpin { lease } => {
                self.unpin(*lease)?;
                Reply::Nothing
            }
            Command::Demote { session, owner } => Reply::Outcome(self.demote(session, owner)?),
            Command::Prefetch { session, owner } => Reply::Outcome(self.prefetch(session, owner)?),
            Command::Flush { session, owner } => Reply::Outcome(self.flush(session, owner)?),
            Command::Retain { session, ttl, owner } => Reply::Outcome(self.retain(session, *ttl, owner)?),
            Command::Share { session, forks, ttl, owner } => {
                Reply::Outcome(self.share(session, *forks, *ttl, owner)?)
            }
            Command::Expect { session, at } => {
                self.expect(session, *at)?;
                Reply::Nothing
            }
            Command::CloseGroup { group } => Reply::Number(self.close_group(group)?),
            Command::OpenNamespace { name } => Reply::Number(self.open_namespace(name)? as u64),
            Command::Retire { namespace } => Reply::Number(self.retire(*namespace)?),
            Command::Observe { receipt, key, skip, start, blocks, component } => Reply::Commit(
                self.observe(*receipt, key, *skip, *start, blocks, self.slotted(*component)?)?,
            ),
            Command::Forget { blocks, component } => {
                Reply::Number(self.forget(blocks, self.slotted(*component)?)?)
            }
            Command::Hold { receipt } => Reply::Number(self.hold(*receipt)?),
            Command::Evict { tier, pages, component } => {
                Reply::Number(self.evict(*tier, *pages, self.slotted(*component)?)?)
            }
            Command::Tick {} => Reply::Number(self.tick()? as u64),
            Command::Note { note } => Reply::Number(self.note(note)?),
        })
    }

    /// A component with pages of its own, as a command names it.
    fn slotted(&self, component: u32) -> Answer<usize> {
        let found = self.state.slotted().find(|known| *known == component as usize);
        found.ok_or_else(|| {
            Refusal::BadArgument(format!("component {component} has no pages, or does not exist"))
        })
    }

    fn note(&mut self, note: &Note) -> Answer<u64> {
        if !matches!(note.kind, Kind::Request | Kind::Tool | Kind::Canary) {
            let text = format!(
                "a note cannot be of kind {:?}; only request, tool and canary change no state",
                note.kind.name()
            );
            return Err(Refusal::BadArgument(text));
        }
        let text = |text: &String| (!text.is_empty()).then(|| Arc::from(text.as_str()));
        let mut row = Row::new(note.kind, note.phase);
        (row.session, row.request, row.detail) =
            (text(&note.session), text(&note.request), text(&note.detail));
        row.reason = note.reason;
        row.cause = (note.cause > 0).then_some(note.cause);
        row.op = (note.op > 0).then_some(note.op);
        (row.slot_from, row.tier_from, row.tier_to) = (note.slot, note.tier_from, note.tier_to);
        row.pages = (note.pages > 0).then_some(note.pages);
        row.tokens = (note.tokens > 0).then_some(note.tokens);
        row.bytes = (note.bytes > 0).then_some(note.bytes);
        row.duration = (note.duration > 0).then_some(note.duration);
        self.emit(row)
    }
}
