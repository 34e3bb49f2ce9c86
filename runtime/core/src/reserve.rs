//! Pages for what a request is about to compute: reserve, or abort.

use crate::commit::beyond;
use crate::core::{Core, group};
use crate::held::DeviceRun;
use crate::names::{Kind, Name, Phase, Reason, Tier};
use crate::records::{FULL, NONE, Op};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::runs::Run;

/// Pages of one component: (component, first slot, first device page, count, position of the first).
pub type PartRun = (Name, u32, u32, u32, u32);

#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    pub op: u64,
    pub runs: Vec<DeviceRun>,
    pub parts: Vec<PartRun>,
}

impl Core {
    pub fn reserve(&mut self, receipt: u64, pages: u32, start: Option<u32>) -> Answer<Reservation> {
        self.given(receipt)?;
        let asker = self.for_receipt(receipt)?;
        let held = self.state.path_pages(self.receipt_node(receipt)?);
        let start = start.unwrap_or(held);
        if start > held {
            return Err(beyond(start, held));
        }
        if self.state.is_observed(Tier::Device) {
            return Err(Refusal::BadArgument(
                "the engine owns its device pages; tell what it put there with observe".into(),
            ));
        }
        let op = self.number();
        let mut row = Row::new(Kind::Alloc, Phase::Ask);
        (row.op, row.receipt, row.cause) = (Some(op), Some(receipt), asker.cause);
        (row.session, row.request) = (asker.session.clone(), asker.request.clone());
        (row.tier_to, row.component) = (Some(Tier::Device), Some(self.state.name_of(FULL)));
        row.pages = Some(pages);
        let ask = self.emit(row.clone())?;
        row.cause = Some(ask);
        let branch = self.live_of(receipt)?.branch;
        let plan =
            |core: &Core, c: usize, end: u32| core.state.components[c].family.plans(start..end, branch);
        let slotted: Vec<usize> = self.state.slotted().collect();
        let mut granted = pages;
        for c in slotted.iter().copied() {
            if granted > 0 && plan(self, c, start).is_none() {
                granted = self.make_room(c, Tier::Device, granted, None, ask)?;
            }
        }
        if granted < pages {
            let failed = Row {
                phase: Phase::Fail,
                reason: Reason::NoRoom,
                pages: Some(pages - granted),
                ..row.clone()
            };
            self.emit(failed)?;
        }
        let mut parts = Vec::new();
        for c in slotted {
            let planned = plan(self, c, start + granted);
            // Without room for all checkpoints, the last ones are worth most: the end of the computation.
            let wanted = planned.as_ref().map_or(granted, |pages| pages.len() as u32);
            let room = self.make_room(c, Tier::Device, wanted, None, ask)?;
            let planned = planned.map(|pages| pages[(wanted - room) as usize..].to_vec());
            self.grant(&row, c, room, start, planned, &mut parts)?;
        }
        if granted == 0 && parts.is_empty() {
            // An operation without slots: there to be committed or aborted like any other.
            let grant =
                Row { phase: Phase::Grant, slot_from: Some(0), page_from: Some(0), pages: Some(0), ..row };
            self.emit(grant)?;
        }
        if let Some(live) = self.live_mut(receipt) {
            live.reservations.push(op);
        }
        self.settle()?;
        let full = self.state.name_of(FULL);
        let runs = parts.iter().filter(|p| std::ptr::eq(p.0, full)).map(|p| (p.1, p.2, p.3)).collect();
        Ok(Reservation { op, runs, parts })
    }

    #[allow(clippy::too_many_arguments)] // one row, said once
    fn grant(
        &mut self,
        like: &Row,
        component: usize,
        count: u32,
        start: u32,
        planned: Option<Vec<u32>>,
        parts: &mut Vec<PartRun>,
    ) -> Answer<()> {
        let slots = self.state.slots.choose(count);
        let pages = self.state.pools[component][Tier::Device as usize].pages.choose(count);
        let name = self.state.name_of(component);
        let mut given = 0;
        for (run, page) in pair(&slots, &pages) {
            // Planned pages say each its own position; the others go wherever the computation goes.
            let singles = planned.is_some();
            for i in (0..run.count).step_by(if singles { 1 } else { run.count as usize }) {
                let (slot, page, count) =
                    if singles { (run.first + i, page + i, 1) } else { (run.first, page, run.count) };
                let position = planned.as_ref().map_or(NONE, |pages| pages[given as usize]);
                let grant = Row {
                    phase: Phase::Grant,
                    component: Some(name),
                    slot_from: Some(slot),
                    page_from: Some(page),
                    pages: Some(count),
                    end_page: (position != NONE).then(|| position + 1),
                    ..like.clone()
                };
                self.emit(grant)?;
                parts.push((name, slot, page, count, if singles { position } else { start + given }));
                given += count;
            }
        }
        Ok(())
    }

    pub fn abort(&mut self, id: u64, reason: Reason) -> Answer<()> {
        match self.state.ops.get(&id).map(|op| (op.kind, op.draining)) {
            None => return Err(unknown_operation(id)),
            Some((Kind::Alloc, _)) => self.free_reservation(id, reason)?,
            Some((_, true)) => {}
            Some((kind, false)) => {
                let mut row = Row::new(kind, Phase::Abort);
                (row.op, row.reason) = (Some(id), reason);
                self.emit(row)?;
            }
        }
        self.settle()
    }

    /// Free what is left of a reservation, and end it.
    pub(crate) fn free_reservation(&mut self, id: u64, reason: Reason) -> Answer<()> {
        let (slots, receipt) = self.reservation(id).map(|op| (op.slots.to_vec(), op.receipt))?;
        let component = |s: &u32| self.state.slots.get(*s).map_or(0, |slot| slot.component as usize);
        for (run, component) in group(&slots, component) {
            let mut row = Row::new(Kind::Free, Phase::None);
            (row.op, row.slot_from, row.pages, row.reason) =
                (Some(id), Some(run.first), Some(run.count), reason);
            row.component = Some(self.state.name_of(component));
            self.emit(row)?;
        }
        let phase = if reason == Reason::Unused { Phase::Done } else { Phase::Abort };
        let mut row = Row::new(Kind::Alloc, phase);
        row.op = Some(id);
        if phase == Phase::Abort {
            row.reason = reason;
        }
        if let Some(live) = receipt.and_then(|receipt| self.live_mut(receipt)) {
            live.reservations.retain(|open| *open != id);
        }
        self.emit(row).map(|_| ())
    }

    pub(crate) fn reservation(&self, id: u64) -> Answer<&Op> {
        let op = self.state.ops.get(&id).ok_or_else(|| unknown_operation(id))?;
        if op.kind != Kind::Alloc {
            return Err(Refusal::UnknownOperation(format!(
                "operation {id} is a {}, not a reservation",
                op.kind.name()
            )));
        }
        Ok(op)
    }

    /// A reservation's slots of one component, in order.
    pub(crate) fn members(&self, op: &Op, component: usize) -> Vec<u32> {
        let mine =
            |s: &u32| self.state.slots.get(*s).is_some_and(|slot| slot.component as usize == component);
        op.slots.iter().copied().filter(mine).collect()
    }
}

pub(crate) fn unknown_operation(id: u64) -> Refusal {
    Refusal::UnknownOperation(format!("operation {id} does not exist, or has ended already"))
}

/// Walk two equally long lists of runs together: (run of the first, start in the second).
pub(crate) fn pair(left: &[Run], right: &[Run]) -> Vec<(Run, u32)> {
    let mut pairs = Vec::new();
    let (mut i, mut j, mut a, mut b) = (0, 0, 0, 0);
    while i < left.len() && j < right.len() {
        let count = (left[i].count - a).min(right[j].count - b);
        pairs.push((Run { first: left[i].first + a, count }, right[j].first + b));
        (a, b) = (a + count, b + count);
        if a == left[i].count {
            (i, a) = (i + 1, 0);
        }
        if b == right[j].count {
            (j, b) = (j + 1, 0);
        }
    }
    pairs
}
