//! Requests from their first look to the release of their lock.

use std::borrow::Cow;
use std::collections::HashSet;

use _core::command::{Command, Reply};
use _core::digest::Digest;
use _core::names::{Reason, Tier};
use _core::refusal::Refusal;

use super::{PAGE, Request, Reserved, Step, World, bytes};

impl World {
    /// A prompt that continues, cuts short or leaves something said before, whole or from the session's cursor.
    pub(super) fn begin(&mut self, session: String, step: &Step) {
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
    pub(super) fn can_resume(&self, receipt: u64, pages: u32) -> bool {
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

    pub(super) fn reserve(&mut self, step: &Step) {
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

    pub(super) fn commit(&mut self, step: &Step) {
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

    pub(super) fn committed(&mut self, index: usize, end: u32) {
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

    pub(super) fn restore(&mut self, step: &Step) {
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
    pub(super) fn check_ready(&self, receipt: u64, ready: u32) {
        for c in self.core.state.slotted() {
            let pages: u32 = self.core.table(receipt, c).unwrap().iter().map(|run| run.2).sum();
            let needed = self.core.state.components[c].family.needs(ready);
            assert!(pages as usize >= needed.len(), "{pages} pages of component {c} for {needed:?}");
        }
    }

    pub(super) fn end(&mut self, step: &Step) {
        if self.requests.is_empty() {
            return;
        }
        let request = self.requests.swap_remove(step.a as usize % self.requests.len());
        self.run(Command::Release { receipt: request.receipt }).unwrap();
        let again = self.run(Command::Release { receipt: request.receipt });
        assert!(matches!(again, Err(Refusal::UnknownReceipt(_))));
    }
}
