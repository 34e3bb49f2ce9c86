//! Bringing a locked path up to the device.

use std::collections::BTreeSet;

use crate::core::Core;
use crate::families::Shape;
use crate::moves::{DIRECT_UP, LOAD, PREFETCH};
use crate::names::{Kind, Phase, Reason, Tier};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;

/// How far a path is up, and what moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restore {
    pub ready: u32,
    pub pending: u32,
    pub ops: Vec<u64>,
}

impl Core {
    /// `into`: for a device that the engine owns, its pages for what is to be loaded, in path order.
    pub fn restore(&mut self, receipt: u64, into: Option<&[u32]>) -> Answer<Restore> {
        self.given(receipt)?;
        if into.is_some() != self.state.is_observed(Tier::Device) {
            let whose = if into.is_some() {
                "this runtime owns its device pages: leave `into` out"
            } else {
                "the engine owns its device pages: give `into`, the pages to load into"
            };
            return Err(Refusal::BadArgument(whose.into()));
        }
        if let Some(blocks) = into {
            self.claim(blocks, |_| true)?;
            for c in self.state.slotted().collect::<Vec<_>>() {
                self.forget(blocks, c)?;
            }
        }
        let mut restore = self.bring_to_device(receipt, into)?;
        self.hold_ready(receipt, &mut restore)?;
        self.settle()?;
        Ok(restore)
    }

    /// What is said to be ready is held. A lock lists the windows and checkpoints of its own end; where these did not
    /// come, or another has made them since, it now ends where the device can be resumed, and lists what that needs.
    fn hold_ready(&mut self, receipt: u64, restore: &mut Restore) -> Answer<()> {
        if self.state.of_shape(Shape::Spot).next().is_none() {
            return Ok(());
        }
        let node = self.receipt_node(receipt)?;
        let length = self.state.path_pages(node);
        let sorted = |mut slots: Vec<u32>| {
            slots.sort_unstable();
            slots
        };
        let held = sorted(self.state.receipts.get(&receipt).map(|r| r.spots.clone()).unwrap_or_default());
        if restore.ready == length && sorted(self.state.needed_spots(node)) == held {
            return Ok(());
        }
        // Who has reserved computes on from the lock as it was.
        if restore.pending > 0 || !self.live_of(receipt)?.reservations.is_empty() {
            restore.ready = 0;
            return Ok(());
        }
        let (root, path) = (self.root_of(node), self.state.path(node));
        let end = self.cut(root, &path, restore.ready)?;
        let left: Vec<&[u8]> = (restore.ready..length).map(|page| self.key_at(node, page)).collect();
        let left = left.concat();
        let mut row = Row::new(Kind::Lock, Phase::Extend);
        (row.receipt, row.node, row.end_page) = (Some(receipt), Some(end), Some(restore.ready));
        row.reason = Reason::ComponentGap;
        self.emit(row)?;
        if let Some(live) = self.live_mut(receipt) {
            live.tail = left.into_iter().chain(live.tail.iter().copied()).collect();
            live.from = restore.ready;
            if restore.ready < length {
                live.branch = live.branch.max(length);
            }
        }
        Ok(())
    }

    /// Start what brings the locked path to the device, as far as it can be resumed there.
    pub(crate) fn bring_to_device(&mut self, receipt: u64, into: Option<&[u32]>) -> Answer<Restore> {
        let asker = self.for_receipt(receipt)?;
        let node = self.receipt_node(receipt)?;
        let length = self.state.path_pages(node);
        let mut found = Restore::default();
        // What was given up arrives no more, though somebody may still write it.
        let given_up = self.state.ops.iter().filter(|(_, op)| op.draining);
        let given_up = given_up.flat_map(|(_, op)| op.slots.iter().map(|slot| (*slot, op.tier_to)));
        let given_up: BTreeSet<(u32, Tier)> = given_up.collect();
        for c in self.state.slotted().collect::<Vec<_>>() {
            let needed: Vec<u32> = match self.state.shape(c) {
                Shape::Path => self.state.component_slots(node, c).map(|(id, _)| id).collect(),
                _ => self.needed_of(receipt, c),
            };
            let failed = &self.live_of(receipt)?.failed;
            let (mut load, mut prefetch) = (Vec::new(), Vec::new());
            for id in needed {
                let Some(slot) = self.state.slots.get(id) else { break };
                if slot.usable(Tier::Device) {
                    continue;
                }
                let in_vain = |tier| slot.awaits(tier) && given_up.contains(&(id, tier));
                if in_vain(Tier::Device) || in_vain(Tier::Host) {
                    break;
                } else if slot.awaits(Tier::Device) {
                    found.pending += 1;
                } else if failed.contains(&id) || slot.has(Tier::Device) {
                    break;
                } else if slot.usable(Tier::Host) || self.is_direct(c) && slot.usable(Tier::Storage) {
                    load.push(id);
                } else if slot.awaits(Tier::Host) {
                    found.pending += 1;
                } else if slot.usable(Tier::Storage) && slot.lacks(Tier::Host) {
                    prefetch.push(id);
                } else {
                    break;
                }
            }
            let up = if self.is_direct(c) { DIRECT_UP } else { LOAD };
            for (way, slots) in [(up, load), (PREFETCH, prefetch)] {
                let pages = into.filter(|_| way.2 == Tier::Device);
                if let Some((op, pages)) = self.start_move_to(way, c, &slots, &asker, pages)? {
                    found.ops.push(op);
                    found.pending += pages;
                }
            }
        }
        found.ready = self.state.resumable(&self.state.path(node), Tier::Device.bit(), length);
        Ok(found)
    }

    /// A spot component's slots that a lock holds, in order.
    fn needed_of(&self, receipt: u64, component: usize) -> Vec<u32> {
        let spots = self.state.receipts.get(&receipt).map(|r| r.spots.as_slice()).unwrap_or_default();
        let mine = spots.iter().filter_map(|id| Some((self.state.slots.get(*id)?, *id)));
        let mut mine: Vec<(u32, u32)> =
            mine.filter(|(s, _)| s.component as usize == component).map(|(s, id)| (s.position, id)).collect();
        mine.sort_unstable();
        mine.into_iter().map(|(_, id)| id).collect()
    }
}
