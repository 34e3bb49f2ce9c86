//! Which pages of a path can be used, read off the tree for one component.

use crate::families::Presence;
use crate::names::Tier;
use crate::records::Node;
use crate::state::State;

pub struct There<'a> {
    pub state: &'a State,
    /// From just below the root, without gaps.
    pub nodes: &'a [u32],
    pub component: usize,
    /// Tiers (bits) that count.
    pub tiers: u8,
}

impl<'a> There<'a> {
    fn nodes(&self) -> impl DoubleEndedIterator<Item = &'a Node> {
        self.nodes.iter().filter_map(|id| self.state.nodes.get(*id))
    }

    fn usable(&self, slot: u32) -> bool {
        self.state.slots.get(slot).is_some_and(|slot| slot.usable_in(self.tiers))
    }

    fn is_whole(&self, node: &Node) -> bool {
        self.tiers & Tier::Device.bit() != 0 && node.is_whole_on_device(self.component)
    }
}

impl Presence for There<'_> {
    fn leading(&self, limit: u32) -> u32 {
        for node in self.nodes().take_while(|node| node.start < limit) {
            if self.is_whole(node) {
                continue;
            }
            let mut next = node.start;
            for (page, slot) in node.parts[self.component].slots.iter() {
                if page != next || !self.usable(slot) {
                    break;
                }
                next += 1;
            }
            if next < node.end() {
                return next.min(limit);
            }
        }
        self.nodes().next_back().map_or(0, Node::end).min(limit)
    }

    fn back_from(&self, end: u32, enough: u32) -> u32 {
        let mut from = end;
        for node in self.nodes().rev().skip_while(|node| node.start >= end) {
            while from > node.start && from > enough {
                let slot = node.parts[self.component].slots.get(from - 1);
                if !slot.is_some_and(|slot| self.usable(slot)) {
                    return from;
                }
                from -= 1;
            }
            if from <= enough {
                break;
            }
        }
        from
    }

    fn last_before(&self, limit: u32) -> Option<u32> {
        self.nodes().rev().skip_while(|node| node.start >= limit).find_map(|node| {
            let runs = node.parts[self.component].slots.between(node.start, limit).rev();
            let mut slots = runs.flat_map(|run| (run.at..run.end()).zip(run.slots().iter()).rev());
            slots.find(|(_, slot)| self.usable(*slot)).map(|(page, _)| page)
        })
    }
}

impl State {
    /// The longest length, at most `limit`, at which every component can be resumed from these tiers: the largest
    /// number in all their sets. Each only ever goes down, and all agree on 0.
    pub fn resumable(&self, nodes: &[u32], tiers: u8, limit: u32) -> u32 {
        let mut length = limit;
        loop {
            let before = length;
            for c in self.slotted() {
                length = self.components[c]
                    .family
                    .reach(&There { state: self, nodes, component: c, tiers }, length);
            }
            if length == before || length == 0 {
                return length;
            }
        }
    }

    pub fn reach_of(&self, component: usize, nodes: &[u32], tiers: u8, limit: u32) -> u32 {
        self.components[component].family.reach(&There { state: self, nodes, component, tiers }, limit)
    }
}
