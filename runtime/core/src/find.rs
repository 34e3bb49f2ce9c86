//! Finding what the cache has.

use std::sync::Arc;

use crate::core::{Core, Live};
use crate::miss::Miss;
use crate::names::{Kind, Name, Phase, Reason};
use crate::records::{FULL, NONE};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;

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
pub(crate) struct Found {
    pub path: Path,
    pub pages: u32,
    pub full: u32,
    pub clipped_by: Name,
    /// Why not more.
    pub miss: Miss,
}

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

    /// The key of one page of a path.
    pub(crate) fn key_at(&self, node: u32, page: u32) -> &[u8] {
        let found = self.state.upward(node).find(|(_, n)| n.start <= page);
        // A piece is whole pages.
        let piece = found.and_then(|(id, n)| self.keys.of(id, page - n.start).next());
        piece.and_then(|piece| piece.get(..self.keys.width())).unwrap_or_default()
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
        row.hit_tokens = Some(by_tier.map(|pages| self.state.tokens(pages)));
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

impl Core {
    /// A session's node, when it has a path.
    pub(crate) fn session_path(&self, session: &str) -> (u32, u32) {
        let node = self.state.sessions.get(session).map_or(NONE, |s| s.node);
        (node, self.state.path_pages(node))
    }
}
