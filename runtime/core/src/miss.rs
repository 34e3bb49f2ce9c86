//! Why the first page after a match is not there: what took it, or where the asker went another way.

use std::sync::Arc;

use crate::core::{Core, Prompt};
use crate::digest::page_digest;
use crate::find::{Ask, Found, Path};
use crate::names::{Kind, Reason};
use crate::records::FULL;

/// Why the first page after a match is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    pub reason: Reason,
    pub offset: i64,
    pub lost_seq: u64,
}

impl Miss {
    pub(crate) fn plain(reason: Reason) -> Self {
        Miss { reason, offset: -1, lost_seq: 0 }
    }
}

impl Core {
    pub(crate) fn explain(&self, ask: &Ask, found: &Found) -> Miss {
        let (pages, walked) = (found.pages, found.path.pages);
        let rest = ask.key.get(self.bytes_of(pages.saturating_sub(ask.skip))..).unwrap_or_default();
        if pages >= ask.skip && rest.len() < self.keys.width() {
            return Miss::plain(if rest.is_empty() { Reason::None } else { Reason::BelowPage });
        }
        let lost = |seq, why| {
            let reason = match why {
                Reason::Failed | Reason::Damaged | Reason::Timeout => Reason::LoadFailed,
                Reason::Admission => Reason::Admission,
                _ => Reason::Evicted,
            };
            Miss { lost_seq: seq, ..Miss::plain(reason) }
        };
        if pages < walked {
            // The page's slot stands in the tree, but nothing usable is in it.
            let nodes = found.path.nodes.iter().filter_map(|n| self.state.nodes.get(*n));
            let slot = nodes.rev().find(|n| n.start <= pages).and_then(|n| n.slots().get(pages));
            return match slot.and_then(|s| self.state.slots.get(s)) {
                Some(slot) if slot.coming != 0 => Miss::plain(Reason::PendingWrite),
                Some(slot) if slot.bad != 0 => Miss::plain(Reason::LoadFailed),
                Some(slot) => slot.lost().map_or(Miss::plain(Reason::Unknown), |(row, why)| lost(row, why)),
                None => Miss::plain(Reason::Unknown),
            };
        }
        if self.is_being_computed(rest, pages, &found.path) {
            return Miss::plain(Reason::PendingWrite);
        }
        if !self.config.defer_digests && !self.ghosts.is_empty() {
            let digest = page_digest(
                self.config.key,
                &self.digest_at(found.path.end(), found.path.pages),
                &rest[..self.keys.width()],
            );
            if let Some((seq, why)) = self.ghosts.find(&digest) {
                return lost(seq, why);
            }
        }
        self.compare_with_earlier(ask, rest, &found.path)
    }

    /// What a session asks for now, where that goes on from the end of its own path. What lies between is nowhere
    /// kept, so that nothing could be said of it later.
    pub(crate) fn remember_prompt(
        &mut self,
        session: &Arc<str>,
        namespace: u32,
        path: &Path,
        tail: Arc<[u8]>,
    ) {
        let (node, committed) = self.session_path(session);
        let goes_on = path.pages == committed && (committed == 0 || path.nodes.contains(&node));
        let tail = if goes_on { tail } else { Arc::default() };
        self.keep_prompt(session, Prompt { namespace, tail, from: path.pages });
    }

    pub(crate) fn keep_prompt(&mut self, session: &str, prompt: Prompt) {
        if let Some(number) = self.state.sessions.number(session) {
            *self.prompts.entry(number) = Some(prompt);
        }
    }

    fn prompt(&self, session: &str) -> Option<&Prompt> {
        self.prompts.get(self.state.sessions.number(session)?)?.as_ref()
    }

    /// What the session, or the one that spawned it, had at the place where this path leaves the tree.
    fn compare_with_earlier(&self, ask: &Ask, rest: &[u8], path: &Path) -> Miss {
        let record = self.state.sessions.get(ask.session);
        let own = || Some((record?, self.prompt(ask.session)?));
        let parent = || {
            let name = record?.parent.as_deref()?;
            Some((self.state.sessions.get(name)?, self.prompt(name)?))
        };
        let Some((earlier, prompt)) = own().or_else(parent) else { return Miss::plain(Reason::NeverStored) };
        let end = self.state.nodes.get(earlier.node);
        if end.map_or(prompt.namespace, |n| n.namespace) != ask.namespace {
            return Miss::plain(Reason::NamespaceChanged);
        }
        let committed = end.map_or(0, |n| n.end());
        let before = if committed > path.pages {
            // The earlier path goes on in the tree, differently, if it came this far at all.
            let on_path = |n: u32| self.state.path(earlier.node).contains(&n) || n == path.root;
            if !on_path(path.end()) {
                return Miss::plain(Reason::NeverStored);
            }
            self.key_at(earlier.node, path.pages)
        } else {
            // What it said last goes on where its path ends.
            let goes_on = end.is_none() || earlier.node == path.root || path.nodes.contains(&earlier.node);
            let said =
                Some(prompt).filter(|p| goes_on && p.from == committed && p.namespace == ask.namespace);
            let again = ask.key.get(self.bytes_of(committed.saturating_sub(ask.skip))..).unwrap_or_default();
            let known = self.bytes_of(path.pages - committed);
            let tail = said.map(|p| &*p.tail).unwrap_or_default();
            if committed < ask.skip || known > tail.len() || again.get(..known) != tail.get(..known) {
                return Miss::plain(Reason::NeverStored);
            }
            &tail[known..]
        };
        let same = before.iter().zip(rest).take_while(|(a, b)| a == b).count().min(self.keys.width());
        if before.is_empty() || same == self.keys.width() || same == before.len() {
            return Miss::plain(Reason::NeverStored);
        }
        let tokens = path.pages as i64 * self.page() as i64 + self.keys.differing_token(same) as i64;
        Miss { offset: tokens, ..Miss::plain(Reason::Diverged) }
    }

    /// Another request has reserved pages for this very page and has not committed yet.
    fn is_being_computed(&self, rest: &[u8], pages: u32, path: &Path) -> bool {
        let width = self.keys.width();
        self.state.ops.iter().filter(|(_, op)| op.kind == Kind::Alloc).any(|(_, op)| {
            let Some((receipt, live)) =
                op.receipt.and_then(|id| Some((self.state.receipts.get(&id)?, self.live_of(id).ok()?)))
            else {
                return false;
            };
            let held = self.state.path_pages(receipt.node);
            let reserved = self.members(op, FULL).len() as u32;
            let mine =
                (receipt.node == path.root || path.nodes.contains(&receipt.node)) && pages < held + reserved;
            // What it computes for this place, after what it computes before.
            let asked = |page: u32| {
                let at = page.checked_sub(live.from)? as usize * width;
                live.tail.get(at..at + width)
            };
            let before = || (live.from..pages).all(|page| asked(page) == Some(self.key_at(path.end(), page)));
            mine && asked(pages) == Some(&rest[..width]) && before()
        })
    }
}
