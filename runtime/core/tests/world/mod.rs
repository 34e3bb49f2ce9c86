//! An engine for tests: random commands against the whole core, with a shell whose pages hold a tag of their content
//! in place of bytes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use _core::columns::decode;
use _core::command::{Command, Reply};
use _core::config::{ComponentConfig, Config};
use _core::core::Core;
use _core::digest::{Digest, page_digests, root_digest};
use _core::journal::Journal;
use _core::moves::Action;
use _core::names::{FamilyName, KeyKind, Reason, Tier};
use _core::policy;
use _core::refusal::{Answer, Refusal};
use _core::replica::Replica;
use proptest::prelude::*;

pub const PAGE: usize = 2;

pub fn make(name: &str) -> Answer<Box<dyn policy::Policy>> {
    policy::by_name(name).ok_or_else(|| Refusal::BadArgument(name.into()))
}

fn component(name: &str, family: FamilyName, follows: &str, number: u32, pages: [u32; 3]) -> ComponentConfig {
    ComponentConfig { name: name.into(), family, follows: follows.into(), number, pages, page_bytes: 1 }
}

/// One engine of many kinds.
#[derive(Clone, Debug)]
pub struct Kind {
    pub pages: [u32; 3],
    pub beside: u8,
    pub observed: bool,
    pub write_through: bool,
    pub policies: [u8; 3],
    pub admit: [u32; 2],
    pub move_timeout: i64,
    pub defer_digests: bool,
}

pub fn config(kind: &Kind) -> Config {
    let [d, h, s] = kind.pages;
    let some = |n: u32| if n == 0 { 0 } else { n.div_ceil(2) + 1 };
    let fewer = [some(d), some(h), some(s)];
    let mut components = vec![component("full", FamilyName::Full, "", 0, kind.pages)];
    if kind.beside & 1 != 0 {
        components.push(component("swa", FamilyName::Swa, "", 2 * PAGE as u32, fewer));
    }
    if kind.beside & 2 != 0 {
        components.push(component("mamba", FamilyName::Mamba, "", 2, fewer));
    }
    if kind.beside & 4 != 0 {
        components.push(component("indexer", FamilyName::Sidecar, "full", 0, kind.pages));
        components.push(component("c2", FamilyName::Spans, "", 2, [0; 3]));
    }
    if kind.beside & 9 == 9 {
        components.push(component("draft", FamilyName::Sidecar, "swa", 0, fewer));
    }
    if kind.observed {
        components.iter_mut().for_each(|c| c.pages[0] = 0);
    }
    Config {
        engine: "e".into(),
        epoch: "1".into(),
        namespace: "m".into(),
        key: KeyKind::Tokens,
        page_size: PAGE as u32,
        components,
        observed_device: kind.observed,
        secret: vec![1],
        wall_offset: 0,
        now: 0,
        write_through: kind.write_through,
        policies: kind.policies.map(|p| policy::NAMES[p as usize % policy::NAMES.len()].to_string()),
        // A tier that is not there admits nothing.
        admit: [0, 1].map(|below| if kind.pages[below + 1] == 0 { 1 } else { kind.admit[below] }),
        move_timeout: kind.move_timeout,
        defer_digests: kind.defer_digests,
        pin_permille: 600,
        ghosts: 8,
        log_rows: 1 << 20,
    }
}

pub fn kinds(
    beside: impl Strategy<Value = u8>,
    observed: impl Strategy<Value = bool>,
) -> impl Strategy<Value = Kind> {
    let pages = (1u32..14, 0u32..14, 0u32..14).prop_map(|(d, h, s)| [d, h, s]);
    let some = (any::<bool>(), any::<[u8; 3]>(), 1u32..3, 1u32..3, 0i64..40, prop::bool::weighted(0.2));
    (pages, beside, observed, some).prop_map(
        |(pages, beside, observed, (write_through, policies, a, b, t, defer))| {
            let move_timeout = if t < 20 { 0 } else { t };
            Kind {
                pages,
                beside,
                observed,
                write_through,
                policies,
                admit: [a, b],
                move_timeout,
                defer_digests: defer,
            }
        },
    )
}

/// Pools of tags by component, and moves that have been asked for and not been answered.
#[derive(Default)]
pub struct Shell {
    pages: [BTreeMap<(&'static str, u32), Digest>; 3],
    pub moving: Vec<Action>,
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

    /// A prompt that continues, cuts short or leaves something said before, whole or from the session's cursor.
    fn begin(&mut self, session: String, step: &Step) {
        let mut tokens = self.known[step.b as usize % self.known.len()].clone();
        tokens.truncate(step.c as usize % 24);
        let mut namespace = if step.b.is_multiple_of(7) { step.a % self.names.len() as u32 } else { 0 };
        let (mut skip, grid) = (0, 1 + step.a % 2);
        if let Some((ns, path)) = self.paths.get(&session).filter(|_| step.c.is_multiple_of(3)) {
            skip = step.c / 3 % (path.len() as u32 / PAGE as u32 + 1);
            tokens = path.clone();
            namespace = *ns;
            tokens.truncate((skip as usize + step.b as usize % 5) * PAGE);
        }
        tokens.extend((0..step.c as usize % 9).map(|i| (step.b >> i) & 1));
        let request = format!("r{}", self.now);
        let key = bytes(&tokens[skip as usize * PAGE..]);
        let (name, asked): (Cow<str>, Cow<str>) = (session.clone().into(), request.into());
        let look = Command::Look {
            session: name.clone(),
            request: asked.clone(),
            namespace,
            skip,
            key: key.clone(),
        };
        let looked = self.run(look);
        let command =
            Command::Acquire { session: name.clone(), request: asked.clone(), namespace, skip, key, grid };
        let Ok(Reply::Match(found)) = self.run(command) else { return };
        let Ok(Reply::Match(looked)) = looked else { panic!("a look was refused: {looked:?}") };
        assert!(found.pages <= looked.pages && (grid > 1 || found.pages == looked.pages));
        assert_eq!(found.miss, looked.miss, "a look and what follows it differ");
        assert!(found.pages as usize <= tokens.len() / PAGE && found.pages % grid == 0);
        assert_eq!(found.by_tier.iter().sum::<u32>(), found.pages);
        if skip > 0 {
            // The cursor finds what the whole key finds.
            let whole =
                Command::Look { session: name, request: asked, namespace, skip: 0, key: bytes(&tokens) };
            let Reply::Match(whole) = self.run(whole).unwrap() else { panic!() };
            assert_eq!(whole.pages, looked.pages, "a cursor and its whole key differ");
        }
        self.known.push(tokens.clone());
        let (receipt, held) = (found.receipt, found.pages);
        assert!(
            self.can_resume(receipt, held),
            "{held} pages were found, and a component lacks some of them"
        );
        self.requests.push(Request {
            receipt,
            session,
            namespace,
            tokens,
            held,
            given: vec![],
            reserved: None,
        });
    }

    /// By the definition of each family, from what is where.
    fn can_resume(&self, receipt: u64, pages: u32) -> bool {
        let path = self.core.path_keys(receipt).unwrap();
        self.core.state.slotted().all(|c| {
            let copies = Tier::ALL.iter().flat_map(|tier| self.core.resident(*tier, None, c).unwrap());
            let there: HashSet<Digest> = copies.map(|(.., digest)| digest).collect();
            let from = match self.core.state.components[c].name {
                "swa" | "draft" => pages.saturating_sub(2),
                "mamba" => pages.saturating_sub(1),
                _ => 0,
            };
            path[from as usize..pages as usize].iter().all(|digest| there.contains(digest))
        })
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

    fn reserve(&mut self, step: &Step) {
        let Some(index) = (!self.requests.is_empty()).then(|| step.a as usize % self.requests.len()) else {
            return;
        };
        if self.observed {
            return self.observe(index, step);
        }
        if self.requests[index].reserved.is_some() {
            return;
        }
        let (receipt, held) = (self.requests[index].receipt, self.requests[index].held);
        let start = if step.b.is_multiple_of(4) { held.min(step.c % 4) } else { held };
        let command = Command::Reserve { receipt, pages: step.b % 9, start: Some(start) };
        let Reply::Reservation(got) = self.run(command).unwrap() else { panic!() };
        let pages: Vec<u32> = got.runs.iter().flat_map(|(_, page, n)| *page..page + n).collect();
        let mut beside = Vec::new();
        for (name, _, page, count, at) in got.parts {
            for i in 0..count {
                // Whoever is given a page writes to it at once.
                self.shell.pages[0].insert((name, page + i), [0xEE; 32]);
                if name != "full" {
                    beside.push((name, page + i, at + i));
                }
            }
        }
        self.requests[index].reserved = Some(Reserved { op: got.op, start, pages, beside });
    }

    fn commit(&mut self, step: &Step) {
        let Some(index) = self.requests.iter().position(|r| r.reserved.is_some()) else { return };
        let Reserved { op, start, pages, beside } = self.requests[index].reserved.take().unwrap();
        if step.a.is_multiple_of(5) {
            self.run(Command::Abort { op, reason: Reason::Aborted }).unwrap();
            return;
        }
        let request = &self.requests[index];
        let (tokens, namespace, held) = (request.tokens.clone(), request.namespace, request.held);
        let whole = (tokens.len() / PAGE) as u32;
        let count = (pages.len() as u32).min(whole.saturating_sub(start));
        for (i, page) in pages.iter().take(count as usize).enumerate() {
            let tag = self.digest_of(namespace, &tokens, start + i as u32);
            self.shell.pages[0].insert(("full", *page), tag);
        }
        for (name, page, at) in beside.into_iter().filter(|(_, _, at)| *at < start + count) {
            let tag = self.digest_of(namespace, &tokens, at);
            self.shell.pages[0].insert((name, page), tag);
        }
        let skip = if step.c.is_multiple_of(2) { held } else { step.c % (held + 1) };
        let key = bytes(&tokens[(skip as usize * PAGE).min(tokens.len())..]);
        let command = Command::Commit { op, key, skip, start, pages: count };
        let Reply::Commit(done) = self.run(command).unwrap() else { panic!() };
        assert_eq!(done.inserted + done.healed + done.duplicate, count);
        self.committed(index, start + count);
    }

    fn committed(&mut self, index: usize, end: u32) {
        let request = &mut self.requests[index];
        request.held = request.held.max(end);
        // A window and a recurrent state are of the new end.
        request.given.truncate(1);
        let path = request.tokens[..request.held as usize * PAGE].to_vec();
        let (session, namespace) = (request.session.clone(), request.namespace);
        if self.core.state.sessions.get(&*session).is_some() {
            self.paths.insert(session, (namespace, path));
        }
    }

    /// The engine tells what it computed into its own pages.
    fn observe(&mut self, index: usize, step: &Step) {
        let request = &self.requests[index];
        let (tokens, namespace, held, receipt) =
            (request.tokens.clone(), request.namespace, request.held, request.receipt);
        let start = if step.b.is_multiple_of(4) { held.min(step.c % 4) } else { held };
        let count = (step.b % 9).min((tokens.len() / PAGE) as u32 - start);
        let blocks: Vec<u32> = (0..count).map(|i| self.next_block + i + (i > step.c % 5) as u32).collect();
        self.next_block += 12;
        for c in self.core.state.slotted().collect::<Vec<_>>() {
            let name = self.core.state.components[c].name;
            for (i, block) in blocks.iter().enumerate() {
                let tag = self.digest_of(namespace, &tokens, start + i as u32);
                self.shell.pages[0].insert((name, *block), tag);
            }
            let (key, blocks) = (bytes(&tokens), blocks.clone());
            let command = Command::Observe { receipt, key, skip: 0, start, blocks, component: c as u32 };
            let Reply::Commit(_) = self.run(command).unwrap() else { panic!() };
            self.committed(index, start + count);
        }
    }

    fn forget(&mut self, step: &Step) {
        if !self.observed || self.next_block == 0 {
            return;
        }
        let from = step.a % self.next_block;
        let slotted: Vec<usize> = self.core.state.slotted().collect();
        let component = slotted[step.b as usize % slotted.len()] as u32;
        let blocks: Vec<u32> = (from..from + step.c % 8).collect();
        let name = self.core.state.components[component as usize].name;
        self.run(Command::Forget { blocks: blocks.clone(), component }).unwrap();
        for block in blocks {
            self.shell.pages[0].insert((name, block), [0xBB; 32]);
        }
    }

    fn restore(&mut self, step: &Step) {
        let Some(request) = self.requests.get(step.a as usize % self.requests.len().max(1)) else { return };
        let (receipt, held) = (request.receipt, request.held);
        let into = self.observed.then(|| {
            self.next_block += 24;
            (self.next_block - 24..self.next_block - step.b % 24).collect()
        });
        let Reply::Restore(up) = self.run(Command::Restore { receipt, into }).unwrap() else { panic!() };
        assert!(up.ready <= self.core.table(receipt, 0).unwrap().iter().map(|r| r.2).sum());
        assert!(up.ready <= held);
        let end = self.core.state.path_pages(self.core.state.receipts.get(&receipt).unwrap().node);
        assert!(
            end == held || up.pending == 0 && end == up.ready,
            "a lock ends at {end}, not at {up:?} of {held}"
        );
        let request = self.requests.iter_mut().find(|request| request.receipt == receipt).unwrap();
        if end < held {
            // What is ready is less than what was held: the lock is about that from now on.
            (request.held, request.given) = (end, Vec::new());
        }
        if up.ready > 0 {
            self.check_ready(receipt, up.ready);
        }
    }

    /// What is said to be ready is there, held, and on the device, whatever component one asks.
    fn check_ready(&self, receipt: u64, ready: u32) {
        for c in self.core.state.slotted() {
            let pages: u32 = self.core.table(receipt, c).unwrap().iter().map(|run| run.2).sum();
            let needed = self.core.state.components[c].family.needs(ready);
            assert!(pages as usize >= needed.len(), "{pages} pages of component {c} for {needed:?}");
        }
    }

    fn end(&mut self, step: &Step) {
        if self.requests.is_empty() {
            return;
        }
        let request = self.requests.swap_remove(step.a as usize % self.requests.len());
        self.run(Command::Release { receipt: request.receipt }).unwrap();
        let again = self.run(Command::Release { receipt: request.receipt });
        assert!(matches!(again, Err(Refusal::UnknownReceipt(_))));
    }

    fn complete(&mut self, step: &Step) {
        if self.shell.moving.is_empty() {
            return;
        }
        let action = self.shell.moving.swap_remove(step.a as usize % self.shell.moving.len());
        let aborted = step.c.is_multiple_of(7);
        if aborted {
            self.run(Command::Abort { op: action.op, reason: Reason::Timeout }).unwrap();
        }
        let (from, to) = (action.tier_from as usize, action.tier_to as usize);
        let mut results = Vec::new();
        for (i, (source, target)) in pages_of(&action).into_iter().enumerate() {
            let tag = self.shell.pages[from][&(action.component, source)];
            let torn = self.observed && from == 0;
            assert!(torn || tag == action.keys[i], "a source was overwritten while it was read");
            let result = if step.b.is_multiple_of(5) { (step.c >> i) as u8 % 3 } else { 1 };
            let written = if result == 1 { tag } else { [0xDD; 32] };
            self.shell.pages[to].insert((action.component, target), written);
            results.push(result);
        }
        let complete = || Command::Complete {
            op: action.op,
            results: results.clone(),
            bytes: 1,
            duration: 1,
            detail: String::new(),
        };
        if results.contains(&2) {
            self.forget_given();
        }
        self.run(complete()).unwrap();
        assert!(matches!(self.run(complete()), Err(Refusal::UnknownOperation(_))));
        if aborted {
            let component = self.core.state.component(action.component).unwrap();
            let there = self.core.resident(action.tier_to, None, component).unwrap();
            assert!(there.iter().all(|copy| !action.owners.contains(&copy.0)), "an aborted move arrived");
        }
    }

    fn damage(&mut self, step: &Step) {
        let tier = Tier::ALL[step.a as usize % 3];
        let component = step.c as usize % self.core.state.components.len();
        let copies = self.core.resident(tier, None, component).unwrap();
        let Some((owner, ..)) = copies.get(step.b as usize % copies.len().max(1)) else { return };
        let (slot, generation) = (*owner as u32, (owner >> 32) as u32);
        self.forget_given();
        self.run(Command::Damaged { tier, slot, generation }).unwrap();
        let served = self.core.resident(tier, None, component).unwrap();
        assert!(served.iter().all(|copy| copy.0 != *owner), "a damaged copy is still served");
    }

    /// Whatever is said, the answer is a typed refusal.
    fn misuse(&mut self, step: &Step) {
        let none = || Cow::Borrowed(&[] as &[u8]);
        let nonsense = [
            Command::Release { receipt: u64::MAX },
            Command::Restore { receipt: 0, into: None },
            Command::Reserve { receipt: u64::MAX - step.a as u64, pages: u32::MAX, start: None },
            Command::Commit { op: u64::MAX, key: none(), skip: 0, start: u32::MAX, pages: u32::MAX },
            Command::Abort { op: u64::MAX, reason: Reason::None },
            Command::Complete {
                op: u64::MAX,
                results: vec![9],
                bytes: u64::MAX,
                duration: i64::MIN,
                detail: String::new(),
            },
            Command::Unpin { lease: u64::MAX },
            Command::CloseSession { session: "nobody".into() },
            Command::Flush { session: String::new(), owner: String::new() },
            Command::Retire { namespace: 99 },
            Command::Share { session: "s0".into(), forks: 0, ttl: 1, owner: String::new() },
            Command::Expect { session: "nobody".into(), at: 1 },
            Command::Observe {
                receipt: u64::MAX,
                key: none(),
                skip: 9,
                start: 9,
                blocks: vec![1, 1],
                component: 0,
            },
        ];
        assert!(self.run(nonsense[step.b as usize % nonsense.len()].clone()).is_err());
        let far = Command::Acquire {
            session: "s0".into(),
            request: "r".into(),
            namespace: 0,
            skip: u32::MAX,
            key: none(),
            grid: 1,
        };
        assert!(self.run(far).is_err());
        if let Some(request) = self.requests.first() {
            let (receipt, held) = (request.receipt, request.held);
            if let Some(Reserved { op, .. }) = request.reserved.clone() {
                let bad = Command::Commit { op, key: bytes(&[9, 9, 9]), skip: 0, start: held + 1, pages: 1 };
                assert!(self.run(bad).is_err());
                let far = Command::Commit { op, key: bytes(&[9, 9]), skip: held + 1, start: held, pages: 0 };
                assert!(self.run(far).is_err());
            }
            let beyond = Command::Reserve { receipt, pages: 1, start: Some(held + 1) };
            assert!(self.run(beyond).is_err());
        }
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

pub fn pages_of(action: &Action) -> Vec<(u32, u32)> {
    action.runs.iter().flat_map(|(_, from, to, n)| (0..*n).map(move |i| (from + i, to + i))).collect()
}
