//! Rows about copies: pages are granted and evicted, operations move them from tier to tier.

use super::need;
use crate::members::Members;
use crate::names::{Phase, Tier};
use crate::records::{FULL, NONE, Op};
use crate::row::Row;
use crate::runs::{Run, Runs};
use crate::slots::Slot;
use crate::state::{Applied, State};

impl State {
    pub(super) fn apply_alloc(&mut self, row: &Row) -> Applied {
        let Some(id) = row.op else { return Ok(()) };
        match row.phase {
            Phase::Grant => {
                let component = self.component_of(row)?;
                self.join_op(id, row, None, Tier::Device)?;
                let page_from = need(&row.page_from, "page_from", row)?;
                let run = row.slots();
                self.fence(component, Tier::Device, Run { first: page_from, count: run.count })?;
                // A page that is planned for one position says so; the others get theirs when they are committed.
                let position = row.end_page.map_or(NONE, |end| end.wrapping_sub(run.count));
                let made = self.slots.insert(run, |i| {
                    let mut slot = Slot::new(component, NONE, position.saturating_add(i));
                    slot.await_copy(Tier::Device, page_from + i);
                    slot
                });
                if made { Ok(()) } else { Err(format!("slots {run:?} exist or cannot exist")) }
            }
            Phase::Done | Phase::Abort => self.end_op(id),
            _ => Ok(()),
        }
    }

    pub(super) fn apply_evict(&mut self, row: &Row) -> Applied {
        let tier = need(&row.tier_from, "tier_from", row)?;
        let run = row.slots();
        if run.count == 0 || run.first.checked_add(run.count).is_none() {
            return Err(format!("evict row {} has no slots", row.seq));
        }
        if row.phase == Phase::Marked {
            self.slots.update_copies(run, [tier], |_, s| s.bad |= tier.bit());
            for slot in run.iter() {
                let (node, component) = self.slot(slot).map(|s| (s.node, s.component))?;
                self.count_in_node(node, |n| n.parts[component as usize].bad += 1)?;
                self.touch_slots(Run { first: slot, count: 1 }, component);
            }
            return Ok(());
        }
        if row.phase == Phase::Gone {
            return self.evict_for_good(row, run, tier);
        }
        self.copies_leave(run, tier, row.seq, row.reason)
    }

    /// The last copies of a node's last pages go, and nobody names them: their slots go too.
    fn evict_for_good(&mut self, row: &Row, run: Run, tier: Tier) -> Applied {
        let node = need(&row.node, "node", row)?;
        if self.component_of(row)? != FULL as u8 {
            return Err(format!("evict row {} ends slots of another component", row.seq));
        }
        self.cut_tail(node, run)?;
        let observed = self.is_observed(tier);
        let (mut bad, mut last, mut pages) = (0, true, Runs::default());
        let removed = self.slots.remove(run, |gone| {
            last &= gone.is_only_on(tier) && gone.may_leave(tier, observed);
            bad += (gone.bad != 0) as u32;
            pages.push(gone.page(tier), 1);
        });
        if !removed || !last {
            return Err(format!("slots {run:?} have more than copies on {} that nobody reads", tier.name()));
        }
        self.free_pages(FULL as u8, tier, &pages)?;
        self.count_in_node(node, |n| n.parts[FULL].bad -= bad)?;
        self.count_copies(node, FULL as u8, tier, -(run.count as i32))?;
        self.drop_empty(node)
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
        let (run, component) = (row.slots(), self.component_of(row)?);
        self.join_op(id, row, Some(from), to)?;
        self.fence(component, to, Run { first: page_from, count: run.count })?;
        let mut free = true;
        let there = self.slots.update_copies(run, [from, to], |slot, s| {
            free &= s.lacks(to) && s.component == component;
            s.await_copy(to, page_from + (slot - run.first));
            s.readers[from as usize] += 1;
        });
        if !there || !free {
            return Err(format!("some of slots {run:?} have or await a copy on {}", to.name()));
        }
        self.touch_slots(run, component);
        Ok(())
    }

    fn settle(&mut self, row: &Row, id: u64) -> Applied {
        let (from, to) = (need(&row.tier_from, "tier_from", row)?, need(&row.tier_to, "tier_to", row)?);
        let (run, arrived) = (row.slots(), row.phase == Phase::Commit);
        self.leave_op(id, row)?;
        let component = self.slot(run.first)?.component;
        self.unfence(component, to, run.count)?;
        let (mut pages, mut nodes) = (Runs::default(), Vec::<(u32, i32)>::new());
        let there = self.slots.update_copies(run, [from, to], |_, s| {
            match nodes.last_mut() {
                Some((node, slots)) if *node == s.node => *slots += 1,
                _ => nodes.push((s.node, 1)),
            }
            // Somebody else's device may have taken the source away meanwhile.
            s.readers[from as usize] = s.readers[from as usize].saturating_sub(1);
            if arrived {
                s.settle_copy(to);
            } else {
                pages.push(s.page(to), 1);
                s.drop_copy(to, row.seq, row.reason);
            }
        });
        if !there {
            return Err(format!("not all of slots {run:?} exist"));
        }
        self.touch_slots(run, component);
        for (node, slots) in nodes {
            self.touch(node);
            if arrived {
                self.count_copies(node, component, to, slots)?;
            }
        }
        self.free_pages(component, to, &pages)
    }

    fn join_op(&mut self, id: u64, row: &Row, tier_from: Option<Tier>, tier_to: Tier) -> Applied {
        let component = self.component_of(row)?;
        let run = row.slots();
        let pool = self.pool(component, tier_to)?;
        let fits = pool.observed || run.count <= pool.pages.capacity();
        if !fits || run.first.checked_add(run.count).is_none() {
            return Err(format!("slots {run:?} do not fit in {}", tier_to.name()));
        }
        if self.ops.update(&id, |op| op.slots.join(run)).is_some() {
            return Ok(());
        }
        let op = Op {
            kind: row.kind,
            component,
            tier_from,
            tier_to,
            session: row.session.clone(),
            request: row.request.clone(),
            receipt: row.receipt,
            deadline: row.score.unwrap_or(0),
            draining: false,
            slots: Members::from(run),
        };
        self.ops.insert(id, op);
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
