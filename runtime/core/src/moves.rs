//! Moves between tiers: what to bring up or down, the actions that say so, and their completion.

use std::collections::{BTreeSet, HashMap};

use crate::compute::{pair, unknown_operation};
use crate::core::{Core, For, group};
use crate::digest::Digest;
use crate::families::Shape;
use crate::names::{Kind, Name, Phase, Reason, Tier};
use crate::records::{NONE, Op};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::runs::{Run, Runs};
use crate::slots::Slot;

/// Bytes for the shell to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub op: u64,
    pub kind: Kind,
    pub component: Name,
    pub tier_from: Tier,
    pub tier_to: Tier,
    pub session: String,
    /// (first slot, first source page, first destination page, count)
    pub runs: Vec<(u32, u32, u32, u32)>,
    pub keys: Vec<Digest>,
    pub owners: Vec<u64>,
    pub positions: Vec<u32>,
}

/// How far a path is up, and what moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restore {
    pub ready: u32,
    pub pending: u32,
    pub ops: Vec<u64>,
}

/// From where to where, and what that is called.
pub(crate) type Way = (Kind, Tier, Tier);

pub(crate) const BACKUP: Way = (Kind::Backup, Tier::Device, Tier::Host);
pub(crate) const OFFLOAD: Way = (Kind::Offload, Tier::Host, Tier::Storage);
pub(crate) const PREFETCH: Way = (Kind::Prefetch, Tier::Storage, Tier::Host);
pub(crate) const LOAD: Way = (Kind::Load, Tier::Host, Tier::Device);
/// Without a host tier, storage is next to the device.
const DIRECT_DOWN: Way = (Kind::Offload, Tier::Device, Tier::Storage);
const DIRECT_UP: Way = (Kind::Load, Tier::Storage, Tier::Device);

/// Result of one page in a completion.
pub const ARRIVED: u8 = 1;
pub const SOURCE_DAMAGED: u8 = 2;

impl Core {
    /// `into`: for a device that the engine owns, its pages for what is to be loaded, in path order.
    pub fn restore(&mut self, receipt: u64, into: Option<&[u32]>) -> Answer<Restore> {
        self.given(receipt)?;
        if into.is_some() != self.state.is_observed(Tier::Device) {
            let whose = if into.is_some() {
                "this runtime owns its device pages: leave `into` out"
            } else {
                "the engine owns its device pages: give `into`, the pages to load into"
            };
            return Err(Refusal::BadArgument(whose.into()));
        }
        if let Some(blocks) = into {
            self.claim(blocks, |_| true)?;
            for c in self.state.slotted().collect::<Vec<_>>() {
                self.forget(blocks, c)?;
            }
        }
        let mut restore = self.bring_to_device(receipt, into)?;
        self.hold_ready(receipt, &mut restore)?;
        self.settle()?;
        Ok(restore)
    }

    /// What is said to be ready is held. A lock lists the windows and checkpoints of its own end; where these did not
    /// come, or another has made them since, it now ends where the device can be resumed, and lists what that needs.
    fn hold_ready(&mut self, receipt: u64, restore: &mut Restore) -> Answer<()> {
        if self.state.of_shape(Shape::Spot).next().is_none() {
            return Ok(());
        }
        let node = self.receipt_node(receipt)?;
        let length = self.state.path_pages(node);
        let sorted = |mut slots: Vec<u32>| {
            slots.sort_unstable();
            slots
        };
        let held = sorted(self.state.receipts.get(&receipt).map(|r| r.spots.clone()).unwrap_or_default());
        if restore.ready == length && sorted(self.state.needed_spots(node)) == held {
            return Ok(());
        }
        // Who has reserved computes on from the lock as it was.
        if restore.pending > 0 || !self.live_of(receipt)?.reservations.is_empty() {
            restore.ready = 0;
            return Ok(());
        }
        let (root, path) = (self.root_of(node), self.state.path(node));
        let end = self.cut(root, &path, restore.ready)?;
        let left: Vec<u8> = (restore.ready..length).flat_map(|page| self.key_at(node, page)).collect();
        let mut row = Row::new(Kind::Lock, Phase::Extend);
        (row.receipt, row.node, row.end_page) = (Some(receipt), Some(end), Some(restore.ready));
        row.reason = Reason::ComponentGap;
        self.emit(row)?;
        if let Some(live) = self.live_mut(receipt) {
            live.tail = left.into_iter().chain(live.tail.iter().copied()).collect();
            live.from = restore.ready;
            if restore.ready < length {
                live.branch = live.branch.max(length);
            }
        }
        Ok(())
    }

    /// Start what brings the locked path to the device, as far as it can be resumed there.
    pub(crate) fn bring_to_device(&mut self, receipt: u64, into: Option<&[u32]>) -> Answer<Restore> {
        let asker = self.for_receipt(receipt)?;
        let node = self.receipt_node(receipt)?;
        let length = self.state.path_pages(node);
        let mut found = Restore::default();
        // What was given up arrives no more, though somebody may still write it.
        let given_up = self.state.ops.iter().filter(|(_, op)| op.draining);
        let given_up = given_up.flat_map(|(_, op)| op.slots.iter().map(|slot| (*slot, op.tier_to)));
        let given_up: BTreeSet<(u32, Tier)> = given_up.collect();
        for c in self.state.slotted().collect::<Vec<_>>() {
            let needed: Vec<u32> = match self.state.shape(c) {
                Shape::Path => self.state.component_slots(node, c).map(|(id, _)| id).collect(),
                _ => self.needed_of(receipt, c),
            };
            let failed = &self.live_of(receipt)?.failed;
            let (mut load, mut prefetch) = (Vec::new(), Vec::new());
            for id in needed {
                let Some(slot) = self.state.slots.get(id) else { break };
                if slot.usable(Tier::Device) {
                    continue;
                }
                let in_vain = |tier| slot.awaits(tier) && given_up.contains(&(id, tier));
                if in_vain(Tier::Device) || in_vain(Tier::Host) {
                    break;
                } else if slot.awaits(Tier::Device) {
                    found.pending += 1;
                } else if failed.contains(&id) || slot.has(Tier::Device) {
                    break;
                } else if slot.usable(Tier::Host) || self.is_direct(c) && slot.usable(Tier::Storage) {
                    load.push(id);
                } else if slot.awaits(Tier::Host) {
                    found.pending += 1;
                } else if slot.usable(Tier::Storage) && slot.lacks(Tier::Host) {
                    prefetch.push(id);
                } else {
                    break;
                }
            }
            let up = if self.is_direct(c) { DIRECT_UP } else { LOAD };
            for (way, slots) in [(up, load), (PREFETCH, prefetch)] {
                let pages = into.filter(|_| way.2 == Tier::Device);
                if let Some((op, pages)) = self.start_move_to(way, c, &slots, &asker, pages)? {
                    found.ops.push(op);
                    found.pending += pages;
                }
            }
        }
        found.ready = self.state.resumable(&self.state.path(node), Tier::Device.bit(), length);
        Ok(found)
    }

    /// A spot component's slots that a lock holds, in order.
    fn needed_of(&self, receipt: u64, component: usize) -> Vec<u32> {
        let spots = self.state.receipts.get(&receipt).map(|r| r.spots.as_slice()).unwrap_or_default();
        let mine = spots.iter().filter_map(|id| Some((self.state.slots.get(*id)?, *id)));
        let mut mine: Vec<(u32, u32)> =
            mine.filter(|(s, _)| s.component as usize == component).map(|(s, id)| (s.position, id)).collect();
        mine.sort_unstable();
        mine.into_iter().map(|(_, id)| id).collect()
    }

    /// Storage without a host tier before it.
    fn is_direct(&self, component: usize) -> bool {
        let pages = self.config.components[component].pages;
        pages[Tier::Host as usize] == 0 && pages[Tier::Storage as usize] > 0
    }

    /// Where a component's copies in a tier are written down to, when anywhere.
    pub(crate) fn way_down(&self, component: usize, tier: Tier) -> Option<(Way, Tier)> {
        let way = match tier {
            Tier::Device if self.is_direct(component) => DIRECT_DOWN,
            Tier::Device => BACKUP,
            Tier::Host => OFFLOAD,
            Tier::Storage => return None,
        };
        let exists = self.config.components.get(component)?.pages[way.2 as usize] > 0;
        exists.then_some((way, way.2))
    }

    /// Write down what is new on a path, as write-through does: what has been used often enough.
    pub(crate) fn write_down(&mut self, node: u32, asker: &For) -> Answer<()> {
        for c in self.state.slotted().collect::<Vec<_>>() {
            let Some((_, below)) = self.way_down(c, Tier::Device) else { continue };
            let admit = self.config.admit[below as usize - 1];
            self.back_up(node, c, asker, |core, _, slot| {
                !slot.usable(Tier::Storage) && core.uses(slot) >= admit
            })?;
            if below == Tier::Host && self.way_down(c, Tier::Host).is_some() {
                // What failed when it came to the host, or had not been used often enough, may go on now.
                let admit = self.config.admit[Tier::Storage as usize - 1];
                let slots = self.bare(node, c, Tier::Host, Tier::Storage, |_, slot| self.uses(slot) >= admit);
                self.start_move(OFFLOAD, c, &slots, asker)?;
            }
        }
        Ok(())
    }

    fn uses(&self, slot: &Slot) -> u32 {
        self.state.nodes.get(slot.node).map_or(0, |n| n.uses)
    }

    /// Write down, in path order, what is wanted of the pages that are on the device and not in the tier below.
    pub(crate) fn back_up(
        &mut self,
        node: u32,
        component: usize,
        asker: &For,
        wanted: impl Fn(&Core, u32, &Slot) -> bool,
    ) -> Answer<Option<(u64, u32)>> {
        let Some((way, below)) = self.way_down(component, Tier::Device) else { return Ok(None) };
        let slots = self.bare(node, component, Tier::Device, below, |id, slot| wanted(self, id, slot));
        self.start_move(way, component, &slots, asker)
    }

    /// A path's slots with a copy in one tier and none in the other, in order. Most of a path is written down long
    /// since: whole nodes of it are passed by their counts.
    fn bare(
        &self,
        node: u32,
        component: usize,
        has: Tier,
        lacks: Tier,
        wanted: impl Fn(u32, &Slot) -> bool,
    ) -> Vec<u32> {
        let mut slots = Vec::new();
        for record in self.state.path(node).into_iter().filter_map(|id| self.state.nodes.get(id)) {
            let part = &record.parts[component];
            if part.copies[has as usize] > 0 && part.copies[lacks as usize] < part.slots.len() {
                let there = part.slots.iter().filter_map(|(_, s)| Some((s, self.state.slots.get(s)?)));
                let bare = there.filter(|(_, slot)| slot.usable(has) && slot.lacks(lacks));
                slots.extend(bare.filter(|(id, slot)| wanted(*id, slot)).map(|(id, _)| id));
            }
        }
        slots
    }

    /// Fetch to the host what the path has in storage only.
    pub(crate) fn fetch(
        &mut self,
        node: u32,
        component: usize,
        asker: &For,
        failed: &BTreeSet<u32>,
    ) -> Answer<Option<(u64, u32)>> {
        if self.is_direct(component) {
            return Ok(None);
        }
        let stored = |slot: &Slot| slot.best() == Some(Tier::Storage) && slot.lacks(Tier::Host);
        let mut slots = self.component_where(node, component, stored);
        slots.retain(|slot| !failed.contains(slot));
        self.start_move(PREFETCH, component, &slots, asker)
    }

    /// The same over all components: the path's own slots, and of spots what resuming at its end needs.
    pub(crate) fn needed_where(&self, node: u32, wanted: impl Fn(&Slot) -> bool) -> Vec<u32> {
        let paths = self.state.of_shape(Shape::Path).flat_map(|c| self.component_where(node, c, &wanted));
        let spots = self.state.needed_spots(node);
        let is_wanted = |id: &u32| self.state.slots.get(*id).is_some_and(&wanted);
        paths.chain(spots.into_iter().filter(is_wanted)).collect()
    }

    pub(crate) fn path_where(&self, node: u32, wanted: impl Fn(&Slot) -> bool) -> Vec<u32> {
        self.state.path_slots(node).filter(|(_, slot)| wanted(slot)).map(|(id, _)| id).collect()
    }

    pub(crate) fn component_where(
        &self,
        node: u32,
        component: usize,
        wanted: impl Fn(&Slot) -> bool,
    ) -> Vec<u32> {
        let slots = self.state.component_slots(node, component);
        slots.filter(|(_, slot)| wanted(slot)).map(|(id, _)| id).collect()
    }

    /// Open a move of as many leading slots as there is room for. None when there is none.
    pub(crate) fn start_move(
        &mut self,
        way: Way,
        component: usize,
        slots: &[u32],
        asker: &For,
    ) -> Answer<Option<(u64, u32)>> {
        self.start_move_to(way, component, slots, asker, None)
    }

    /// The same, into pages of somebody else's tier.
    fn start_move_to(
        &mut self,
        way: Way,
        component: usize,
        slots: &[u32],
        asker: &For,
        into: Option<&[u32]>,
    ) -> Answer<Option<(u64, u32)>> {
        let (kind, from, to) = way;
        let observed = self.state.is_observed(to);
        let exists = observed || self.config.components[component].pages[to as usize] > 0;
        if slots.is_empty() || !exists || observed && into.is_none() {
            return Ok(None);
        }
        let op = self.number();
        let mut row = Row::new(kind, Phase::Ask);
        (row.op, row.receipt, row.cause) = (Some(op), asker.receipt, asker.cause);
        (row.session, row.request) = (asker.session.clone(), asker.request.clone());
        (row.tier_from, row.tier_to) = (Some(from), Some(to));
        row.component = Some(self.state.name_of(component));
        row.pages = Some(slots.len() as u32);
        let ask = self.emit(row.clone())?;
        row.cause = Some(ask);
        let room = match into {
            Some(pages) => pages.len().min(slots.len()) as u32,
            None => {
                // Writing down never pushes out what was used since: that would trade a newer page for an older one.
                let older_than = slots.iter().filter_map(|s| self.last_use(*s)).min().filter(|_| to > from);
                self.make_room(component, to, slots.len() as u32, older_than, ask)?
            }
        };
        if room < slots.len() as u32 {
            let missing = Some(slots.len() as u32 - room);
            self.emit(Row {
                phase: Phase::Fail,
                reason: Reason::NoRoom,
                op: None,
                pages: missing,
                ..row.clone()
            })?;
        }
        if room == 0 {
            return Ok(None);
        }
        let slots = &slots[..room as usize];
        let pages: Vec<Run> = match into {
            Some(pages) => pages[..room as usize].iter().copied().collect::<Runs>().as_runs().to_vec(),
            None => self.state.pools[component][to as usize].pages.choose(room),
        };
        let action = self.action(op, way, component, slots, &pages, asker)?;
        let deadline =
            (self.config.move_timeout > 0).then(|| self.now.saturating_add(self.config.move_timeout));
        for (slot, _, page, count) in &action.runs {
            self.emit(Row {
                phase: Phase::Reserve,
                slot_from: Some(*slot),
                page_from: Some(*page),
                pages: Some(*count),
                score: deadline,
                ..row.clone()
            })?;
        }
        self.actions.push(action);
        Ok(Some((op, room)))
    }

    /// When a page was last used, as its component counts.
    fn last_use(&self, slot: u32) -> Option<i64> {
        match self.state.spots.get(&slot) {
            Some(spot) => Some(spot.last_use),
            None => self.state.nodes.get(self.state.slots.get(slot)?.node).map(|n| n.last_use),
        }
    }

    fn action(
        &self,
        op: u64,
        (kind, from, to): Way,
        component: usize,
        slots: &[u32],
        pages: &[Run],
        asker: &For,
    ) -> Answer<Action> {
        let session = asker.session.as_deref().unwrap_or("").to_string();
        let mut action = Action {
            op,
            kind,
            component: self.state.name_of(component),
            tier_from: from,
            tier_to: to,
            session,
            runs: Vec::new(),
            keys: Vec::new(),
            owners: Vec::new(),
            positions: Vec::new(),
        };
        let runs: Vec<Run> = group(slots, |_| ()).into_iter().map(|(run, ())| run).collect();
        for (run, target) in pair(&runs, pages) {
            for (i, id) in run.iter().enumerate() {
                let slot = self.state.slot(id).map_err(Refusal::Internal)?;
                let (source, target) = (slot.page(from), target + i as u32);
                match action.runs.last_mut() {
                    Some((s, a, b, n)) if *s + *n == id && *a + *n == source && *b + *n == target => *n += 1,
                    _ => action.runs.push((id, source, target, 1)),
                }
                action.keys.push(self.digest_of(id));
                action.owners.push(self.state.slots.owner(id));
                action.positions.push(slot.position);
            }
        }
        Ok(action)
    }

    pub fn complete(
        &mut self,
        id: u64,
        results: &[u8],
        bytes: u64,
        duration: i64,
        detail: &str,
    ) -> Answer<()> {
        let op = self.state.ops.get(&id).filter(|op| op.kind != Kind::Alloc).cloned();
        let op = op.ok_or_else(|| unknown_operation(id))?;
        if results.len() != op.slots.len() {
            return Err(Refusal::BadArgument(format!(
                "{} results for {} pages",
                results.len(),
                op.slots.len()
            )));
        }
        if let Some(result) = results.iter().find(|r| **r > SOURCE_DAMAGED) {
            return Err(Refusal::BadArgument(format!("a page's result is {result}; it must be 0, 1 or 2")));
        }
        let from = op.tier_from.ok_or_else(|| Refusal::Internal("a move from nowhere".into()))?;
        let mut result_of: HashMap<u32, u8> = op.slots.iter().copied().zip(results.iter().copied()).collect();
        for slot in op.slots.iter().filter(|slot| self.torn.remove(&(id, **slot))) {
            result_of.insert(*slot, 0);
        }
        let mut row = Row::new(op.kind, Phase::Commit);
        row.detail = (!detail.is_empty()).then(|| detail.into());
        (row.op, row.receipt) = (Some(id), op.receipt);
        (row.session, row.request) = (op.session.clone(), op.request.clone());
        (row.tier_from, row.tier_to) = (Some(from), Some(op.tier_to));
        row.component = Some(self.state.name_of(op.component as usize));
        for (run, result) in group(&op.slots, |slot| result_of[slot]) {
            let mut row = Row { slot_from: Some(run.first), pages: Some(run.count), ..row.clone() };
            row.reason = match result {
                _ if op.draining => Reason::Aborted,
                ARRIVED => Reason::None,
                SOURCE_DAMAGED => Reason::Damaged,
                _ => Reason::Failed,
            };
            if row.reason != Reason::None {
                row.phase = Phase::Fail;
            }
            self.emit(row)?;
        }
        let arrived: Vec<u32> = if op.draining {
            Vec::new()
        } else {
            op.slots.iter().copied().filter(|s| result_of[s] == ARRIVED).collect()
        };
        let done = Row {
            phase: Phase::Done,
            pages: Some(arrived.len() as u32),
            bytes: Some(bytes),
            duration: Some(duration),
            ..row
        };
        let done = self.emit(done)?;
        for slot in op.slots.iter().filter(|s| result_of[s] == SOURCE_DAMAGED) {
            self.mark_damaged(*slot, from, done)?;
        }
        if let Some(live) = op.receipt.and_then(|receipt| self.live_mut(receipt)) {
            live.failed.extend(op.slots.iter().filter(|s| result_of[s] != ARRIVED));
        }
        if op.kind == Kind::Backup && self.config.write_through {
            let admit = self.config.admit[Tier::Storage as usize - 1];
            let wanted = |s: &u32| {
                self.state.slots.get(*s).is_some_and(|s| s.lacks(Tier::Storage) && self.uses(s) >= admit)
            };
            let slots: Vec<u32> = arrived.into_iter().filter(wanted).collect();
            let asker = For { session: op.session, request: op.request, receipt: None, cause: Some(done) };
            self.start_move(OFFLOAD, op.component as usize, &slots, &asker)?;
        }
        self.hints_after(id)?;
        self.settle()
    }

    /// Take a damaged copy out of use. It goes when nobody holds it any more, often at once.
    fn mark_damaged(&mut self, slot: u32, tier: Tier, cause: u64) -> Answer<bool> {
        let Some(record) = self.state.slots.get(slot).filter(|s| s.usable(tier)) else { return Ok(false) };
        let mut row = Row::new(Kind::Evict, Phase::Marked);
        (row.node, row.slot_from, row.pages) = (Some(record.node), Some(slot), Some(1));
        (row.tier_from, row.end_page, row.cause) = (Some(tier), Some(record.position + 1), Some(cause));
        (row.session, row.reason) = (self.user(record.node), Reason::Damaged);
        row.component = Some(self.state.name_of(record.component as usize));
        self.emit(row)?;
        Ok(true)
    }

    pub fn damaged(&mut self, tier: Tier, slot: u32, generation: u32) -> Answer<bool> {
        if self.state.slots.get(slot).is_none_or(|s| s.node == NONE)
            || self.state.slots.generation(slot) != generation
        {
            return Ok(false);
        }
        let marked = self.mark_damaged(slot, tier, self.state.seq)?;
        self.settle()?;
        Ok(marked)
    }

    /// Give up moves that have taken too long. Their pages stay fenced until the shell's completion arrives.
    pub(crate) fn abort_late(&mut self) -> Answer<()> {
        if self.config.move_timeout == 0 {
            return Ok(());
        }
        let late = |op: &Op| op.deadline > 0 && op.deadline <= self.now && !op.draining;
        for id in self.state.ops.wanted(late) {
            let Some(kind) = self.state.ops.get(&id).map(|op| op.kind) else { continue };
            let mut row = Row::new(kind, Phase::Abort);
            (row.op, row.reason) = (Some(id), Reason::Timeout);
            self.emit(row)?;
        }
        Ok(())
    }
}
