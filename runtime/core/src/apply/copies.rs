//! Rows about copies: pages are granted and evicted, operations move them from tier to tier.

use super::need;
use crate::members::Members;
use crate::names::{Phase, Tier};
use crate::records::{NONE, Op, Slot};
use crate::row::Row;
use crate::state::{Applied, State};

impl State {
    pub(super) fn apply_alloc(&mut self, row: &Row) -> Applied {
        let Some(id) = row.op else { return Ok(()) };
        match row.phase {
            Phase::Grant => {
                self.join_op(id, row, None, Tier::Device)?;
                let page_from = need(&row.page_from, "page_from", row)?;
                for (i, slot) in row.slots().iter().enumerate() {
                    let page = page_from + i as u32;
                    self.fence_page(Tier::Device, page)?;
                    let mut record = Slot::new(NONE, NONE);
                    record.coming = Tier::Device.bit();
                    record.page[Tier::Device as usize] = page;
                    if !self.slots.insert(slot, record) {
                        return Err(format!("slot {slot} exists or cannot exist"));
                    }
                }
                Ok(())
            }
            Phase::Done | Phase::Abort => self.end_op(id),
            _ => Ok(()),
        }
    }

    pub(super) fn apply_evict(&mut self, row: &Row) -> Applied {
        let tier = need(&row.tier_from, "tier_from", row)?;
        for slot in row.slots().iter() {
            if row.phase == Phase::Marked {
                self.change_slot(slot, |s| s.bad |= tier.bit())?;
                self.count_in_node(self.slot(slot)?.node, |n| n.bad += 1)?;
                continue;
            }
            if self.slot(slot)?.readers[tier as usize] > 0 {
                return Err(format!("slot {slot} is being read on {}", tier.name()));
            }
            self.copy_leaves(slot, tier, row.seq, row.reason)?;
        }
        Ok(())
    }

    pub(super) fn apply_move(&mut self, row: &Row) -> Applied {
        let Some(id) = row.op else { return Ok(()) };
        match row.phase {
            Phase::Reserve => self.reserve(row, id),
            Phase::Commit | Phase::Fail => self.settle(row, id),
            Phase::Abort => {
                let found = self.ops.update(&id, |op| op.draining = true);
                found.ok_or_else(|| format!("operation {id} does not exist"))
            }
            Phase::Done => self.end_op(id),
            _ => Ok(()),
        }
    }

    fn reserve(&mut self, row: &Row, id: u64) -> Applied {
        let (from, to) = (need(&row.tier_from, "tier_from", row)?, need(&row.tier_to, "tier_to", row)?);
        let page_from = need(&row.page_from, "page_from", row)?;
        self.join_op(id, row, Some(from), to)?;
        for (i, slot) in row.slots().iter().enumerate() {
            let page = page_from + i as u32;
            self.fence_page(to, page)?;
            if (self.slot(slot)?.here | self.slot(slot)?.coming) & to.bit() != 0 {
                return Err(format!("slot {slot} has or awaits a copy on {}", to.name()));
            }
            self.change_slot(slot, |s| {
                s.coming |= to.bit();
                s.page[to as usize] = page;
                s.readers[from as usize] += 1;
            })?;
        }
        Ok(())
    }

    fn settle(&mut self, row: &Row, id: u64) -> Applied {
        let (from, to) = (need(&row.tier_from, "tier_from", row)?, need(&row.tier_to, "tier_to", row)?);
        self.leave_op(id, row)?;
        for slot in row.slots().iter() {
            let page = self.slot(slot)?.page[to as usize];
            let moved = |s: &mut Slot| {
                s.coming &= !to.bit();
                s.readers[from as usize] -= 1;
            };
            self.touch(self.slot(slot)?.node);
            self.unfence_page(to);
            if row.phase == Phase::Commit {
                self.copy_arrives(slot, to, moved)?;
            } else {
                self.change_slot(slot, |s| {
                    moved(s);
                    s.page[to as usize] = NONE;
                    if s.is_gone() {
                        (s.lost, s.lost_why) = (row.seq, row.reason);
                    }
                })?;
                self.free_page(to, page)?;
            }
        }
        Ok(())
    }

    fn join_op(&mut self, id: u64, row: &Row, tier_from: Option<Tier>, tier_to: Tier) -> Applied {
        if self.ops.get(&id).is_none() {
            self.ops.insert(
                id,
                Op {
                    kind: row.kind,
                    tier_from,
                    tier_to,
                    session: row.session.clone(),
                    request: row.request.clone(),
                    receipt: row.receipt,
                    draining: false,
                    slots: Members::default(),
                },
            );
        }
        let (run, capacity) = (row.slots(), self.pools[tier_to as usize].pages.capacity());
        if run.count > capacity || run.first.checked_add(run.count).is_none() {
            return Err(format!("slots {run:?} cannot go to {}, of {capacity} pages", tier_to.name()));
        }
        self.ops.update(&id, |op| op.slots.join(run));
        Ok(())
    }

    pub(super) fn leave_op(&mut self, id: u64, row: &Row) -> Applied {
        let run = row.slots();
        match self.ops.update(&id, |op| op.slots.leave(run)) {
            Some(true) => Ok(()),
            _ => Err(format!("operation {id} does not have slots {run:?}")),
        }
    }

    fn end_op(&mut self, id: u64) -> Applied {
        match self.ops.remove(&id) {
            Some(op) if op.slots.is_empty() => Ok(()),
            Some(op) => Err(format!("operation {id} ends with {} slots left", op.slots.len())),
            None => Err(format!("operation {id} does not exist")),
        }
    }
}
