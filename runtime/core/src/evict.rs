//! Making room, and what goes with what is dropped.

use crate::core::{Core, group};
use crate::families::Shape;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::{FULL, NONE};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::runs::Run;
use crate::slots::Slot;
use crate::state::State;
use crate::strip::Placed;

/// Evictions name at most this many of the candidates they passed over; counting stops there too.
const PASSED_OVER_NAMED: usize = 3;
const PASSED_OVER_COUNTED: usize = 1024;

impl Core {
    /// Make `want` pages of a component's tier free, if that can be done; says how many of them are. With
    /// `older_than`, only pages last used before that moment have to go.
    pub(crate) fn make_room(
        &mut self,
        component: usize,
        tier: Tier,
        want: u32,
        older_than: Option<i64>,
        cause: u64,
    ) -> Answer<u32> {
        loop {
            let free = self.state.pools[component][tier as usize].pages.free();
            if free >= want || !self.evict_next(component, tier, want - free, older_than, cause)? {
                return Ok(free.min(want));
            }
        }
    }

    /// Free pages of a tier ahead of need, as far as nobody holds them. Returns how many went.
    pub fn evict(&mut self, tier: Tier, pages: u32, component: usize) -> Answer<u64> {
        if self.state.is_observed(tier) {
            return Err(Refusal::BadArgument(format!(
                "the engine owns its {}; nothing can be evicted there",
                tier.name()
            )));
        }
        let free = |core: &Core| core.state.pools[component][tier as usize].pages.free();
        let before = free(self);
        self.make_room(component, tier, before.saturating_add(pages), None, self.state.seq)?;
        self.settle()?;
        Ok((free(self) - before) as u64)
    }

    /// Evict up to `want` pages of the first item that has any to give.
    fn evict_next(
        &mut self,
        component: usize,
        tier: Tier,
        want: u32,
        older_than: Option<i64>,
        cause: u64,
    ) -> Answer<bool> {
        let state = &self.state;
        let mut copies = Vec::new();
        let mut gives = |item: u32| {
            copies = match (state.shape(component), state.nodes.get(item)) {
                (Shape::Path, Some(node)) => {
                    let runs = node.parts[component].slots.placed().iter().rev();
                    last_copies(state, runs.map(Placed::slots), tier, want)
                }
                (Shape::Path, None) => Vec::new(),
                _ => last_copies(state, std::iter::once(Run { first: item, count: 1 }), tier, want),
            };
            !copies.is_empty()
        };
        let queue = self.order.queue_mut(component, tier);
        let Some(victim) = queue.next(older_than, self.now, &mut gives) else { return Ok(false) };
        let held: Vec<u32> = queue.passed_over(&victim.rank).take(PASSED_OVER_COUNTED).collect();
        let mut row = Row::new(Kind::Evict, Phase::None);
        row.reason = Reason::Pressure;
        row.policy = Some(self.policy_names[tier as usize]);
        row.score = Some(victim.score_shown);
        row.cause = Some(cause);
        row.skipped = Some(held.len() as u32);
        if !held.is_empty() {
            let node = |item: &u32| match self.state.shape(component) {
                Shape::Path => *item,
                _ => self.state.slots.get(*item).map_or(NONE, |slot| slot.node),
            };
            let names = held.iter().take(PASSED_OVER_NAMED).filter_map(|item| self.user(node(item)));
            let names: Vec<String> = names.map(|name| name.to_string()).collect();
            row.detail = Some(format!("held: {}", names.join(", ")).into());
        }
        self.drop_runs(copies, tier, row)?;
        Ok(true)
    }

    /// Drop one tier's copies of slots in path order, in as few rows as say it, the last first. `like` has what the
    /// rows share.
    pub(crate) fn drop_copies(&mut self, slots: &[u32], tier: Tier, like: Row) -> Answer<()> {
        let fate = |id: &u32| {
            let slot = self.state.slots.get(*id)?;
            Some((slot.node, slot.component, slot.is_only_on(tier)))
        };
        let runs = group(slots, fate).into_iter().rev();
        let copies = runs.filter_map(|(run, fate)| Some(Copies { run, last: fate?.2 })).collect();
        self.drop_runs(copies, tier, like)
    }

    fn drop_runs(&mut self, copies: Vec<Copies>, tier: Tier, like: Row) -> Answer<()> {
        for Copies { run, last } in copies {
            let Some(slot) = self.state.slots.get(run.first + run.count - 1) else { continue };
            let (node, component, end) = (slot.node, slot.component as usize, slot.position + 1);
            let mut phase = if last { Phase::Lost } else { Phase::Kept };
            if last && component == FULL {
                self.clear_beside(node, end - run.count, end)?;
                if self.goes_for_good(node, end - run.count, end) {
                    phase = Phase::Gone;
                }
            }
            let mut row = Row {
                phase,
                node: Some(node),
                session: self.user(node),
                component: Some(self.state.name_of(component)),
                slot_from: Some(run.first),
                pages: Some(run.count),
                end_page: Some(end),
                tier_from: Some(tier),
                tokens: Some(self.state.tokens(run.count)),
                ..like.clone()
            };
            if last && like.reason == Reason::Pressure && self.was_not_admitted(node, component, tier) {
                row.reason = Reason::Admission;
            }
            if phase == Phase::Gone {
                self.end_pages(node, run, self.state.seq + 1, row.reason);
            }
            self.emit(row)?;
        }
        Ok(())
    }

    /// A page that could have been written down, had it been used often enough.
    fn was_not_admitted(&self, node: u32, component: usize, tier: Tier) -> bool {
        let Some((_, below)) = self.way_down(component, tier) else { return false };
        let uses = self.state.nodes.get(node).map_or(0, |n| n.uses);
        self.config.write_through && uses < self.config.admit[below as usize - 1]
    }

    /// Whether pages `from..end` are the end of a node and nobody's: not a name for anything, no other state beside.
    fn goes_for_good(&self, node: u32, from: u32, end: u32) -> bool {
        let Some(record) = self.state.nodes.get(node) else { return false };
        let bare = || record.parts[1..].iter().all(|part| part.slots.between(from, end).next().is_none());
        record.is_unnamed() && record.end() == end && bare()
    }

    /// Forget what the indexes know of a node's last pages, before the row that ends them.
    fn end_pages(&mut self, node: u32, run: Run, seq: u64, why: Reason) {
        let Some(record) = self.state.nodes.get(node) else { return };
        let left = record.pages - run.count;
        if !self.config.defer_digests {
            for (_, slot) in self.state.slots.of(run) {
                let (row, why) = slot.lost().unwrap_or((seq, why));
                self.ghosts.remember(&slot.digest, row, why);
            }
        }
        self.keys.shorten(node, left);
    }

    /// The other components' copies at pages of `full` that are about to be lost: nothing can use them any more.
    fn clear_beside(&mut self, node: u32, from: u32, to: u32) -> Answer<()> {
        for c in 1..self.state.components.len() {
            let Some(record) = self.state.nodes.get(node) else { return Ok(()) };
            let runs = record.parts[c].slots.between(from, to);
            let slots: Vec<u32> = runs.flat_map(|placed| placed.slots().iter()).collect();
            // What stands on a path is held with it.
            if slots.is_empty() || record.locks > 0 && self.state.shape(c) == Shape::Path {
                continue;
            }
            for tier in Tier::ALL {
                let free = |s: &u32| {
                    self.state.slots.get(*s).is_some_and(|slot| idle(slot, *tier) && slot.coming == 0)
                };
                let copies: Vec<u32> =
                    slots.iter().copied().filter(free).filter(|s| !self.is_spot_locked(*s)).collect();
                let like = Row {
                    reason: Reason::Orphaned,
                    cause: Some(self.state.seq),
                    ..Row::new(Kind::Evict, Phase::None)
                };
                self.drop_copies(&copies, *tier, like)?;
            }
            self.free_beside(node, c, from, to)?;
        }
        Ok(())
    }

    fn is_spot_locked(&self, slot: u32) -> bool {
        self.state.spots.get(&slot).is_some_and(|spot| spot.locks > 0 || spot.leases != [0; 3])
    }

    /// Slots of another component, without copies and held by nobody, leave a node.
    fn free_beside(&mut self, node: u32, component: usize, from: u32, to: u32) -> Answer<()> {
        let Some(record) = self.state.nodes.get(node) else { return Ok(()) };
        if self.state.shape(component) == Shape::Path && !record.is_unnamed() {
            return Ok(());
        }
        let gone = |slot: &u32| {
            self.state.slots.get(*slot).is_some_and(|s| s.is_gone() && !s.is_read())
                && !self.is_spot_locked(*slot)
        };
        let runs: Vec<(Run, u32)> = {
            let placed = record.parts[component].slots.between(from, to);
            let pages: Vec<(u32, u32)> = placed.flat_map(|p| (p.at..p.end()).zip(p.slots().iter())).collect();
            let free: Vec<(u32, u32)> = pages.into_iter().filter(|(_, slot)| gone(slot)).collect();
            let slots: Vec<u32> = free.iter().map(|(_, slot)| *slot).collect();
            let offset = |slot: &u32| {
                free.iter().find(|(_, s)| s == slot).map_or(0, |(page, s)| page.wrapping_sub(*s))
            };
            group(&slots, offset)
                .into_iter()
                .map(|(run, offset)| (run, run.first.wrapping_add(offset)))
                .collect()
        };
        for (run, at) in runs.into_iter().rev() {
            let mut row = Row::new(Kind::Free, Phase::None);
            (row.node, row.component) = (Some(node), Some(self.state.name_of(component)));
            (row.slot_from, row.pages, row.end_page) =
                (Some(run.first), Some(run.count), Some(at + run.count));
            row.reason = Reason::Empty;
            self.emit(row)?;
        }
        Ok(())
    }

    /// A spot component's slot without copies that nobody holds is no slot any more.
    pub(crate) fn settle_spot(&mut self, slot: u32) -> Answer<()> {
        let Some(record) = self.state.slots.get(slot).filter(|s| s.node != NONE) else { return Ok(()) };
        let (node, component, page) = (record.node, record.component as usize, record.position);
        if record.is_gone() && self.state.shape(component) == Shape::Spot {
            self.free_beside(node, component, page, page + 1)?;
        } else {
            self.dirty.push(node);
        }
        Ok(())
    }

    /// Copies of other components where `full` has been lost, by a failed move or behind a hold that has ended.
    pub(crate) fn drop_orphans(&mut self, node: u32) -> Answer<()> {
        let Some(record) = self.state.nodes.get(node) else { return Ok(()) };
        if record.parts[1..].iter().all(|part| part.slots.is_empty()) {
            return Ok(());
        }
        let lost = |(page, slot)| self.state.slots.get(slot).is_some_and(Slot::is_gone).then_some(page);
        let holes: Vec<u32> = record.slots().iter().filter_map(lost).collect();
        for (run, ()) in group(&holes, |_| ()) {
            self.clear_beside(node, run.first, run.first + run.count)?;
        }
        Ok(())
    }

    pub(crate) fn drop_damaged(&mut self, node: u32) -> Answer<()> {
        for c in 0..self.state.components.len() {
            let Some(record) = self.state.nodes.get(node).filter(|n| n.parts[c].bad > 0) else { continue };
            let locked = record.locks > 0;
            let slots: Vec<u32> = record.parts[c].slots.iter().map(|(_, slot)| slot).collect();
            let spot = self.state.shape(c) == Shape::Spot;
            for tier in Tier::ALL.iter().copied() {
                // Whoever holds a device page may be reading it.
                let held =
                    |id: u32| tier == Tier::Device && if spot { self.is_spot_locked(id) } else { locked };
                let bad = |id: u32| {
                    self.state.slots.get(id).is_some_and(|s| s.bad & tier.bit() != 0 && idle(s, tier))
                };
                let free = |id: &&u32| bad(**id) && !held(**id);
                let damaged: Vec<u32> = slots.iter().filter(free).copied().collect();
                let like = Row { reason: Reason::Damaged, ..Row::new(Kind::Evict, Phase::None) };
                self.drop_copies(&damaged, tier, like)?;
            }
        }
        Ok(())
    }

    /// Holes at the end of a node that nobody names.
    pub(crate) fn trim(&mut self, node: u32) -> Answer<()> {
        let Some(record) = self.state.nodes.get(node) else { return Ok(()) };
        if record.parent == NONE || !record.is_unnamed() {
            return Ok(());
        }
        let (end, gone) = (record.end(), |s: u32| self.state.slots.get(s).is_some_and(Slot::is_gone));
        let empty = record.slots().iter().rev().take_while(|(_, slot)| gone(*slot)).count() as u32;
        if empty == 0 {
            return Ok(());
        }
        self.clear_beside(node, end - empty, end)?;
        let Some(record) = self.state.nodes.get(node) else { return Ok(()) };
        let beside = record.parts[1..].iter().filter_map(|part| part.slots.placed().last());
        let from = beside.map(|last| last.end()).fold(end - empty, u32::max);
        let runs: Vec<Run> = record.slots().between(from, end).map(|placed| placed.slots()).collect();
        for run in runs.into_iter().rev() {
            let mut row = Row::new(Kind::Free, Phase::None);
            row.reason = Reason::Empty;
            (row.node, row.end_page) = (Some(node), Some(self.state.path_pages(node)));
            (row.slot_from, row.pages) = (Some(run.first), Some(run.count));
            self.end_pages(node, run, self.state.seq + 1, Reason::Empty);
            self.emit(row)?;
        }
        Ok(())
    }

    pub(crate) fn check_settled(&self) -> Result<(), String> {
        if self.live.iter().flatten().count() != self.state.receipts.count() {
            return Err("a lock is live without a record".into());
        }
        for (receipt, _) in self.state.receipts.iter() {
            let live = self.live_of(*receipt).map_err(|why| format!("{why:?}, but has a record"))?;
            let open = self.state.ops.wanted(|op| op.kind == Kind::Alloc && op.receipt == Some(*receipt));
            if open != live.reservations {
                return Err(format!(
                    "lock {receipt} has reservations {open:?}, kept {:?}",
                    live.reservations
                ));
            }
        }
        for (id, _) in self.state.spots.iter() {
            let gone = self.state.slots.get(*id).is_some_and(|slot| slot.node != NONE && slot.is_gone());
            if gone && !self.is_spot_locked(*id) {
                return Err(format!("slot {id} has no copies, and is still there"));
            }
        }
        for (id, node) in self.state.nodes.iter() {
            let last = node.slots().iter().next_back().and_then(|(_, s)| self.state.slots.get(s));
            let beside = node.parts[1..].iter().filter_map(|part| part.slots.placed().last());
            let waits = beside.map(|last| last.end()).any(|end| end == node.end());
            if node.parent != NONE && node.is_unnamed() && last.is_some_and(Slot::is_gone) && !waits {
                return Err(format!("node {id} has nothing, is named by nobody, and is still there"));
            }
        }
        Ok(())
    }
}

/// Nobody reads this tier's copy, and there is one.
pub(crate) fn idle(slot: &Slot, tier: Tier) -> bool {
    slot.has(tier) && slot.readers[tier as usize] == 0
}

/// One tier's copies of a run of slots of one node, and whether they are the last of their pages.
struct Copies {
    run: Run,
    last: bool,
}

/// Up to `want` copies in the tier from the end of runs, the last run first; none when the last is read.
fn last_copies(state: &State, runs: impl Iterator<Item = Run>, tier: Tier, mut want: u32) -> Vec<Copies> {
    let mut found = Vec::new();
    let look = |slot: &Slot| (slot.has(tier), idle(slot, tier), slot.is_only_on(tier));
    for mut rest in runs {
        while let Some((run, look)) = state.slots.tail(rest, want, look) {
            rest.count -= run.count;
            match look {
                (false, ..) => {}
                (true, false, _) => return found,
                (true, true, last) => {
                    want -= run.count;
                    found.push(Copies { run, last });
                }
            }
        }
    }
    found
}
