//! Random commands against the whole core, with a shell whose pages hold a tag of their content in place of
//! bytes. After every step: `check()`, every claimed copy has its tag, every source of a move still has its
//! own, the replica's fold equals the state.

use std::borrow::Cow;
use std::collections::HashMap;

use _core::columns::decode;
use _core::command::{Command, Journal, Reply};
use _core::core::{Config, Core};
use _core::digest::{Digest, page_digest, root_digest};
use _core::moves::Action;
use _core::names::{Reason, Tier};
use _core::refusal::Refusal;
use _core::replica::Replica;
use proptest::prelude::*;

const PAGE: usize = 2;

fn config(pages: [u32; 3], write_through: bool) -> Config {
    Config {
        engine: "e".into(),
        epoch: "1".into(),
        namespace: "m".into(),
        page_size: PAGE as u32,
        pages,
        page_bytes: 1,
        secret: vec![1],
        wall_offset: 0,
        now: 0,
        write_through,
        pin_permille: 600,
        ghosts: 8,
        log_rows: 1 << 20,
    }
}

/// Pools of tags, and moves that have been asked for and not been answered.
#[derive(Default)]
struct Shell {
    pages: [HashMap<u32, Digest>; 3],
    moving: Vec<Action>,
}

struct Request {
    receipt: u64,
    tokens: Vec<u32>,
    held: u32,
    reserved: Option<(u64, Vec<u32>)>,
}

struct World {
    core: Core,
    journal: Journal,
    replica: Replica,
    shell: Shell,
    requests: Vec<Request>,
    leases: Vec<u64>,
    known: Vec<Vec<u32>>,
    payloads: Vec<Vec<u8>>,
    now: i64,
}

#[derive(Clone, Debug)]
struct Step {
    what: u8,
    a: u32,
    b: u32,
    c: u32,
}

impl World {
    fn new(config: Config) -> Self {
        let journal = Journal::new(&config);
        World {
            core: Core::new(config).unwrap(),
            journal,
            replica: Replica::default(),
            shell: Shell::default(),
            requests: Vec::new(),
            leases: Vec::new(),
            known: vec![vec![]],
            payloads: Vec::new(),
            now: 0,
        }
    }

    fn run(&mut self, command: Command) -> Result<Reply, Refusal> {
        self.now += 1;
        self.journal.append(self.now, &command);
        let reply = self.core.run(self.now, &command);
        assert!(!matches!(reply, Err(Refusal::Internal(_))), "{command:?} gave {reply:?}");
        self.shell.moving.append(&mut std::mem::take(&mut self.core.actions));
        reply
    }

    fn digest_of(tokens: &[u32], page: u32) -> Digest {
        let mut digest = root_digest("m", &[1]);
        for page in tokens.chunks_exact(PAGE).take(page as usize + 1) {
            digest = page_digest(&digest, page);
        }
        digest
    }

    fn step(&mut self, step: &Step) {
        let session = format!("s{}", step.a % 4);
        match step.what % 20 {
            0 => {
                let parent =
                    if step.b.is_multiple_of(3) { format!("s{}", step.b % 4) } else { String::new() };
                let _ = self.run(Command::OpenSession { session, parent });
            }
            1 if step.b.is_multiple_of(4) => drop(self.run(Command::CloseSession { session })),
            1..=4 => self.begin(session, step),
            5 | 6 => self.reserve(step),
            7 | 8 => self.commit(step),
            9 => self.end(step),
            10..=13 => self.complete(step),
            14 => {
                let Some(request) = self.requests.get(step.a as usize % self.requests.len().max(1)) else {
                    return;
                };
                let receipt = request.receipt;
                let Reply::Restore(up) = self.run(Command::Restore { receipt }).unwrap() else { panic!() };
                assert!(up.ready <= self.core.table(receipt).unwrap().iter().map(|r| r.2).sum());
            }
            15 => {
                let tier = Tier::ALL[step.b as usize % 3];
                let ttl = step.c as i64 % 40;
                if let Ok(Reply::Outcome(outcome)) =
                    self.run(Command::Pin { session, tier, ttl, owner: "o".into() })
                {
                    self.leases.extend((outcome.lease > 0).then_some(outcome.lease));
                }
            }
            16 => {
                let owner = "o".to_string();
                let _ = match step.b % 4 {
                    0 => self.run(Command::Demote { session, owner }),
                    1 => self.run(Command::Prefetch { session, owner }),
                    2 => self.run(Command::Flush { session, owner }),
                    _ => {
                        let lease = self.leases.pop().unwrap_or(step.c as u64);
                        self.run(Command::Unpin { lease })
                    }
                };
            }
            17 => drop(self.run(Command::Tick {})),
            18 => self.damage(step),
            _ => self.misuse(step),
        }
    }

    /// A prompt that continues, cuts short or leaves something said before.
    fn begin(&mut self, session: String, step: &Step) {
        let mut tokens = self.known[step.b as usize % self.known.len()].clone();
        tokens.truncate(step.c as usize % 24);
        tokens.extend((0..step.c as usize % 9).map(|i| (step.b >> i) & 1));
        let request = format!("r{}", self.now);
        let command =
            Command::Acquire { session, request, tokens: Cow::Borrowed(&tokens), grid: 1 + step.a % 2 };
        let Ok(Reply::Match(found)) = self.run(command) else { return };
        assert!(found.pages as usize <= tokens.len() / PAGE);
        assert_eq!(found.by_tier.iter().sum::<u32>(), found.pages);
        self.known.push(tokens.clone());
        self.requests.push(Request { receipt: found.receipt, tokens, held: found.pages, reserved: None });
    }

    fn reserve(&mut self, step: &Step) {
        let Some(index) = (!self.requests.is_empty()).then(|| step.a as usize % self.requests.len()) else {
            return;
        };
        if self.requests[index].reserved.is_some() {
            return;
        }
        let receipt = self.requests[index].receipt;
        let Reply::Reservation(got) = self.run(Command::Reserve { receipt, pages: step.b % 9 }).unwrap()
        else {
            panic!()
        };
        let pages: Vec<u32> = got.runs.iter().flat_map(|(_, page, n)| *page..page + n).collect();
        for page in &pages {
            // Whoever is given a page writes to it at once.
            self.shell.pages[0].insert(*page, [0xEE; 32]);
        }
        self.requests[index].reserved = Some((got.op, pages));
    }

    fn commit(&mut self, step: &Step) {
        let Some(index) = self.requests.iter().position(|r| r.reserved.is_some()) else { return };
        let request = &mut self.requests[index];
        let (op, pages) = request.reserved.take().unwrap();
        if step.a.is_multiple_of(5) {
            self.run(Command::Abort { op, reason: Reason::Aborted }).unwrap();
            return;
        }
        let start = if step.b.is_multiple_of(4) { request.held.min(step.c % 4) } else { request.held };
        let whole = (request.tokens.len() / PAGE) as u32;
        let count = (pages.len() as u32).min(whole.saturating_sub(start));
        let tokens = request.tokens.clone();
        for (i, page) in pages.iter().take(count as usize).enumerate() {
            self.shell.pages[0].insert(*page, Self::digest_of(&tokens, start + i as u32));
        }
        let command = Command::Commit { op, tokens: Cow::Borrowed(&tokens), start, pages: count };
        let Reply::Commit(done) = self.run(command).unwrap() else { panic!() };
        assert_eq!(done.inserted + done.healed + done.duplicate, count);
        self.requests[index].held = self.requests[index].held.max(start + count);
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
        if step.c.is_multiple_of(7) {
            self.run(Command::Abort { op: action.op, reason: Reason::Timeout }).unwrap();
        }
        let (from, to) = (action.tier_from as usize, action.tier_to as usize);
        let mut results = Vec::new();
        for (i, (source, target)) in pages_of(&action).into_iter().enumerate() {
            let tag = self.shell.pages[from][&source];
            assert_eq!(tag, action.keys[i], "a source was overwritten while it was read");
            let result = if step.b.is_multiple_of(5) { (step.c >> i) as u8 % 3 } else { 1 };
            self.shell.pages[to].insert(target, if result == 1 { tag } else { [0xDD; 32] });
            results.push(result);
        }
        let command = Command::Complete {
            op: action.op,
            results: results.clone(),
            bytes: 1,
            duration: 1,
            detail: String::new(),
        };
        self.run(command).unwrap();
        let late = self.run(Command::Complete {
            op: action.op,
            results,
            bytes: 1,
            duration: 1,
            detail: String::new(),
        });
        assert!(matches!(late, Err(Refusal::UnknownOperation(_))));
    }

    fn damage(&mut self, step: &Step) {
        let tier = Tier::ALL[step.a as usize % 3];
        let copies = self.core.resident(tier, None).unwrap();
        let Some((owner, ..)) = copies.get(step.b as usize % copies.len().max(1)) else { return };
        let (slot, generation) = (*owner as u32, (owner >> 32) as u32);
        self.run(Command::Damaged { tier, slot, generation }).unwrap();
        assert!(
            self.core.resident(tier, None).unwrap().iter().all(|copy| copy.0 != *owner),
            "a damaged copy is still served"
        );
    }

    /// Whatever is said, the answer is a typed refusal or it makes sense.
    fn misuse(&mut self, step: &Step) {
        let hash = self.core.state.hash();
        let nonsense = [
            Command::Release { receipt: u64::MAX },
            Command::Restore { receipt: 0 },
            Command::Reserve { receipt: u64::MAX - step.a as u64, pages: u32::MAX },
            Command::Commit { op: u64::MAX, tokens: Cow::Borrowed(&[]), start: u32::MAX, pages: u32::MAX },
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
        ];
        assert!(self.run(nonsense[step.b as usize % nonsense.len()].clone()).is_err());
        if let Some(request) = self.requests.first() {
            let receipt = request.receipt;
            if let Some((op, _)) = &request.reserved {
                let (op, held) = (*op, request.held);
                let bad =
                    Command::Commit { op, tokens: Cow::Borrowed(&[9, 9, 9]), start: held + 1, pages: 1 };
                assert!(self.run(bad).is_err());
            }
            let long = Command::Complete {
                op: receipt,
                results: vec![1],
                bytes: 0,
                duration: 0,
                detail: String::new(),
            };
            assert!(self.run(long).is_err());
        }
        assert_eq!(self.core.state.hash(), hash, "a refused command changed the state");
    }

    fn verify(&mut self) {
        self.core.check().unwrap();
        for tier in Tier::ALL {
            for (_, page, _, digest) in self.core.resident(*tier, None).unwrap() {
                let tag = self.shell.pages[*tier as usize].get(&page);
                assert_eq!(tag, Some(&digest), "page {page} of {} has other bytes", tier.name());
            }
        }
        for action in &self.shell.moving {
            for (i, (source, _)) in pages_of(action).into_iter().enumerate() {
                let tag = self.shell.pages[action.tier_from as usize].get(&source);
                assert_eq!(tag, Some(&action.keys[i]), "a source lost its bytes during a move");
            }
        }
    }

    fn fold(&mut self, max_rows: usize) {
        while let Some(message) = self.core.log.drain(max_rows).unwrap() {
            assert_eq!(self.replica.fold(&message.payload).unwrap(), message.state_hash);
            self.payloads.push(message.payload);
        }
        assert_eq!(self.replica.state.hash(), self.core.state.hash());
        self.replica.state.check().unwrap();
    }
}

fn pages_of(action: &Action) -> Vec<(u32, u32)> {
    action.runs.iter().flat_map(|(_, from, to, n)| (0..*n).map(move |i| (from + i, to + i))).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<u8>(), any::<u32>(), any::<u32>(), any::<u32>());
    prop::collection::vec(step.prop_map(|(what, a, b, c)| Step { what, a, b, c }), 1..160)
}

fn sizes() -> impl Strategy<Value = [u32; 3]> {
    (1u32..14, 0u32..14, 0u32..14).prop_map(|(d, h, s)| [d, h, if h == 0 { 0 } else { s }])
}

proptest! {
    // PROPTEST_CASES asks for more; `make soak` does.
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_invariant_holds_after_every_command(steps in steps(), pages in sizes(), write_through: bool, batch in 1usize..50) {
        let mut world = World::new(config(pages, write_through));
        for name in ["s0", "s1", "s2"] {
            world.run(Command::OpenSession { session: name.into(), parent: String::new() }).unwrap();
        }
        for (i, step) in steps.iter().enumerate() {
            world.step(step);
            world.verify();
            if i % 7 == 0 {
                world.fold(batch);
            }
        }
        world.fold(batch);

        // The same commands give the same log, byte for byte.
        let again = Core::replay(world.journal.bytes()).unwrap();
        prop_assert_eq!(again.state.hash(), world.core.state.hash());
        let rows: Vec<_> = world.payloads.iter().flat_map(|p| decode(p).unwrap().1).collect();
        let message = again.log.drain(usize::MAX).unwrap().unwrap();
        prop_assert_eq!(decode(&message.payload).unwrap().1, rows);
    }

    /// Once everybody lets go, everything can be had again.
    #[test]
    fn nothing_leaks_when_all_is_released(steps in steps(), pages in sizes()) {
        let mut world = World::new(config(pages, true));
        world.run(Command::OpenSession { session: "s0".into(), parent: String::new() }).unwrap();
        steps.iter().for_each(|step| world.step(step));
        for request in std::mem::take(&mut world.requests) {
            world.run(Command::Release { receipt: request.receipt }).unwrap();
        }
        while let Some(action) = world.shell.moving.pop() {
            let results = vec![0; action.keys.len()];
            world.run(Command::Complete { op: action.op, results, bytes: 0, duration: 0, detail: String::new() }).unwrap();
        }
        world.now += 1000;
        world.run(Command::Tick {}).unwrap();
        for session in ["s0", "s1", "s2", "s3"] {
            let _ = world.run(Command::CloseSession { session: session.into() });
        }
        world.core.check().unwrap();
        prop_assert_eq!(world.core.state.ops.count(), 0);
        prop_assert_eq!(world.core.state.receipts.count(), 0);
        prop_assert!(world.core.state.pools.iter().all(|pool| pool.fenced == 0 && pool.leased == 0));
        world.run(Command::OpenSession { session: "new".into(), parent: String::new() }).unwrap();
        let tokens: Vec<u32> = (100..100 + (pages[0] as usize * PAGE) as u32).collect();
        let command = Command::Acquire { session: "new".into(), request: "r".into(), tokens: Cow::Borrowed(&tokens), grid: 1 };
        let Reply::Match(found) = world.run(command).unwrap() else { panic!() };
        let Reply::Reservation(got) = world.run(Command::Reserve { receipt: found.receipt, pages: pages[0] }).unwrap() else { panic!() };
        prop_assert_eq!(got.runs.iter().map(|r| r.2).sum::<u32>(), pages[0]);
    }
}
