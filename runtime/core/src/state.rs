//! The state of one engine's cache, and the small changes that rows are made of. Each keeps the counters
//! that are derived from records right, and says what it touched.

use std::sync::Arc;

use crate::arena::Arena;
use crate::bitmap::Bitmap;
use crate::families::Shape;
use crate::keyframe::Keyframe;
use crate::mixer::Mixer;
use crate::names::{Name, Reason, Tier};
use crate::records::{Component, FULL, Lease, NONE, Namespace, Node, Op, Receipt, Session, Spot};
use crate::runs::{Run, Runs};
use crate::slots::{Slot, Slots};
use crate::table::Table;

/// Most pages of a tier.
pub const MAX_TIER_PAGES: u32 = 1 << 30;

/// A row that does not fit the state: impossible in a live core, a broken log in a replica.
pub type Applied = Result<(), String>;

/// One component's pages of one tier.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    pub pages: Bitmap,
    /// Pages that an operation writes.
    pub fenced: u32,
    /// Pages under a lease on this tier, present or not.
    pub leased: u32,
    /// Somebody else's: nothing is allocated here, what we know of it are beliefs.
    pub observed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct State {
    pub seq: u64,
    pub clock: i64,
    pub page_size: u32,
    /// Hash of what an engine is, kept: it is asked for with every row.
    pub(crate) config: u128,
    pub components: Vec<Component>,
    /// By component and tier.
    pub pools: Vec<[Pool; 3]>,
    pub namespaces: Arena<Namespace>,
    pub nodes: Arena<Node>,
    pub slots: Slots,
    pub spots: Table<u32, Spot>,
    pub sessions: Table<Arc<str>, Session>,
    pub receipts: Table<u64, Receipt>,
    pub leases: Table<u64, Lease>,
    pub ops: Table<u64, Op>,
    /// What changed since somebody last looked, for indexes beside the state: nodes, and slots of spot components.
    pub touched: Vec<u32>,
    pub touched_spots: Vec<u32>,
    /// The keyframe that is being cut.
    pub(crate) keyframe: Option<Keyframe>,
}

impl State {
    pub fn hash(&self) -> u128 {
        self.hashes().iter().fold(self.config, |sum: u128, (_, hash)| sum.wrapping_add(*hash))
    }

    /// The hash that each kind of record keeps of itself.
    pub(crate) fn hashes(&self) -> [(&'static str, u128); 8] {
        [
            ("namespaces", self.namespaces.hash()),
            ("nodes", self.nodes.hash()),
            ("slots", self.slots.hash()),
            ("spots", self.spots.hash()),
            ("sessions", self.sessions.hash()),
            ("receipts", self.receipts.hash()),
            ("leases", self.leases.hash()),
            ("ops", self.ops.hash()),
        ]
    }

    /// Of what is believed about tiers that somebody else owns; no part of `hash`.
    pub fn observed_hash(&self) -> u128 {
        self.slots.observed_hash()
    }

    pub(crate) fn config_hash(&self) -> u128 {
        let mut mixer = Mixer::new(9, self.page_size as u64);
        for (component, pools) in self.components.iter().zip(&self.pools) {
            mixer.word((component.kind as u64) << 32 | component.number as u64);
            pools
                .iter()
                .for_each(|pool| mixer.word((pool.pages.capacity() as u64) << 1 | pool.observed as u64));
        }
        mixer.finish()
    }

    /// Tokens of so many pages.
    pub fn tokens(&self, pages: u32) -> i64 {
        pages as i64 * self.page_size as i64
    }

    pub fn node(&self, id: u32) -> Result<&Node, String> {
        self.nodes.get(id).ok_or_else(|| format!("node {id} does not exist"))
    }

    pub fn slot(&self, id: u32) -> Result<&Slot, String> {
        self.slots.get(id).ok_or_else(|| format!("slot {id} does not exist"))
    }

    pub fn component(&self, name: &str) -> Option<usize> {
        self.components.iter().position(|component| component.name == name)
    }

    pub fn name_of(&self, component: usize) -> Name {
        self.components.get(component).map_or("", |c| c.name)
    }

    pub fn shape(&self, component: usize) -> Shape {
        self.components.get(component).map_or(Shape::Shadow, Component::shape)
    }

    pub fn of_shape(&self, shape: Shape) -> impl Iterator<Item = usize> + '_ {
        (0..self.components.len()).filter(move |c| self.shape(*c) == shape)
    }

    /// Components that have slots.
    pub fn slotted(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.components.len()).filter(|c| self.shape(*c) != Shape::Shadow)
    }

    pub fn is_observed(&self, tier: Tier) -> bool {
        self.pools.first().is_some_and(|pools| pools[tier as usize].observed)
    }

    /// Whether a component can have copies there.
    pub fn has_tier(&self, component: usize, tier: Tier) -> bool {
        let pool = &self.pools[component][tier as usize];
        pool.pages.capacity() > 0 || pool.observed
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

    /// `full`'s slots of the path that ends at `id`, in order.
    pub fn path_slots(&self, id: u32) -> impl Iterator<Item = (u32, &Slot)> {
        self.component_slots(id, FULL)
    }

    /// One component's slots of the path that ends at `id`, in order.
    pub fn component_slots(&self, id: u32, component: usize) -> impl Iterator<Item = (u32, &Slot)> {
        let nodes = self.path(id).into_iter().filter_map(|n| self.nodes.get(n));
        let slots = nodes.flat_map(move |n| n.parts[component].slots.iter());
        slots.filter_map(|(_, s)| Some((s, self.slots.get(s)?)))
    }

    pub fn path_pages(&self, id: u32) -> u32 {
        self.nodes.get(id).map_or(0, Node::end)
    }

    /// The slot of a component at a page of the path that ends at `node`.
    pub fn slot_at(&self, node: u32, component: usize, page: u32) -> Option<u32> {
        let (_, node) = self.upward(node).find(|(_, n)| n.start <= page)?;
        node.parts[component].slots.get(page)
    }

    /// Slots of spot components that whoever resumes at the end of this path needs.
    pub fn needed_spots(&self, node: u32) -> Vec<u32> {
        let mut slots = Vec::new();
        for c in self.of_shape(Shape::Spot) {
            let needed = self.components[c].family.needs(self.path_pages(node));
            let nodes = self.upward(node).take_while(|(_, n)| n.end() > needed.start);
            let runs = nodes.flat_map(|(_, n)| n.parts[c].slots.between(needed.start, needed.end).rev());
            slots.extend(runs.flat_map(|placed| placed.slots().iter()));
        }
        slots
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

    pub(crate) fn touch_slots(&mut self, run: Run, component: u8) {
        if self.shape(component as usize) == Shape::Spot {
            self.touched_spots.extend(run.iter());
        }
    }

    /// What a path says of all its pages has changed: its spots stand differently now.
    pub(crate) fn touch_spots_of(&mut self, node: u32) {
        if self.of_shape(Shape::Spot).next().is_none() {
            return;
        }
        let mut spots = std::mem::take(&mut self.touched_spots);
        for (_, record) in self.upward(node) {
            for c in self.of_shape(Shape::Spot) {
                spots.extend(record.parts[c].slots.iter().map(|(_, slot)| slot));
            }
        }
        self.touched_spots = spots;
    }

    pub(crate) fn change_slot(&mut self, id: u32, change: impl FnOnce(&mut Slot)) -> Applied {
        self.slots.update(id, change).ok_or_else(|| format!("slot {id} does not exist"))
    }

    /// Change who holds or uses every node from `id` up to and without the root, which nothing could take away.
    pub(crate) fn use_nodes(&mut self, id: u32, change: impl FnMut(&mut Node)) -> Applied {
        self.use_nodes_below(id, NONE, change).map(|_| ())
    }

    /// The same, up to and without node `end`. False when that does not stand on the way.
    pub(crate) fn use_nodes_below(
        &mut self,
        id: u32,
        end: u32,
        mut change: impl FnMut(&mut Node),
    ) -> Result<bool, String> {
        let (mut at, mut parent) = (id, self.node(id)?.parent);
        while at != end && parent != NONE {
            self.touch(at);
            self.nodes.update_use(at, &mut change);
            at = parent;
            parent = self.node(at)?.parent;
        }
        Ok(at == end)
    }

    pub(crate) fn change_spots(&mut self, slots: &[u32], mut change: impl FnMut(&mut Spot)) -> Applied {
        for slot in slots {
            let found = self.spots.update(slot, &mut change);
            found.ok_or_else(|| format!("slot {slot} is not one of a spot component"))?;
            self.touched_spots.push(*slot);
        }
        Ok(())
    }

    /// A run of copies leaves a tier, and its pages are free. Where one was the last, row `seq` took it. Not
    /// inlined: its loop needs all registers.
    #[inline(never)]
    pub(crate) fn copies_leave(&mut self, run: Run, tier: Tier, seq: u64, why: Reason) -> Applied {
        let first = self.slot(run.first)?;
        let (node, component, observed) = (first.node, first.component, self.is_observed(tier));
        let (mut bad, mut free, mut pages) = (0, true, Runs::default());
        let there = self.slots.update_copies(run, [tier], |_, s| {
            free &= s.may_leave(tier, observed) && (s.node, s.component) == (node, component);
            bad += (s.bad & tier.bit() != 0) as u32;
            pages.push(s.page(tier), 1);
            s.drop_copy(tier, seq, why);
        });
        if !there || !free {
            return Err(format!(
                "slots {run:?} have no copies on {} that nobody reads, or are not all in node {node}",
                tier.name()
            ));
        }
        self.touch_slots(run, component);
        self.free_pages(component, tier, &pages)?;
        if bad > 0 && node != NONE {
            self.count_in_node(node, |n| n.parts[component as usize].bad -= bad)?;
        }
        self.count_copies(node, component, tier, -(run.count as i32))
    }

    /// A run of pages of a pool is taken, to be written.
    pub(crate) fn fence(&mut self, component: u8, tier: Tier, pages: Run) -> Applied {
        let pool = self.pool(component, tier)?;
        if !pool.observed && !pool.pages.take(pages) {
            return Err(format!("pages {pages:?} of {} are taken or out of range", tier.name()));
        }
        pool.fenced += pages.count;
        Ok(())
    }

    pub(crate) fn unfence(&mut self, component: u8, tier: Tier, count: u32) -> Applied {
        let pool = self.pool(component, tier)?;
        let left = pool.fenced.checked_sub(count);
        pool.fenced = left.ok_or_else(|| format!("{count} pages of {} are not fenced", tier.name()))?;
        Ok(())
    }

    pub(crate) fn free_pages(&mut self, component: u8, tier: Tier, pages: &Runs) -> Applied {
        let pool = self.pool(component, tier)?;
        if !pool.observed && !pages.as_runs().iter().all(|run| pool.pages.release(*run)) {
            return Err(format!("pages {:?} of {} are free already", pages.as_runs(), tier.name()));
        }
        Ok(())
    }

    pub(crate) fn pool(&mut self, component: u8, tier: Tier) -> Result<&mut Pool, String> {
        let pools = self.pools.get_mut(component as usize);
        let missing = || format!("component {component} does not exist");
        Ok(&mut pools.ok_or_else(missing)?[tier as usize])
    }

    /// Add to a node's copies; tell the ancestors when a subtree starts or ceases to have any.
    pub(crate) fn count_copies(&mut self, node: u32, component: u8, tier: Tier, by: i32) -> Applied {
        let (c, t) = (component as usize, tier as usize);
        let (mut at, mut delta, mut own) = (node, by, true);
        while at != NONE && delta != 0 {
            let (mut parent, mut before, mut after) = (NONE, false, false);
            self.count_in_node(at, |n| {
                let part = &mut n.parts[c];
                before = part.has_below(tier);
                let count = if own { &mut part.copies[t] } else { &mut part.kids_with[t] };
                *count = count.wrapping_add_signed(delta);
                after = part.has_below(tier);
                parent = n.parent;
            })?;
            delta = after as i32 - before as i32;
            (at, own) = (parent, false);
        }
        Ok(())
    }
}
