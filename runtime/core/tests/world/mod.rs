//! An engine for tests: random commands against the whole core, with a shell whose pages hold a tag of their content
//! in place of bytes.

use std::borrow::Cow;
use std::collections::HashMap;

use _core::columns::decode;
use _core::command::{Command, Reply};
use _core::core::Core;
use _core::digest::{Digest, page_digests, root_digest};
use _core::journal::Journal;
use _core::names::{KeyKind, Tier};
use _core::policy;
use _core::refusal::{Answer, Refusal};
use _core::replica::Replica;
use proptest::prelude::*;

mod kinds;
mod misuse;
mod observed;
mod requests;
mod shell;

pub use kinds::{Kind, config, kinds};
pub use shell::{Shell, pages_of};

pub const PAGE: usize = 2;

pub fn make(name: &str) -> Answer<Box<dyn policy::Policy>> {
    policy::by_name(name).ok_or_else(|| Refusal::BadArgument(name.into()))
}

pub struct Request {
    pub receipt: u64,
    session: String,
    namespace: u32,
    tokens: Vec<u32>,
    held: u32,
    /// Device pages that the lock gave so far, by component. Nobody may take them while it is held.
    given: Vec<Vec<u32>>,
    reserved: Option<Reserved>,
}

#[derive(Clone)]
struct Reserved {
    op: u64,
    start: u32,
    /// Device pages of full, in order.
    pages: Vec<u32>,
    /// Of the others: (component, page, position).
    beside: Vec<(&'static str, u32, u32)>,
}

pub struct World {
    pub core: Core,
    journal: Journal,
    /// Its pieces so far, as a file has them.
    pieces: Vec<u8>,
    pub replica: Replica,
    pub shell: Shell,
    pub requests: Vec<Request>,
    leases: Vec<u64>,
    known: Vec<Vec<u32>>,
    /// What each session's committed path is, as far as we have been told.
    paths: HashMap<String, (u32, Vec<u32>)>,
    pub payloads: Vec<Vec<u8>>,
    pub now: i64,
    observed: bool,
    next_block: u32,
    names: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Step {
    what: u8,
    a: u32,
    b: u32,
    c: u32,
}

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<u8>(), any::<u32>(), any::<u32>(), any::<u32>());
    prop::collection::vec(step.prop_map(|(what, a, b, c)| Step { what, a, b, c }), 1..most)
}

pub fn open(session: &str, parent: String) -> Command<'static> {
    Command::OpenSession { session: session.into(), parent, group: String::new(), priority: 0 }
}

fn bytes(tokens: &[u32]) -> Cow<'static, [u8]> {
    Cow::Owned(tokens.iter().flat_map(|t| t.to_le_bytes()).collect())
}

impl World {
    pub fn new(kind: &Kind) -> Self {
        let config = config(kind);
        let journal = Journal::new(&config);
        World {
            core: Core::new(config, &mut make).unwrap(),
            journal,
            pieces: Vec::new(),
            replica: Replica::default(),
            shell: Shell::default(),
            requests: Vec::new(),
            leases: Vec::new(),
            known: vec![vec![]],
            paths: HashMap::new(),
            payloads: Vec::new(),
            now: 0,
            observed: kind.observed,
            next_block: 0,
            names: vec!["m".into()],
        }
    }

    pub fn run(&mut self, command: Command) -> Result<Reply, Refusal> {
        self.now += 1;
        self.journal.append(self.now, &command);
        let hash = self.core.state.hash();
        let reply = self.core.run(self.now, &command);
        assert!(!matches!(reply, Err(Refusal::Internal(_))), "{command:?} gave {reply:?}");
        if reply.is_err() {
            assert_eq!(self.core.state.hash(), hash, "{command:?} was refused and changed the state");
        }
        self.shell.moving.append(&mut std::mem::take(&mut self.core.actions));
        reply
    }

    fn digest_of(&self, namespace: u32, tokens: &[u32], page: u32) -> Digest {
        let mut digests = Vec::new();
        let root = root_digest(&self.names[namespace as usize], &[1]);
        page_digests(KeyKind::Tokens, &root, &bytes(tokens), PAGE * 4, &mut digests);
        digests[page as usize]
    }

    pub fn step(&mut self, step: &Step) {
        let session = format!("s{}", step.a % 4);
        let owner = "o".to_string();
        match step.what % 24 {
            0 => {
                let parent =
                    if step.b.is_multiple_of(3) { format!("s{}", step.b % 4) } else { String::new() };
                let group = if step.c.is_multiple_of(3) { "g".to_string() } else { String::new() };
                let _ =
                    self.run(Command::OpenSession { session, parent, group, priority: step.c as i32 % 3 });
            }
            1 if step.b.is_multiple_of(4) => {
                self.paths.remove(&session);
                let _ = self.run(Command::CloseSession { session });
            }
            1..=4 => self.begin(session, step),
            5 | 6 => self.reserve(step),
            7 | 8 => self.commit(step),
            9 => self.end(step),
            10..=13 => self.complete(step),
            14 => self.restore(step),
            15 => {
                let tier = Tier::ALL[step.b as usize % 3];
                let ttl = step.c as i64 % 40;
                if let Ok(Reply::Outcome(outcome)) = self.run(Command::Pin { session, tier, ttl, owner }) {
                    self.leases.extend((outcome.lease > 0).then_some(outcome.lease));
                }
            }
            16 => {
                let _ = match step.b % 5 {
                    0 => self.run(Command::Demote { session, owner }),
                    1 => self.run(Command::Prefetch { session, owner }),
                    2 => self.run(Command::Flush { session, owner }),
                    3 => self.run(Command::Expect { session, at: self.now + step.c as i64 % 100 }),
                    _ => {
                        let lease = self.leases.pop().unwrap_or(step.c as u64);
                        self.run(Command::Unpin { lease })
                    }
                };
            }
            17 => drop(self.run(Command::Tick {})),
            18 => self.damage(step),
            19 => {
                let ttl = 1 + step.c as i64 % 60;
                let command = match step.b % 2 {
                    0 => Command::Retain { session, ttl, owner },
                    _ => Command::Share { session, forks: 1 + step.c % 2, ttl, owner },
                };
                let _ = self.run(command);
            }
            20 if step.b.is_multiple_of(6) => self.namespaces(step),
            20 if step.b.is_multiple_of(5) => {
                self.paths.clear();
                self.run(Command::CloseGroup { group: "g".into() }).unwrap();
            }
            20 | 21 => self.forget(step),
            _ => self.misuse(step),
        }
    }

    fn namespaces(&mut self, step: &Step) {
        if step.c.is_multiple_of(2) {
            let name = format!("n{}", self.now);
            let Reply::Number(id) = self.run(Command::OpenNamespace { name: name.clone() }).unwrap() else {
                panic!()
            };
            assert_eq!(id as usize, self.names.len());
            self.names.push(name);
        } else {
            let _ = self.run(Command::Retire { namespace: step.a % self.names.len() as u32 });
        }
    }

    /// What a lock has given it gives until it is released: the same pages, and only more of them. Damage, and an
    /// engine on its own device, may take them.
    fn check_given(&mut self) {
        for request in self.requests.iter_mut().filter(|_| !self.observed) {
            let slotted: Vec<usize> = self.core.state.slotted().collect();
            let tables = slotted.into_iter().map(|c| self.core.table(request.receipt, c).unwrap());
            let tables: Vec<Vec<u32>> =
                tables.map(|runs| runs.iter().flat_map(|(_, page, n)| *page..page + n).collect()).collect();
            for (before, now) in request.given.iter().zip(&tables) {
                assert!(before.iter().all(|page| now.contains(page)), "a lock gave {before:?}, now {now:?}");
            }
            request.given = tables;
        }
    }

    fn forget_given(&mut self) {
        self.requests.iter_mut().for_each(|request| request.given.clear());
    }

    pub fn verify(&mut self) {
        self.core.check().unwrap();
        self.check_given();
        for c in self.core.state.slotted().collect::<Vec<_>>() {
            let name = self.core.state.components[c].name;
            for tier in Tier::ALL {
                for (_, page, _, digest) in self.core.resident(*tier, None, c).unwrap() {
                    let tag = self.shell.pages[*tier as usize].get(&(name, page));
                    assert_eq!(
                        tag,
                        Some(&digest),
                        "page {page} of {name} on {} has other bytes",
                        tier.name()
                    );
                }
            }
        }
        for action in self.shell.moving.iter().filter(|a| !self.observed || a.tier_from != Tier::Device) {
            for (i, (source, _)) in pages_of(action).into_iter().enumerate() {
                let tag = self.shell.pages[action.tier_from as usize].get(&(action.component, source));
                assert_eq!(tag, Some(&action.keys[i]), "a source lost its bytes during a move");
            }
        }
    }

    pub fn fold(&mut self, max_rows: usize) {
        while let Some(message) = self.core.log.drain(max_rows).unwrap() {
            assert_eq!(self.replica.fold(&message.payload).unwrap(), message.state_hash);
            self.payloads.push(message.payload);
        }
        self.pieces.append(&mut self.journal.take());
        assert_eq!(self.replica.state.hash(), self.core.state.hash());
        assert_eq!(self.replica.state.observed_hash(), self.core.state.observed_hash());
        self.replica.state.check().unwrap();
    }

    /// The same commands give the same log, byte for byte.
    pub fn replay(&self) {
        let again = Core::replay(&self.pieces, &mut make).unwrap();
        assert_eq!(again.state.hash(), self.core.state.hash());
        let rows: Vec<_> = self.payloads.iter().flat_map(|p| decode(p).unwrap().1).collect();
        let message = again.log.drain(usize::MAX).unwrap().unwrap();
        assert_eq!(decode(&message.payload).unwrap().1, rows);
    }
}
