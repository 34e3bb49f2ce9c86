//! The state of one engine's cache, and the small changes that rows are made of. Each keeps the counters
//! that are derived from records right, and says which nodes it touched.

use std::sync::Arc;

use crate::arena::Arena;
use crate::bitmap::Bitmap;
use crate::digest::Mixer;
use crate::names::{Reason, Tier};
use crate::records::{Lease, NONE, Namespace, Node, Op, Receipt, Session, Slot};
use crate::table::Table;

/// Most pages of a tier.
pub const MAX_TIER_PAGES: u32 = 1 << 30;

/// A row that does not fit the state: impossible in a live core, a broken log in a replica.
pub type Applied = Result<(), String>;

#[derive(Clone, Debug, Default)]
pub struct Pool {
    pub pages: Bitmap,
    /// Pages that an operation writes.
    pub fenced: u32,
    /// Pages under a lease on this tier, present or not.
    pub leased: u32,
}

#[derive(Clone, Debug, Default)]
pub struct State {
    pub seq: u64,
    pub clock: i64,
    pub page_size: u32,
    pub page_bytes: u64,
    pub namespaces: Arena<Namespace>,
    pub nodes: Arena<Node>,
    pub slots: Arena<Slot>,
    pub sessions: Table<Arc<str>, Session>,
    pub receipts: Table<u64, Receipt>,
    pub leases: Table<u64, Lease>,
    pub ops: Table<u64, Op>,
    pub pools: [Pool; 3],
    /// Nodes changed since somebody last looked; for indexes beside the state.
    pub touched: Vec<u32>,
}

impl State {
    pub fn hash(&self) -> u128 {
        let parts = [
            self.namespaces.hash(),
            self.nodes.hash(),
            self.slots.hash(),
            self.sessions.hash(),
            self.receipts.hash(),
            self.leases.hash(),
            self.ops.hash(),
            self.config_hash(),
        ];
        parts.iter().fold(0, |sum: u128, part| sum.wrapping_add(*part))
    }

    pub fn config_hash(&self) -> u128 {
        let mut mixer = Mixer::new(8, 0);
        mixer.word(self.page_size as u64);
        mixer.word(self.page_bytes);
        self.pools.iter().for_each(|pool| mixer.word(pool.pages.capacity() as u64));
        mixer.finish()
    }

    pub fn node(&self, id: u32) -> Result<&Node, String> {
        self.nodes.get(id).ok_or_else(|| format!("node {id} does not exist"))
    }

    pub fn slot(&self, id: u32) -> Result<&Slot, String> {
        self.slots.get(id).ok_or_else(|| format!("slot {id} does not exist"))
    }

    /// Nodes from `id` up to and without the root.
    pub fn upward(&self, id: u32) -> impl Iterator<Item = (u32, &Node)> {
        let mut at = id;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at)?;
            let here = at;
            at = node.parent;
            (node.parent != NONE).then_some((here, node))
        })
    }

    /// Nodes from just below the root down to `id`.
    pub fn path(&self, id: u32) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.upward(id).map(|(n, _)| n).collect();
        nodes.reverse();
        nodes
    }

    /// Slots of the path that ends at `id`, in order.
    pub fn path_slots(&self, id: u32) -> impl Iterator<Item = (u32, &Slot)> {
        let nodes = self.path(id).into_iter().filter_map(|n| self.nodes.get(n));
        nodes.flat_map(|n| n.slots.iter()).filter_map(|s| Some((s, self.slots.get(s)?)))
    }

    pub fn path_pages(&self, id: u32) -> u32 {
        self.nodes.get(id).map_or(0, Node::end)
    }

    pub(crate) fn change_node(&mut self, id: u32, change: impl FnOnce(&mut Node)) -> Applied {
        self.touch(id);
        self.nodes.update(id, change).ok_or_else(|| format!("node {id} does not exist"))
    }

    /// Change what a node counts. Counts are not hashed.
    pub(crate) fn count_in_node(&mut self, id: u32, change: impl FnOnce(&mut Node)) -> Applied {
        self.touch(id);
        self.nodes.update_counts(id, change).ok_or_else(|| format!("node {id} does not exist"))
    }

    pub(crate) fn touch(&mut self, node: u32) {
        if self.touched.last() != Some(&node) {
            self.touched.push(node);
        }
    }

    pub(crate) fn change_slot(&mut self, id: u32, change: impl FnOnce(&mut Slot)) -> Applied {
        self.slots.update(id, change).ok_or_else(|| format!("slot {id} does not exist"))
    }

    /// Change every node from `id` up to and with the root.
    pub(crate) fn change_path(&mut self, id: u32, mut change: impl FnMut(&mut Node)) -> Applied {
        let mut at = id;
        while at != NONE {
            let mut parent = NONE;
            self.change_node(at, |node| {
                change(node);
                parent = node.parent;
            })?;
            at = parent;
        }
        Ok(())
    }

    /// A copy settles in a tier; `also` changes what else its slot says then.
    pub(crate) fn copy_arrives(&mut self, slot: u32, tier: Tier, also: impl FnOnce(&mut Slot)) -> Applied {
        self.change_slot(slot, |s| {
            also(s);
            s.here |= tier.bit();
        })?;
        self.count_copies(self.slot(slot)?.node, tier, 1)
    }

    /// A copy leaves a tier, and its page is free. When it was the last one, row `seq` took it.
    pub(crate) fn copy_leaves(&mut self, slot: u32, tier: Tier, seq: u64, why: Reason) -> Applied {
        let record = self.slot(slot)?;
        let (node, page) = (record.node, record.page[tier as usize]);
        if !record.has(tier) {
            return Err(format!("slot {slot} has no copy on {}", tier.name()));
        }
        if record.bad & tier.bit() != 0 && node != NONE {
            self.count_in_node(node, |n| n.bad -= 1)?;
        }
        self.change_slot(slot, |s| {
            s.here &= !tier.bit();
            s.bad &= !tier.bit();
            s.page[tier as usize] = NONE;
            if s.is_gone() {
                (s.lost, s.lost_why) = (seq, why);
            }
        })?;
        self.free_page(tier, page)?;
        self.count_copies(node, tier, -1)
    }

    /// A page of a tier's pool is taken, to be written.
    pub(crate) fn fence_page(&mut self, tier: Tier, page: u32) -> Applied {
        let pool = &mut self.pools[tier as usize];
        if !pool.pages.take_one(page) {
            return Err(format!("page {page} of {} is taken or out of range", tier.name()));
        }
        pool.fenced += 1;
        Ok(())
    }

    pub(crate) fn unfence_page(&mut self, tier: Tier) {
        self.pools[tier as usize].fenced -= 1;
    }

    pub(crate) fn free_page(&mut self, tier: Tier, page: u32) -> Applied {
        if !self.pools[tier as usize].pages.release_one(page) {
            return Err(format!("page {page} of {} is free already", tier.name()));
        }
        Ok(())
    }

    /// Add to a node's copies; tell the ancestors when a subtree starts or ceases to have any.
    pub(crate) fn count_copies(&mut self, node: u32, tier: Tier, by: i32) -> Applied {
        let t = tier as usize;
        let (mut at, mut delta, mut own) = (node, by, true);
        while at != NONE && delta != 0 {
            let (mut parent, mut before, mut after) = (NONE, false, false);
            self.count_in_node(at, |n| {
                before = n.has_below(tier);
                let count = if own { &mut n.copies[t] } else { &mut n.kids_with[t] };
                *count = count.wrapping_add_signed(delta);
                after = n.has_below(tier);
                parent = n.parent;
            })?;
            delta = after as i32 - before as i32;
            (at, own) = (parent, false);
        }
        Ok(())
    }
}
