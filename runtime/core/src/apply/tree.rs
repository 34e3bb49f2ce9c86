//! Rows about the tree: nodes appear, are split, get pages, lose them and go.

use super::need;
use crate::names::{Phase, Reason, Tier};
use crate::records::{NONE, Node};
use crate::row::Row;
use crate::runs::Runs;
use crate::state::{Applied, State};

impl State {
    /// The tail keeps its number; the head is new, above it, and is held by whatever holds the tail.
    pub(super) fn apply_split(&mut self, row: &Row) -> Applied {
        let (tail, head) = (need(&row.node, "node", row)?, need(&row.parent, "parent", row)?);
        let at = need(&row.pages, "pages", row)?;
        let old = self.node(tail)?.clone();
        if self.nodes.get(head).is_some() {
            return Err(format!("node {head} exists"));
        }
        if at == 0 || at >= old.slots.len() {
            return Err(format!("node {tail} of {} pages cannot be split at {at}", old.slots.len()));
        }
        let mut front = old.slots.clone();
        let back = front.split_off(at);
        let (mut copies, mut bad) = ([0; 3], 0);
        for slot in front.iter() {
            self.change_slot(slot, |s| {
                s.node = head;
                bad += s.bad.count_ones();
                for tier in Tier::ALL {
                    copies[*tier as usize] += s.has(*tier) as u32;
                }
            })?;
        }
        self.change_node(tail, |n| {
            n.parent = head;
            n.start += at;
            n.slots = back;
            n.bad -= bad;
            (0..3).for_each(|t| n.copies[t] -= copies[t]);
        })?;
        let below = self.node(tail)?;
        let kids_with = Tier::ALL.iter().map(|t| below.has_below(*t) as u32).collect::<Vec<_>>();
        let kids_with = [kids_with[0], kids_with[1], kids_with[2]];
        self.touch(head);
        let head_node = Node { slots: front, kids: 1, copies, kids_with, bad, ..old };
        self.nodes.insert(head, head_node).then_some(()).ok_or_else(|| format!("no node can be {head}"))
    }

    pub(super) fn apply_insert(&mut self, row: &Row) -> Applied {
        let (op, node) = (need(&row.op, "op", row)?, need(&row.node, "node", row)?);
        let (run, end) = (row.slots(), need(&row.end_page, "end_page", row)?);
        let start = end - run.count;
        self.leave_op(op, row)?;
        if row.phase == Phase::Heal {
            return self.heal(row, node, start);
        }
        if row.digests.len() != run.count as usize {
            return Err(format!("insert row {} has {} digests", row.seq, row.digests.len()));
        }
        if self.nodes.get(node).is_none() {
            let parent = need(&row.parent, "parent", row)?;
            let namespace = self.node(parent)?.namespace;
            self.new_node(node, Node { namespace, ..fresh_node(parent, start, row.clock) })?;
        }
        if self.node(node)?.end() != start {
            return Err(format!("insert row {} leaves a hole in node {node}", row.seq));
        }
        self.count_in_node(node, |n| n.slots.push(run.first, run.count))?;
        for (i, slot) in run.iter().enumerate() {
            self.unfence_page(Tier::Device);
            self.copy_arrives(slot, Tier::Device, |s| {
                s.node = node;
                s.position = start + i as u32;
                s.coming = 0;
                s.digest = row.digests[i];
            })?;
        }
        Ok(())
    }

    /// The operation's pages become the device copies of slots that the node has already.
    fn heal(&mut self, row: &Row, node: u32, start: u32) -> Applied {
        let d = Tier::Device as usize;
        let record = self.node(node)?;
        let targets = record.slots.slice(start - record.start, start - record.start + row.slots().count);
        for (temporary, target) in row.slots().iter().zip(targets.iter()) {
            let page = self.slot(temporary)?.page[d];
            self.slots.remove(temporary);
            self.unfence_page(Tier::Device);
            self.copy_arrives(target, Tier::Device, |s| {
                (s.page[d], s.lost, s.lost_why) = (page, 0, Reason::None);
            })?;
        }
        Ok(())
    }

    pub(super) fn apply_free(&mut self, row: &Row) -> Applied {
        if let Some(node) = row.node {
            return self.shorten(row, node);
        }
        self.leave_op(need(&row.op, "op", row)?, row)?;
        for slot in row.slots().iter() {
            let record = self.slots.remove(slot).ok_or_else(|| format!("slot {slot} does not exist"))?;
            self.unfence_page(Tier::Device);
            self.free_page(Tier::Device, record.page[Tier::Device as usize])?;
        }
        Ok(())
    }

    /// Take empty slots off a node's end; a node without slots is gone.
    fn shorten(&mut self, row: &Row, node: u32) -> Applied {
        let run = row.slots();
        let left = self.node(node)?.slots.len().checked_sub(run.count);
        let left = left.ok_or_else(|| format!("node {node} has fewer than {} pages", run.count))?;
        let mut tail = Runs::default();
        self.count_in_node(node, |n| tail = n.slots.split_off(left))?;
        if tail.as_runs() != [run] {
            return Err(format!("slots {run:?} are not the end of node {node}"));
        }
        for slot in run.iter() {
            if !self.slot(slot)?.is_gone() {
                return Err(format!("slot {slot} still has copies"));
            }
            self.slots.remove(slot);
        }
        if left > 0 {
            return Ok(());
        }
        let gone = self.nodes.remove(node).filter(Node::is_unnamed);
        let parent = gone.ok_or_else(|| format!("node {node} is still named"))?.parent;
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

pub(super) fn fresh_node(parent: u32, start: u32, clock: i64) -> Node {
    Node {
        namespace: 0,
        parent,
        start,
        locks: 0,
        leases: [0; 3],
        sessions: 0,
        last_use: clock,
        uses: 0,
        slots: Runs::default(),
        kids: 0,
        copies: [0; 3],
        kids_with: [0; 3],
        bad: 0,
    }
}
