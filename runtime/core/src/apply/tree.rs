//! Rows about the tree: nodes appear, grow, are split, lose pages and go.

use super::need;
use crate::families::Shape;
use crate::names::{Phase, Tier};
use crate::records::{FULL, NONE, Node, Part, Spot};
use crate::row::Row;
use crate::runs::{Run, Runs};
use crate::slots::Slot;
use crate::state::{Applied, State};
use crate::strip::Placed;

impl State {
    /// The tail keeps its number; the head is new, above it, and is held by whatever holds the tail.
    pub(super) fn apply_split(&mut self, row: &Row) -> Applied {
        let (tail, head) = (need(&row.node, "node", row)?, need(&row.parent, "parent", row)?);
        let at = need(&row.pages, "pages", row)?;
        let old = self.node(tail)?;
        if self.nodes.get(head).is_some() {
            return Err(format!("node {head} exists"));
        }
        if at == 0 || at >= old.pages {
            return Err(format!("node {tail} of {} pages cannot be split at {at}", old.pages));
        }
        let (cut, mut front) = (old.start + at, old.clone());
        let mut back = Vec::new();
        for part in &mut front.parts {
            let slots = part.slots.split_off(cut);
            // Counting one side is enough, and the shorter one is cheaper.
            let behind = slots.len() < part.slots.len();
            let side = if behind { &slots } else { &part.slots };
            let (copies, bad) = self.copies_in(side.iter().map(|(_, slot)| slot));
            let other = ([0, 1, 2].map(|t| part.copies[t] - copies[t]), part.bad - bad);
            let (tail_counts, head_counts) =
                if behind { ((copies, bad), other) } else { (other, (copies, bad)) };
            let kids_with = part.kids_with;
            back.push(Part { slots, copies: tail_counts.0, kids_with, bad: tail_counts.1 });
            (part.copies, part.bad) = head_counts;
            let below = back.last().map(|tail| Tier::ALL.iter().map(|t| tail.has_below(*t) as u32));
            let mut below = below.into_iter().flatten();
            part.kids_with = std::array::from_fn(|_| below.next().unwrap_or(0));
        }
        let moved: Vec<Run> =
            front.parts.iter().flat_map(|part| part.slots.placed()).map(Placed::slots).collect();
        for slot in moved.into_iter().flat_map(Run::iter) {
            self.slots.set_node(slot, head);
        }
        self.change_node(tail, |n| {
            n.parent = head;
            n.start += at;
            n.pages -= at;
            n.parts = back.into();
        })?;
        self.touch(head);
        (front.pages, front.kids) = (at, 1);
        self.nodes.insert(head, front).then_some(()).ok_or_else(|| format!("no node can be {head}"))
    }

    fn copies_in(&self, slots: impl Iterator<Item = u32>) -> ([u32; 3], u32) {
        let (mut copies, mut bad) = ([0; 3], 0);
        for slot in slots.filter_map(|s| self.slots.get(s)) {
            bad += slot.bad.count_ones();
            (0..3).for_each(|t| copies[t] += (slot.here >> t & 1) as u32);
        }
        (copies, bad)
    }

    /// Computed pages come into the tree: from a reservation, or, on a device that somebody else owns, from nowhere.
    pub(super) fn apply_insert(&mut self, row: &Row) -> Applied {
        let (node, component) = (need(&row.node, "node", row)?, self.component_of(row)?);
        let (run, end) = (row.slots(), need(&row.end_page, "end_page", row)?);
        let start = end.checked_sub(run.count).ok_or("more pages than fit before the end")?;
        match row.op {
            Some(op) => self.leave_op(op, row)?,
            None => self.observe_slots(row, component)?,
        }
        if row.phase == Phase::Heal {
            return self.heal(row, node, component, start);
        }
        if !row.digests.is_empty() && row.digests.len() != run.count as usize {
            return Err(format!("insert row {} has {} digests", row.seq, row.digests.len()));
        }
        if component == FULL as u8 {
            self.grow_node(row, node, start, run.count)?;
        }
        let shape = self.shape(component as usize);
        let placed = Placed { at: start, first: run.first, count: run.count };
        let record = self.node(node)?;
        if start < record.start || end > record.end() {
            return Err(format!("insert row {} leaves node {node}", row.seq));
        }
        let mut free = false;
        self.change_node(node, |n| free = n.parts[component as usize].slots.put(placed))?;
        if !free {
            return Err(format!("insert row {} puts slots where there are some", row.seq));
        }
        for (i, slot) in run.iter().enumerate() {
            let digest = row.digests.get(i).copied().unwrap_or_default();
            self.change_slot(slot, |s| {
                (s.node, s.position, s.digest) = (node, start + i as u32, digest);
                s.settle_copy(Tier::Device);
            })?;
            if shape == Shape::Spot {
                let spot = Spot { created: row.clock, last_use: row.clock, ..Spot::default() };
                self.spots.insert(slot, spot);
                self.touched_spots.push(slot);
            }
        }
        self.unfence_written(row, component)?;
        self.count_copies(node, component, Tier::Device, run.count as i32)
    }

    /// Pages at the end of a node, which is new when nobody has seen it.
    fn grow_node(&mut self, row: &Row, node: u32, start: u32, pages: u32) -> Applied {
        if self.nodes.get(node).is_none() {
            let parent = need(&row.parent, "parent", row)?;
            let namespace = self.node(parent)?.namespace;
            self.new_node(node, Node::new(namespace, parent, start, row.clock, self.components.len()))?;
        }
        let record = self.node(node)?;
        if record.end() != start || record.kids > 0 || record.parent == NONE {
            return Err(format!("insert row {} leaves a hole in node {node}, or is in the middle", row.seq));
        }
        self.change_node(node, |n| n.pages += pages)
    }

    /// The pages become the device copies of slots that the node has already.
    fn heal(&mut self, row: &Row, node: u32, component: u8, start: u32) -> Applied {
        let record = self.node(node)?;
        let targets: Vec<u32> = {
            let runs = record.parts[component as usize].slots.between(start, start + row.slots().count);
            runs.flat_map(|placed| placed.slots().iter()).collect()
        };
        if targets.len() != row.slots().count as usize {
            return Err(format!("insert row {} heals pages that have no slot", row.seq));
        }
        for (temporary, target) in row.slots().iter().zip(&targets) {
            let mut page = NONE;
            if !self.slots.remove(Run { first: temporary, count: 1 }, |gone| page = gone.page(Tier::Device)) {
                return Err(format!("slot {temporary} does not exist"));
            }
            if !self.slot(*target)?.lacks(Tier::Device) {
                return Err(format!("slot {target} has or awaits a device copy"));
            }
            let target = Run { first: *target, count: 1 };
            self.slots.update_copies(target, [Tier::Device], |_, s| {
                s.await_copy(Tier::Device, page);
                s.settle_copy(Tier::Device);
            });
            self.touch_slots(target, component);
        }
        self.unfence_written(row, component)?;
        self.count_copies(node, component, Tier::Device, targets.len() as i32)
    }

    /// A reservation's pages are no longer written. Observed ones never were, as far as we know.
    fn unfence_written(&mut self, row: &Row, component: u8) -> Applied {
        if row.op.is_some() { self.unfence(component, Tier::Device, row.slots().count) } else { Ok(()) }
    }

    fn observe_slots(&mut self, row: &Row, component: u8) -> Applied {
        if !self.is_observed(Tier::Device) {
            return Err(format!("insert row {} is of no operation", row.seq));
        }
        let page_from = need(&row.page_from, "page_from", row)?;
        let run = row.slots();
        let made = page_from.checked_add(run.count).is_some()
            && self.slots.insert(run, |i| {
                let mut slot = Slot::new(component, NONE, NONE);
                slot.await_copy(Tier::Device, page_from + i);
                slot
            });
        if made { Ok(()) } else { Err(format!("slots {run:?} exist or cannot exist")) }
    }

    pub(super) fn apply_free(&mut self, row: &Row) -> Applied {
        if let Some(node) = row.node {
            let component = self.component_of(row)?;
            return match component as usize {
                FULL => self.shorten(row, node),
                c => self.forget_slots(row, node, c),
            };
        }
        self.leave_op(need(&row.op, "op", row)?, row)?;
        let (run, component) = (row.slots(), self.component_of(row)?);
        let (mut pages, mut same) = (Runs::default(), true);
        let removed = self.slots.remove(run, |gone| {
            same &= gone.component == component && gone.node == NONE;
            pages.push(gone.page(Tier::Device), 1);
        });
        if !removed || !same {
            return Err(format!("slots {run:?} do not exist, or are not the operation's"));
        }
        self.unfence(component, Tier::Device, run.count)?;
        self.free_pages(component, Tier::Device, &pages)
    }

    /// Slots without copies of another component than `full` go.
    fn forget_slots(&mut self, row: &Row, node: u32, component: usize) -> Applied {
        let (run, end) = (row.slots(), need(&row.end_page, "end_page", row)?);
        let mut taken = None;
        self.change_node(node, |n| {
            taken = end.checked_sub(run.count).and_then(|at| n.parts[component].slots.take(at, run.count));
        })?;
        if taken != Some(run) {
            return Err(format!("slots {run:?} do not stand in node {node}"));
        }
        self.remove_gone(run)
    }

    fn remove_gone(&mut self, run: Run) -> Applied {
        for slot in run.iter() {
            if !self.slot(slot)?.is_gone() {
                return Err(format!("slot {slot} still has copies"));
            }
            let Some(spot) = self.spots.remove(&slot) else { continue };
            if spot.locks > 0 || spot.leases != [0; 3] {
                return Err(format!("slot {slot} is still held"));
            }
            self.touched_spots.push(slot);
        }
        self.slots.remove(run, |_| ());
        Ok(())
    }

    /// Take empty slots off a node's end; a node without slots is gone.
    fn shorten(&mut self, row: &Row, node: u32) -> Applied {
        let run = row.slots();
        self.cut_tail(node, run)?;
        self.remove_gone(run)?;
        self.drop_empty(node)
    }

    /// `full`'s slots leave a node's end, still alive. No other component may have any there.
    pub(super) fn cut_tail(&mut self, node: u32, run: Run) -> Applied {
        let end = self.node(node)?.end();
        let at = end.checked_sub(run.count).filter(|at| *at >= self.node(node).map_or(0, |n| n.start));
        let at = at.ok_or_else(|| format!("node {node} has fewer than {} pages", run.count))?;
        let record = self.node(node)?;
        if record.parts[1..].iter().any(|part| part.slots.between(at, end).next().is_some()) {
            return Err(format!("node {node} still has other components from page {at} on"));
        }
        if !record.is_unnamed() {
            return Err(format!("node {node} is still named"));
        }
        let mut taken = None;
        self.change_node(node, |n| {
            taken = n.parts[FULL].slots.take(at, run.count);
            n.pages -= run.count;
        })?;
        if taken != Some(run) {
            return Err(format!("slots {run:?} are not the end of node {node}"));
        }
        Ok(())
    }

    pub(super) fn drop_empty(&mut self, node: u32) -> Applied {
        if self.node(node)?.pages > 0 {
            return Ok(());
        }
        let parent = self.nodes.remove(node).map_or(NONE, |gone| gone.parent);
        self.count_in_node(parent, |n| n.kids -= 1)
    }

    pub(super) fn new_node(&mut self, id: u32, node: Node) -> Applied {
        if node.parent != NONE {
            self.count_in_node(node.parent, |n| n.kids += 1)?;
        }
        self.touch(id);
        if !self.nodes.insert(id, node) {
            return Err(format!("node {id} exists"));
        }
        Ok(())
    }
}
