//! Moves between tiers: what to bring up or down, the actions that say so, and their completion.

use std::collections::{BTreeSet, HashMap};

use crate::compute::{pair, unknown_operation};
use crate::core::{Core, For, group};
use crate::digest::Digest;
use crate::names::{Component, Kind, Phase, Reason, Tier};
use crate::records::{NONE, Slot};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::runs::Run;

/// Bytes for the shell to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub op: u64,
    pub kind: Kind,
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

/// Result of one page in a completion.
pub const ARRIVED: u8 = 1;
pub const SOURCE_DAMAGED: u8 = 2;

impl Core {
    pub fn restore(&mut self, receipt: u64) -> Answer<Restore> {
        self.given(receipt)?;
        let restore = self.bring_to_device(receipt)?;
        self.settle()?;
        Ok(restore)
    }

    /// Start what brings the locked path to the device, as far as it goes without a gap.
    pub(crate) fn bring_to_device(&mut self, receipt: u64) -> Answer<Restore> {
        let asker = self.for_receipt(receipt)?;
        let failed = &self.live_of(receipt)?.failed;
        let mut found = Restore::default();
        let (mut load, mut prefetch) = (Vec::new(), Vec::new());
        for (id, slot) in self.state.path_slots(self.receipt_node(receipt)?) {
            let settled = found.pending == 0 && load.is_empty() && prefetch.is_empty();
            if slot.usable(Tier::Device) {
                found.ready += settled as u32;
            } else if slot.awaits(Tier::Device) {
                found.pending += 1;
            } else if failed.contains(&id) || slot.has(Tier::Device) {
                break;
            } else if slot.usable(Tier::Host) {
                load.push(id);
            } else if slot.awaits(Tier::Host) {
                found.pending += 1;
            } else if slot.usable(Tier::Storage) && slot.lacks(Tier::Host) {
                prefetch.push(id);
            } else {
                break;
            }
        }
        for (kind, slots) in [(Kind::Load, load), (Kind::Prefetch, prefetch)] {
            if let Some((op, pages)) = self.start_move(kind, &slots, &asker)? {
                found.ops.push(op);
                found.pending += pages;
            }
        }
        Ok(found)
    }

    /// Back up, in path order, what is wanted of the pages that are on the device and not on the host.
    pub(crate) fn back_up(
        &mut self,
        node: u32,
        asker: &For,
        wanted: impl Fn(u32, &Slot) -> bool,
    ) -> Answer<Option<(u64, u32)>> {
        let path = self.state.path_slots(node);
        let bare = path.filter(|(_, slot)| slot.usable(Tier::Device) && slot.lacks(Tier::Host));
        let slots: Vec<u32> = bare.filter(|(id, slot)| wanted(*id, slot)).map(|(id, _)| id).collect();
        self.start_move(Kind::Backup, &slots, asker)
    }

    /// Fetch to the host what the path has in storage only.
    pub(crate) fn fetch(
        &mut self,
        node: u32,
        asker: &For,
        failed: &BTreeSet<u32>,
    ) -> Answer<Option<(u64, u32)>> {
        let mut slots =
            self.path_where(node, |slot| slot.best() == Some(Tier::Storage) && slot.lacks(Tier::Host));
        slots.retain(|slot| !failed.contains(slot));
        self.start_move(Kind::Prefetch, &slots, asker)
    }

    pub(crate) fn path_where(&self, node: u32, wanted: impl Fn(&Slot) -> bool) -> Vec<u32> {
        self.state.path_slots(node).filter(|(_, slot)| wanted(slot)).map(|(id, _)| id).collect()
    }

    /// Open a move of as many leading slots as there is room for. None when there is none.
    pub(crate) fn start_move(
        &mut self,
        kind: Kind,
        slots: &[u32],
        asker: &For,
    ) -> Answer<Option<(u64, u32)>> {
        let (from, to) = match kind {
            Kind::Backup => (Tier::Device, Tier::Host),
            Kind::Offload => (Tier::Host, Tier::Storage),
            Kind::Prefetch => (Tier::Storage, Tier::Host),
            _ => (Tier::Host, Tier::Device),
        };
        if slots.is_empty() || self.config.pages[to as usize] == 0 {
            return Ok(None);
        }
        let op = self.number();
        let mut row = Row::new(kind, Phase::Ask);
        (row.op, row.receipt, row.cause) = (Some(op), asker.receipt, asker.cause);
        (row.session, row.request) = (asker.session.clone(), asker.request.clone());
        (row.tier_from, row.tier_to, row.component) = (Some(from), Some(to), Some(Component::Full));
        row.pages = Some(slots.len() as u32);
        let ask = self.emit(row.clone())?;
        row.cause = Some(ask);
        // Writing down never pushes out what was used since: that would trade a newer page for an older one.
        let used = slots
            .last()
            .and_then(|s| self.state.nodes.get(self.state.slots.get(*s)?.node))
            .map(|n| n.last_use);
        let older_than = used.filter(|_| to > from);
        let room = self.make_room(to, slots.len() as u32, older_than, ask)?;
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
        let pages = self.state.pools[to as usize].pages.choose(room);
        let action = self.action(op, kind, (from, to), slots, &pages, asker)?;
        for (slot, _, page, count) in &action.runs {
            self.emit(Row {
                phase: Phase::Reserve,
                slot_from: Some(*slot),
                page_from: Some(*page),
                pages: Some(*count),
                ..row.clone()
            })?;
        }
        self.actions.push(action);
        Ok(Some((op, room)))
    }

    fn action(
        &self,
        op: u64,
        kind: Kind,
        (from, to): (Tier, Tier),
        slots: &[u32],
        pages: &[Run],
        asker: &For,
    ) -> Answer<Action> {
        let session = asker.session.as_deref().unwrap_or("").to_string();
        let mut action = Action {
            op,
            kind,
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
                let (source, target) = (slot.page[from as usize], target + i as u32);
                match action.runs.last_mut() {
                    Some((s, a, b, n)) if *s + *n == id && *a + *n == source && *b + *n == target => *n += 1,
                    _ => action.runs.push((id, source, target, 1)),
                }
                action.keys.push(slot.digest);
                action.owners.push((self.state.slots.generation(id) as u64) << 32 | id as u64);
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
        let result_of: HashMap<u32, u8> = op.slots.iter().copied().zip(results.iter().copied()).collect();
        let mut row = Row::new(op.kind, Phase::Commit);
        row.detail = (!detail.is_empty()).then(|| detail.into());
        (row.op, row.receipt) = (Some(id), op.receipt);
        (row.session, row.request) = (op.session.clone(), op.request.clone());
        (row.tier_from, row.tier_to) = (Some(from), Some(op.tier_to));
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
        if let Some(live) = op.receipt.and_then(|receipt| self.live.get_mut(&receipt)) {
            live.failed.extend(op.slots.iter().filter(|s| result_of[s] != ARRIVED));
        }
        if op.kind == Kind::Backup && self.config.write_through {
            let lacks = |s: &u32| self.state.slots.get(*s).is_some_and(|s| s.lacks(Tier::Storage));
            let slots: Vec<u32> = arrived.into_iter().filter(lacks).collect();
            let asker = For { session: op.session, request: op.request, receipt: None, cause: Some(done) };
            self.start_move(Kind::Offload, &slots, &asker)?;
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
}
