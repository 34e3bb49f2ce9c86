//! Finding what the cache has, and why the rest is not there.

use std::sync::Arc;

use crate::core::{Core, Live, Prompt};
use crate::digest::{Digest, page_digest};
use crate::families::Shape;
use crate::names::{Kind, Name, Phase, Reason, Tier};
use crate::records::{FULL, NONE};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::slots::Slot;

#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    pub node: u32,
    pub pages: u32,
    /// Of them, by `full`'s fastest tier.
    pub by_tier: [u32; 3],
    /// What `full` alone would have given, and the component that gave less.
    pub full_pages: u32,
    pub clipped_by: Name,
    /// A length at which this path is worth a checkpoint; 0 for none.
    pub branch: u32,
    pub miss: Miss,
    pub seq: u64,
    pub receipt: u64,
}

/// Why the first page after a match is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    pub reason: Reason,
    pub offset: i64,
    pub lost_seq: u64,
}

impl Miss {
    fn plain(reason: Reason) -> Self {
        Miss { reason, offset: -1, lost_seq: 0 }
    }
}

/// What is asked: the key from page `skip` of the session's own path on, under one namespace.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub session: &'a str,
    pub request: &'a str,
    pub namespace: u32,
    pub skip: u32,
    pub key: &'a [u8],
}

/// A path through the tree.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub root: u32,
    /// From just below the root on.
    pub nodes: Vec<u32>,
    /// Pages of it that were asked for; the last node may have more.
    pub pages: u32,
}

impl Path {
    pub fn end(&self) -> u32 {
        self.nodes.last().copied().unwrap_or(self.root)
    }
}

/// What a path holds, before anything is held.
struct Found {
    path: Path,
    pages: u32,
    full: u32,
    clipped_by: Name,
    /// Why not more.
    miss: Miss,
}

/// (first slot, first device page, count)
pub type DeviceRun = (u32, u32, u32);

/// (generation << 32 | slot, page in the tier's pool, position, digest)
pub type Copy = (u64, u32, u32, Digest);

const ANY_TIER: u8 = 7;

impl Core {
    pub fn look(&mut self, ask: &Ask) -> Answer<Match> {
        let names = (self.known(ask.session)?, ask.request.into());
        let found = self.find(ask)?;
        let node = found.path.nodes.iter().copied().find(|n| self.state.path_pages(*n) >= found.pages);
        let node = if found.pages == 0 { found.path.root } else { node.unwrap_or(found.path.root) };
        let by_tier = self.by_tier(&found.path, found.pages);
        self.answer_match(Phase::Look, ask, &names, &found, node, by_tier)
    }

    pub fn acquire(&mut self, ask: &Ask, grid: u32) -> Answer<Match> {
        let names = (self.known(ask.session)?, ask.request.into());
        if grid == 0 {
            return Err(Refusal::BadArgument("grid is 0 pages; it must be at least 1".into()));
        }
        let found = self.find(ask)?;
        let mut pages = found.pages / grid * grid;
        if pages < found.pages {
            // A length on the grid that every component can be resumed at.
            while pages > 0 && self.state.resumable(&found.path.nodes, ANY_TIER, pages) != pages {
                pages -= grid;
            }
        }
        let by_tier = self.by_tier(&found.path, pages);
        let node = self.cut(found.path.root, &found.path.nodes, pages)?;
        let mut answer = self.answer_match(Phase::Acquire, ask, &names, &found, node, by_tier)?;
        let from = found.path.pages;
        let tail: Arc<[u8]> =
            ask.key[self.bytes_of(from.saturating_sub(ask.skip)).min(ask.key.len())..].into();
        let (rest, at) =
            if pages < from { (self.key_after(ask, pages), pages) } else { (tail.clone(), from) };
        let live = Live { tail: rest, from: at, branch: answer.branch, seq: answer.seq, ..Live::default() };
        let (name, request) = names;
        answer.receipt = self.lock(node, Some(name.clone()), Some(request), live)?;
        self.remember_prompt(&name, ask.namespace, &found.path, tail);
        self.refresh_leases(&name, node)?;
        self.settle()?;
        Ok(answer)
    }

    /// What is asked for from page `pages` on.
    fn key_after(&self, ask: &Ask, pages: u32) -> Arc<[u8]> {
        let given = &ask.key[self.bytes_of(pages.saturating_sub(ask.skip)).min(ask.key.len())..];
        // Before `skip`, the session's own path says it.
        let own = self.session_path(ask.session).0;
        let before: Vec<&[u8]> = (pages..ask.skip.max(pages)).map(|page| self.key_at(own, page)).collect();
        if before.is_empty() { given.into() } else { [before.concat().as_slice(), given].concat().into() }
    }

    pub(crate) fn bytes_of(&self, pages: u32) -> usize {
        pages as usize * self.keys.width()
    }

    fn find(&self, ask: &Ask) -> Answer<Found> {
        let path = self.walk(ask)?;
        let full = self.state.reach_of(FULL, &path.nodes, ANY_TIER, path.pages);
        let (mut pages, mut clipped_by) = (full, "");
        if self.state.components.len() > 1 {
            pages = self.state.resumable(&path.nodes, ANY_TIER, full);
            let short = |c: &usize| self.state.reach_of(*c, &path.nodes, ANY_TIER, full) < full;
            let clips = if pages < full { self.state.slotted().find(short) } else { None };
            clipped_by = clips.map_or("", |c| self.state.name_of(c));
        }
        let miss = Miss::plain(Reason::ComponentGap);
        let mut found = Found { path, pages, full, clipped_by, miss };
        if pages == full {
            found.miss = self.explain(ask, &found);
        }
        Ok(found)
    }

    /// Follow a key: from the root, or from page `skip` of the session's own path.
    fn walk(&self, ask: &Ask) -> Answer<Path> {
        let root = self.root(ask.namespace)?;
        if ask.skip == 0 {
            let walk = self.keys.walk(root, ask.key);
            return Ok(Path { root, nodes: walk.nodes, pages: walk.pages });
        }
        let (node, pages) = self.session_path(ask.session);
        let here = self.state.nodes.get(node).is_some_and(|n| n.namespace == ask.namespace);
        if ask.skip > pages || !here {
            let pages = if here { pages } else { 0 };
            return Err(Refusal::BadArgument(format!(
                "skip is {} pages; the path of session {:?} in this namespace has {pages}",
                ask.skip, ask.session
            )));
        }
        Ok(self.walk_on(root, self.state.path(node), ask.skip, ask.key))
    }

    /// Follow a key from page `skip` of a path on.
    pub(crate) fn walk_on(&self, root: u32, mut nodes: Vec<u32>, skip: u32, key: &[u8]) -> Path {
        nodes.truncate(nodes.partition_point(|id| self.state.nodes.get(*id).is_some_and(|n| n.start < skip)));
        let Some(last) = nodes.last().copied() else {
            let walk = self.keys.walk(root, key);
            return Path { root, nodes: walk.nodes, pages: walk.pages };
        };
        let (start, end) = self.state.nodes.get(last).map_or((0, 0), |n| (n.start, n.end()));
        let mut pages = skip;
        if skip < end {
            pages += self.keys.resume(last, skip - start, key);
        }
        if pages == end {
            let walk = self.keys.walk(last, &key[self.bytes_of(pages - skip)..]);
            nodes.extend(walk.nodes);
            pages += walk.pages;
        }
        Path { root, nodes, pages }
    }

    pub fn table(&self, receipt: u64, component: usize) -> Answer<Vec<DeviceRun>> {
        let node = self.receipt_node(receipt)?;
        if self.state.shape(component) == Shape::Spot {
            let spots = self.state.receipts.get(&receipt).map(|r| r.spots.clone()).unwrap_or_default();
            return Ok(self.spot_runs(&spots, component));
        }
        Ok(self.device_runs(node, component, 0, u32::MAX))
    }

    pub fn path_keys(&self, receipt: u64) -> Answer<Vec<Digest>> {
        let node = self.receipt_node(receipt)?;
        Ok(self.state.path_slots(node).map(|(id, _)| self.digest_of(id)).collect())
    }

    /// The locked path's copies on the device, gaps or not; of a spot component, the held ones.
    pub fn copies(&self, receipt: u64, component: usize) -> Answer<Vec<Copy>> {
        let node = self.receipt_node(receipt)?;
        let held = self.state.receipts.get(&receipt).map(|r| r.spots.as_slice()).unwrap_or_default();
        let spot = self.state.shape(component) == Shape::Spot;
        let slots = self.state.component_slots(node, component);
        let there = slots.filter(|(id, slot)| slot.usable(Tier::Device) && (!spot || held.contains(id)));
        Ok(there.map(|(id, slot)| self.copy(id, slot, Tier::Device)).collect())
    }

    /// Every settled copy in a tier; with `session`, only those on its path.
    pub fn resident(&self, tier: Tier, session: Option<&str>, component: usize) -> Answer<Vec<Copy>> {
        let node = match session {
            Some(name) => Some(self.session_path(&self.known(name)?).0),
            None => None,
        };
        let settled = |(id, slot): (u32, &Slot)| slot.usable(tier).then(|| self.copy(id, slot, tier));
        Ok(match node {
            Some(node) => self.state.component_slots(node, component).filter_map(settled).collect(),
            None => {
                let mine = self.state.slots.iter().filter(|(_, slot)| slot.component as usize == component);
                mine.filter_map(settled).collect()
            }
        })
    }

    fn copy(&self, id: u32, slot: &Slot, tier: Tier) -> Copy {
        (self.state.slots.owner(id), slot.page(tier), slot.position, self.digest_of(id))
    }

    /// Device pages of the path to `node`, from page `from` on, as far as they are there without a gap.
    pub(crate) fn device_runs(&self, node: u32, component: usize, from: u32, to: u32) -> Vec<DeviceRun> {
        let mut runs: Vec<DeviceRun> = Vec::new();
        for (_, record) in
            self.state.path(node).into_iter().filter_map(|id| Some((id, self.state.nodes.get(id)?)))
        {
            if record.end() <= from {
                continue;
            }
            let placed = record.parts[component].slots.between(from.max(record.start), to.min(record.end()));
            for id in placed.flat_map(|placed| placed.slots().iter()) {
                match self.state.slots.get(id).filter(|slot| slot.usable(Tier::Device)) {
                    Some(slot) => join(&mut runs, id, slot.page(Tier::Device)),
                    None => return runs,
                }
            }
        }
        runs
    }

    pub(crate) fn spot_runs(&self, slots: &[u32], component: usize) -> Vec<DeviceRun> {
        let mine = slots.iter().filter_map(|id| Some((*id, self.state.slots.get(*id)?)));
        let mut mine: Vec<(u32, &Slot)> =
            mine.filter(|(_, s)| s.component as usize == component && s.usable(Tier::Device)).collect();
        mine.sort_by_key(|(_, slot)| slot.position);
        let mut runs = Vec::new();
        mine.into_iter().for_each(|(id, slot)| join(&mut runs, id, slot.page(Tier::Device)));
        runs
    }

    /// Pages of a path that some tier can give, by fastest tier.
    fn by_tier(&self, path: &Path, limit: u32) -> [u32; 3] {
        let mut by_tier = [0; 3];
        for node in path.nodes.iter().filter_map(|n| self.state.nodes.get(*n)).take_while(|n| n.start < limit)
        {
            let pages = node.pages.min(limit - node.start);
            if node.is_whole_on_device(FULL) {
                by_tier[0] += pages;
                continue;
            }
            let slots = node.slots().iter().take(pages as usize);
            let best = slots.filter_map(|(_, slot)| self.state.slots.get(slot)?.best());
            best.for_each(|tier| by_tier[tier as usize] += 1);
        }
        by_tier
    }

    fn explain(&self, ask: &Ask, found: &Found) -> Miss {
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
            let digest =
                page_digest(self.config.key, &self.path_digest(&found.path), &rest[..self.keys.width()]);
            if let Some((seq, why)) = self.ghosts.find(&digest) {
                return lost(seq, why);
            }
        }
        self.compare_with_earlier(ask, rest, &found.path)
    }

    /// What a session asks for now, where that goes on from the end of its own path. What lies between is nowhere
    /// kept, so that nothing could be said of it later.
    fn remember_prompt(&mut self, session: &Arc<str>, namespace: u32, path: &Path, tail: Arc<[u8]>) {
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

    fn path_digest(&self, path: &Path) -> Digest {
        if path.pages == 0 {
            let namespace = self.state.nodes.get(path.root).map_or(0, |n| n.namespace);
            return self.root_digests.get(namespace as usize).copied().unwrap_or_default();
        }
        self.digest_at(path.end(), path.pages)
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

    /// The key of one page of a path.
    pub(crate) fn key_at(&self, node: u32, page: u32) -> &[u8] {
        let found = self.state.upward(node).find(|(_, n)| n.start <= page);
        // A piece is whole pages.
        let piece = found.and_then(|(id, n)| self.keys.of(id, page - n.start).next());
        piece.and_then(|piece| piece.get(..self.keys.width())).unwrap_or_default()
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

    fn answer_match(
        &mut self,
        phase: Phase,
        ask: &Ask,
        (session, request): &(Arc<str>, Arc<str>),
        found: &Found,
        node: u32,
        by_tier: [u32; 3],
    ) -> Answer<Match> {
        let (pages, miss) = (by_tier.iter().sum(), found.miss.clone());
        let mut row = Row::new(Kind::Match, phase);
        (row.session, row.request) = (Some(session.clone()), Some(request.clone()));
        (row.namespace, row.node) = (Some(ask.namespace), Some(node));
        let asked = ask.skip as usize * self.page() + self.keys.tokens(ask.key.len());
        row.tokens = Some(asked as i64);
        row.pages = Some(pages);
        row.end_page = row.pages;
        row.hit_tokens = Some(by_tier.map(|pages| (pages * self.state.page_size) as i64));
        row.reason = miss.reason;
        row.component = (!found.clipped_by.is_empty()).then_some(found.clipped_by);
        row.cause = (miss.lost_seq > 0).then_some(miss.lost_seq);
        row.score = (miss.offset >= 0).then_some(miss.offset);
        let seq = self.emit(row)?;
        let branch = if found.full > pages { found.full } else { 0 };
        Ok(Match {
            node,
            pages,
            by_tier,
            full_pages: found.full,
            clipped_by: found.clipped_by,
            branch,
            miss,
            seq,
            receipt: 0,
        })
    }
}

fn join(runs: &mut Vec<DeviceRun>, slot: u32, page: u32) {
    match runs.last_mut() {
        Some((s, p, n)) if *s + *n == slot && *p + *n == page => *n += 1,
        _ => runs.push((slot, page, 1)),
    }
}

impl Core {
    /// A session's node, when it has a path.
    pub(crate) fn session_path(&self, session: &str) -> (u32, u32) {
        let node = self.state.sessions.get(session).map_or(NONE, |s| s.node);
        (node, self.state.path_pages(node))
    }
}
