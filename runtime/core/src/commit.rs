//! What a request has computed comes into the tree.

use std::ops::Range;
use std::sync::Arc;

use crate::core::{Core, For, Prompt};
use crate::digest::{Digest, page_digests};
use crate::find::Path;
use crate::held::DeviceRun;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::{FULL, NONE, Op};
use crate::refusal::{Answer, Refusal};
use crate::reserve::PartRun;
use crate::row::Row;
use crate::runs::{Run, Runs};
use crate::strip::Placed;

#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub node: u32,
    pub inserted: u32,
    pub healed: u32,
    pub duplicate: u32,
    pub runs: Vec<DeviceRun>,
    pub parts: Vec<PartRun>,
}

/// A computation on its way into the tree.
pub(crate) struct Computed {
    pub op: Option<u64>,
    pub asker: For,
    pub path: Path,
    /// Pages computed.
    pub range: Range<u32>,
    /// Pages of the range that the tree knows.
    pub known: u32,
}

/// What becomes of one computed page of a component.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    New,
    Heal,
    Free(Reason),
}

impl Core {
    pub fn commit(&mut self, id: u64, key: &[u8], skip: u32, start: u32, pages: u32) -> Answer<Commit> {
        let op = self.reservation(id)?.clone();
        let receipt = op.receipt.ok_or_else(|| Refusal::Internal("a reservation without a lock".into()))?;
        let reserved = self.members(&op, FULL).len();
        if pages as usize > reserved {
            return Err(Refusal::BadArgument(format!("{pages} pages to commit, {reserved} reserved")));
        }
        let computed = self.place(receipt, Some(id), key, skip, start, pages)?;
        let landmarks = self.landmarks(&computed, &op);
        let ours = self.members(&op, FULL);
        let (healed, duplicate) = self.meet_known(&computed, &ours)?;
        let node = self.add_new(&computed, key, skip, &ours)?;
        for c in self.state.slotted().skip(1).collect::<Vec<_>>() {
            let ours = self.members(&op, c);
            self.add_beside(&computed, c, node, &ours, &landmarks)?;
        }
        self.free_reservation(id, Reason::Unused)?;
        self.conclude(receipt, computed, node, key, skip, (healed, duplicate))
    }

    /// Lengths at which somebody may resume later: where the computation ends, where others leave the path, and
    /// where this reservation has checkpoints.
    fn landmarks(&self, computed: &Computed, op: &Op) -> Vec<u32> {
        let branch = computed
            .asker
            .receipt
            .and_then(|receipt| self.live_of(receipt).ok())
            .map_or(0, |live| live.branch);
        let planned =
            op.slots.iter().filter_map(|slot| self.state.slots.get(*slot)).map(|slot| slot.position);
        let planned = planned.filter(|position| *position < computed.range.end).map(|position| position + 1);
        let mut landmarks: Vec<u32> =
            planned.chain([branch, computed.range.end]).filter(|l| *l <= computed.range.end).collect();
        landmarks.sort_unstable();
        landmarks.dedup();
        landmarks
    }

    /// Where computed pages belong: the caller's key follows the locked path, and then whatever the tree has.
    pub(crate) fn place(
        &mut self,
        receipt: u64,
        op: Option<u64>,
        key: &[u8],
        skip: u32,
        start: u32,
        pages: u32,
    ) -> Answer<Computed> {
        let asker = self.for_receipt(receipt)?;
        let locked = self.receipt_node(receipt)?;
        let held = self.state.path_pages(locked);
        let total = start.saturating_add(pages);
        if start > held {
            return Err(beyond(start, held));
        }
        if skip > held {
            return Err(Refusal::BadArgument(format!(
                "skip is {skip} pages, beyond the locked path of {held} pages"
            )));
        }
        let given = skip as usize + key.len() / self.keys.width();
        if given < total as usize {
            return Err(Refusal::BadArgument(format!(
                "the tokens fill {given} pages of {} tokens, {total} are to be committed",
                self.state.page_size
            )));
        }
        let key = &key[..self.bytes_of(total.max(held).max(skip) - skip).min(key.len())];
        let root = self.root_of(locked);
        let path = self.walk_on(root, self.state.path(locked), skip, key);
        let agreed = held.min(total);
        let through = |nodes: &[u32]| nodes.iter().copied().find(|n| self.state.path_pages(*n) >= agreed);
        if path.pages < agreed || agreed > 0 && through(&path.nodes) != through(&self.state.path(locked)) {
            return Err(Refusal::BadArgument(format!(
                "the tokens leave the locked path within its first {agreed} pages"
            )));
        }
        let known = path.pages.min(total).saturating_sub(start);
        Ok(Computed { op, asker, path, range: start..total, known })
    }

    pub(crate) fn root_of(&self, node: u32) -> u32 {
        let namespace = self.state.nodes.get(node).map_or(0, |n| n.namespace);
        self.state.namespaces.get(namespace).map_or(0, |n| n.root)
    }

    /// `full`'s pages whose place the tree knows: ours fill its holes, and are freed where it has the bytes.
    pub(crate) fn meet_known(&mut self, computed: &Computed, ours: &[u32]) -> Answer<(u32, u32)> {
        let known = computed.range.start..computed.range.start + computed.known;
        let pages: Vec<(u32, u32)> = known.zip(ours.iter().copied()).collect();
        let counts = self.settle_pages(computed, FULL, &pages, |_| None)?;
        Ok((counts.1, counts.2))
    }

    /// Another component's pages: those worth keeping go beside `full`'s, the rest are free.
    fn add_beside(
        &mut self,
        computed: &Computed,
        component: usize,
        end: u32,
        ours: &[u32],
        landmarks: &[u32],
    ) -> Answer<()> {
        let family = self.state.components[component].family.clone();
        let placed = (computed.range.start..).zip(ours).map(|(next, slot)| {
            let planned = self.state.slots.get(*slot).map_or(NONE, |s| s.position);
            (if planned == NONE { next } else { planned }, *slot)
        });
        let pages: Vec<(u32, u32)> = placed.filter(|(page, _)| *page < computed.range.end).collect();
        let out = |page: u32| (!family.keeps(page, landmarks)).then_some(Reason::OutOfWindow);
        let computed = Computed {
            path: self.path_to(computed, end),
            asker: computed.asker.clone(),
            range: computed.range.clone(),
            ..*computed
        };
        self.settle_pages(&computed, component, &pages, out).map(|_| ())
    }

    fn path_to(&self, computed: &Computed, end: u32) -> Path {
        Path { root: computed.path.root, nodes: self.state.path(end), pages: self.state.path_pages(end) }
    }

    /// Put (page, slot) pairs where the tree wants them, in as few rows as say it: (new, healed, duplicate).
    fn settle_pages(
        &mut self,
        computed: &Computed,
        component: usize,
        pages: &[(u32, u32)],
        unwanted: impl Fn(u32) -> Option<Reason>,
    ) -> Answer<(u32, u32, u32)> {
        let nodes = &computed.path.nodes;
        let fate = |page: u32| {
            if let Some(reason) = unwanted(page) {
                return (NONE, Fate::Free(reason));
            }
            let at = nodes.partition_point(|id| self.state.path_pages(*id) <= page);
            let Some((id, node)) = nodes.get(at).and_then(|id| Some((*id, self.state.nodes.get(*id)?)))
            else {
                return (NONE, Fate::Free(Reason::Unused));
            };
            match node.parts[component].slots.get(page).and_then(|s| self.state.slots.get(s)) {
                Some(slot) if slot.lacks(Tier::Device) => (id, Fate::Heal),
                Some(_) => (NONE, Fate::Free(Reason::Duplicate)),
                None => (id, Fate::New),
            }
        };
        let mut rows: Vec<(Run, u32, (u32, Fate))> = Vec::new();
        for (page, slot) in pages {
            let fate = fate(*page);
            match rows.last_mut() {
                Some((run, end, last))
                    if run.first + run.count == *slot && *end == *page && *last == fate =>
                {
                    (run.count, *end) = (run.count + 1, *page + 1);
                }
                _ => rows.push((Run { first: *slot, count: 1 }, *page + 1, fate)),
            }
        }
        let mut counts = (0, 0, 0);
        for (run, end, (node, fate)) in rows {
            let mut row = Row::new(Kind::Insert, Phase::New);
            (row.op, row.slot_from, row.pages) = (computed.op, Some(run.first), Some(run.count));
            row.component = Some(self.state.name_of(component));
            match fate {
                Fate::Free(reason) => {
                    (row.kind, row.phase, row.reason) = (Kind::Free, Phase::None, reason);
                    counts.2 += run.count;
                }
                Fate::Heal => {
                    (row.phase, row.node, row.end_page) = (Phase::Heal, Some(node), Some(end));
                    counts.1 += run.count;
                }
                Fate::New => {
                    (row.session, row.request) =
                        (computed.asker.session.clone(), computed.asker.request.clone());
                    (row.node, row.end_page, row.tier_to) = (Some(node), Some(end), Some(Tier::Device));
                    row.digests = self.digests_beside(node, end - run.count..end);
                    counts.0 += run.count;
                }
            }
            self.emit(row)?;
        }
        Ok(counts)
    }

    /// The digests that `full` has at these pages: the other components' pages have the same identity.
    fn digests_beside(&self, node: u32, pages: Range<u32>) -> Vec<Digest> {
        if self.config.defer_digests {
            return Vec::new();
        }
        let slots = pages.filter_map(|page| self.state.slot_at(node, FULL, page));
        slots.filter_map(|s| self.state.slots.get(s)).map(|s| s.digest).collect()
    }

    /// Pages that are new to the tree: at the end of the node before them when only this request ends there, else as
    /// a node of their own. Returns the node in which the computed path ends.
    fn add_new(&mut self, computed: &Computed, key: &[u8], skip: u32, ours: &[u32]) -> Answer<u32> {
        let (at, total) = (computed.range.start + computed.known, computed.range.end);
        let parent = self.cut(computed.path.root, &computed.path.nodes, at)?;
        if at == total {
            return Ok(parent);
        }
        let digests = self.new_digests(parent, at, total, key, skip);
        let grows = self.continues(parent, &computed.asker);
        let node = if grows { parent } else { self.state.nodes.choose(1)[0].first };
        let ours: Runs =
            ours[computed.known as usize..(total - computed.range.start) as usize].iter().copied().collect();
        self.put_new(computed, node, parent, at, ours.as_runs(), digests)?;
        let key = &key[self.bytes_of(at - skip)..self.bytes_of(total - skip)];
        if grows {
            self.keys.append(node, key);
        } else {
            self.keys.add(node, parent, key);
        }
        Ok(node)
    }

    pub(crate) fn new_digests(&self, parent: u32, at: u32, total: u32, key: &[u8], skip: u32) -> Vec<Digest> {
        if self.config.defer_digests {
            return Vec::new();
        }
        let key = &key[self.bytes_of(at - skip)..self.bytes_of(total - skip)];
        let mut digests = Vec::with_capacity((total - at) as usize);
        page_digests(self.keys.kind(), &self.digest_at(parent, at), key, self.keys.width(), &mut digests);
        digests
    }

    pub(crate) fn put_new(
        &mut self,
        computed: &Computed,
        node: u32,
        parent: u32,
        at: u32,
        runs: &[Run],
        digests: Vec<Digest>,
    ) -> Answer<()> {
        let (mut position, mut digests) = (at, digests);
        for run in runs {
            let mut row = Row::new(Kind::Insert, Phase::New);
            (row.op, row.node, row.parent) = (computed.op, Some(node), Some(parent));
            row.namespace = self.state.nodes.get(parent).map(|n| n.namespace);
            (row.session, row.request) = (computed.asker.session.clone(), computed.asker.request.clone());
            position += run.count;
            (row.slot_from, row.pages, row.end_page) = (Some(run.first), Some(run.count), Some(position));
            (row.tier_to, row.component) = (Some(Tier::Device), Some(self.state.name_of(FULL)));
            row.tokens = Some(self.state.tokens(run.count));
            let rest = digests.split_off(digests.len().min(run.count as usize));
            row.digests = std::mem::replace(&mut digests, rest);
            self.emit(row)?;
        }
        Ok(())
    }

    /// Whether a node's end is only this request's: then what follows belongs into the same node.
    pub(crate) fn continues(&self, node: u32, asker: &For) -> bool {
        let Some(record) = self.state.nodes.get(node) else { return false };
        let receipt = asker.receipt.and_then(|id| self.state.receipts.get(&id));
        let ends_here = |name: &str| self.state.sessions.get(name).is_some_and(|s| s.node == node);
        let own = asker.session.as_deref().is_some_and(ends_here) as u32;
        record.parent != NONE
            && record.kids == 0
            && receipt.is_some_and(|receipt| receipt.node == node)
            && (record.locks, record.sessions) == (1, own)
            && (record.leases, record.retains) == ([0; 3], 0)
    }

    /// The computed path is the request's now, and its session's.
    pub(crate) fn conclude(
        &mut self,
        receipt: u64,
        computed: Computed,
        node: u32,
        key: &[u8],
        skip: u32,
        (healed, duplicate): (u32, u32),
    ) -> Answer<Commit> {
        let (start, total) = (computed.range.start, computed.range.end);
        let asker = computed.asker;
        let locked = self.receipt_node(receipt)?;
        let held = self.state.path_pages(locked).max(total);
        let node = if held > total { locked } else { node };
        self.set_user(node, &asker.session);
        let mut row = Row::new(Kind::Lock, Phase::Extend);
        (row.receipt, row.node, row.end_page, row.op) = (Some(receipt), Some(node), Some(held), computed.op);
        self.emit(row)?;
        let rest: Arc<[u8]> = key.get(self.bytes_of(held.saturating_sub(skip))..).unwrap_or_default().into();
        if let Some(live) = self.live_mut(receipt) {
            (live.tail, live.from) = (rest.clone(), held);
        }
        if let Some(session) = asker.session.clone().filter(|s| self.state.sessions.get(&**s).is_some()) {
            let mut row = Row::new(Kind::Session, Phase::Advance);
            (row.session, row.node, row.end_page) = (Some(session.clone()), Some(node), Some(held));
            (row.request, row.op) = (asker.request.clone(), computed.op);
            self.emit(row)?;
            let namespace = self.state.nodes.get(node).map_or(0, |n| n.namespace);
            self.keep_prompt(&session, Prompt { namespace, tail: rest, from: held });
        }
        let runs = self.device_runs(node, FULL, start, total);
        let mut parts = Vec::new();
        for c in self.state.slotted().skip(1) {
            let name = self.state.name_of(c);
            parts.extend(
                self.placed_runs(node, c, start..total).into_iter().map(|(s, p, n, at)| (name, s, p, n, at)),
            );
        }
        if self.config.write_through {
            self.write_down(node, &asker)?;
        }
        self.settle()?;
        Ok(Commit { node, inserted: total - start - computed.known, healed, duplicate, runs, parts })
    }

    /// (slot, device page, count, position) of a component's pages on the device, gaps or not.
    fn placed_runs(&self, node: u32, component: usize, pages: Range<u32>) -> Vec<(u32, u32, u32, u32)> {
        let mut runs: Vec<(u32, u32, u32, u32)> = Vec::new();
        let path = self.state.path(node);
        let records =
            path.iter().filter_map(|id| self.state.nodes.get(*id)).filter(|n| n.end() > pages.start);
        for Placed { at, first, count } in
            records.flat_map(|n| n.parts[component].slots.between(pages.start, pages.end))
        {
            for i in 0..count {
                let Some(slot) = self.state.slots.get(first + i).filter(|s| s.usable(Tier::Device)) else {
                    continue;
                };
                let (id, page, position) = (first + i, slot.page(Tier::Device), at + i);
                match runs.last_mut() {
                    Some((s, p, n, a)) if (*s + *n, *p + *n, *a + *n) == (id, page, position) => *n += 1,
                    _ => runs.push((id, page, 1, position)),
                }
            }
        }
        runs
    }
}

pub(crate) fn beyond(start: u32, held: u32) -> Refusal {
    Refusal::BadArgument(format!("start is page {start}, beyond the locked path of {held} pages"))
}
