//! Proof that the state is sound: each invariant counted again from the records it follows from.

use std::collections::HashMap;

use crate::families::Shape;
use crate::names::{Reason, Tier};
use crate::records::{FULL, NONE, Node, Part};
use crate::state::{Applied, State};

macro_rules! hold {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

impl State {
    /// Everything that must always hold, as far as one engine's records can tell.
    pub fn check(&self) -> Applied {
        self.check_hash()?;
        self.check_pages()?;
        self.check_slots()?;
        self.check_tree()?;
        self.check_parts()?;
        self.check_holds()?;
        self.check_spots()
    }

    fn check_hash(&self) -> Applied {
        let slots = self.slots.rehash();
        let parts = [
            self.namespaces.rehash(),
            self.nodes.rehash(),
            slots.0,
            self.spots.rehash(),
            self.sessions.rehash(),
            self.receipts.rehash(),
            self.leases.rehash(),
            self.ops.rehash(),
        ];
        for ((name, kept), whole) in self.hashes().into_iter().zip(parts) {
            hold!(whole == kept, "the hash of {name} is {kept:032x}, the records' {whole:032x}");
        }
        hold!(
            self.seq == 0 || self.config == self.config_hash(),
            "the hash of the configuration is not kept"
        );
        hold!(slots.1 == self.observed_hash(), "the observed hash is not that of the copies");
        Ok(())
    }

    /// No page is used twice or lost: free + used + fenced = capacity.
    fn check_pages(&self) -> Applied {
        for (c, pools) in self.pools.iter().enumerate() {
            for tier in Tier::ALL {
                let (pool, place) = (&pools[*tier as usize], tier.name());
                let (mut users, mut used, mut fenced) = (HashMap::new(), 0, 0);
                for (id, slot) in self.slots.iter().filter(|(_, slot)| slot.component as usize == c) {
                    let (has, awaits) = (slot.has(*tier), slot.awaits(*tier));
                    hold!(!(has && awaits), "slot {id} has and awaits a copy on {place}");
                    let page = slot.page(*tier);
                    if page == NONE {
                        continue;
                    }
                    used += has as u32;
                    fenced += awaits as u32;
                    let other = users.insert(page, id);
                    hold!(other.is_none(), "page {page} of {place} is used by slots {other:?} and {id}");
                    let taken = pool.observed || pool.pages.is_taken(page);
                    hold!(taken, "slot {id} uses a free page of {place}");
                }
                hold!(fenced == pool.fenced, "{fenced} pages of {place} are fenced, counted {}", pool.fenced);
                let taken = pool.pages.taken();
                hold!(
                    pool.observed || used + fenced == taken,
                    "{} of {taken} pages of {place} leaked",
                    taken - used - fenced
                );
                hold!(!pool.observed || taken == 0, "pages of {place} are taken, which is somebody else's");
            }
        }
        Ok(())
    }

    /// Every copy being written or read belongs to exactly the operations that do it.
    fn check_slots(&self) -> Applied {
        let mut writers: HashMap<(u32, Tier), u32> = HashMap::new();
        let mut readers: HashMap<(u32, Tier), u32> = HashMap::new();
        for (id, op) in self.ops.iter() {
            hold!(op.slots.hash() == op.slots.rehash(), "operation {id} has a wrong hash of its slots");
            for slot in op.slots.iter() {
                let Some(record) = self.slots.get(*slot) else {
                    return Err(format!("operation {id} names slot {slot}, which is gone"));
                };
                let same = op.tier_from.is_none() || record.component == op.component;
                hold!(same, "operation {id} moves slot {slot} of another component");
                *writers.entry((*slot, op.tier_to)).or_default() += 1;
                if let Some(from) = op.tier_from {
                    *readers.entry((*slot, from)).or_default() += 1;
                }
            }
        }
        for (id, slot) in self.slots.iter() {
            for tier in Tier::ALL {
                let place = tier.name();
                let writing = writers.get(&(id, *tier)).copied().unwrap_or(0);
                hold!(writing == slot.awaits(*tier) as u32, "slot {id} has {writing} writers on {place}");
                let reading = readers.get(&(id, *tier)).copied().unwrap_or(0);
                hold!(
                    reading == slot.readers[*tier as usize] as u32,
                    "slot {id} has {reading} readers on {place}"
                );
                let there = slot.has(*tier) || self.is_observed(*tier);
                hold!(reading == 0 || there, "slot {id} is read on {place}, where it is not");
            }
            hold!(slot.bad & !slot.here == 0, "slot {id} has damaged copies that are not there");
            hold!(slot.node != NONE || slot.awaits(Tier::Device), "slot {id} belongs to nobody");
            hold!((slot.component as usize) < self.components.len(), "slot {id} is of no component");
        }
        Ok(())
    }

    fn check_tree(&self) -> Applied {
        let mut kids = HashMap::<u32, u32>::new();
        for (id, node) in self.nodes.iter() {
            hold!(node.parts.len() == self.components.len(), "node {id} has {} parts", node.parts.len());
            if node.parent == NONE {
                hold!(node.pages == 0 && node.start == 0, "root {id} has pages");
                continue;
            }
            hold!(node.pages > 0, "node {id} is empty");
            let parent = self.node(node.parent)?;
            let (start, end) = (node.start, parent.end());
            hold!(end == start, "node {id} starts at {start}, its parent ends at {end}");
            hold!(parent.namespace == node.namespace, "node {id} left its namespace");
            *kids.entry(node.parent).or_default() += 1;
        }
        for (id, node) in self.nodes.iter() {
            let expected = kids.get(&id).copied().unwrap_or(0);
            hold!(node.kids == expected, "node {id} counts {} children, has {expected}", node.kids);
        }
        Ok(())
    }

    /// Slots stand where they say, path components everywhere, and every count follows from them.
    fn check_parts(&self) -> Applied {
        let mut kids_with = HashMap::<(u32, usize, Tier), u32>::new();
        for (_, node) in self.nodes.iter().filter(|(_, n)| n.parent != NONE) {
            for (c, part) in node.parts.iter().enumerate() {
                for tier in Tier::ALL.iter().filter(|t| part.has_below(**t)) {
                    *kids_with.entry((node.parent, c, *tier)).or_default() += 1;
                }
            }
        }
        let mut in_nodes = 0;
        for (id, node) in self.nodes.iter() {
            for (c, part) in node.parts.iter().enumerate() {
                hold!(part.slots.hash() == part.slots.rehash(), "node {id} has a wrong hash of its slots");
                let whole = match self.shape(c) {
                    Shape::Path if c == FULL => part.slots.len() == node.pages,
                    Shape::Path | Shape::Spot => part.slots.len() <= node.pages,
                    Shape::Shadow => part.slots.is_empty(),
                };
                hold!(
                    whole,
                    "node {id} of {} pages has {} slots of component {c}",
                    node.pages,
                    part.slots.len()
                );
                in_nodes += part.slots.len() as usize;
                self.check_part(id, node, c, part)?;
                for tier in Tier::ALL {
                    let with = kids_with.get(&(id, c, *tier)).copied().unwrap_or(0);
                    let counted = part.kids_with[*tier as usize];
                    hold!(
                        counted == with,
                        "node {id} counts {counted} children with copies on {}, has {with}",
                        tier.name()
                    );
                }
            }
        }
        let named = self.slots.iter().filter(|(_, slot)| slot.node != NONE).count();
        hold!(named == in_nodes, "{named} slots name a node, nodes have {in_nodes}");
        Ok(())
    }

    fn check_part(&self, id: u32, node: &Node, component: usize, part: &Part) -> Applied {
        let (mut copies, mut bad) = ([0; 3], 0);
        for (page, slot) in part.slots.iter() {
            let record = self.slot(slot)?;
            hold!(record.node == id, "slot {slot} is in node {id} but says {}", record.node);
            let inside = (node.start..node.end()).contains(&page);
            hold!(inside && record.position == page, "slot {slot} is at the wrong position");
            hold!(record.component as usize == component, "slot {slot} is of another component");
            Tier::ALL.iter().for_each(|t| copies[*t as usize] += record.has(*t) as u32);
            bad += record.bad.count_ones();
        }
        let counted = (part.copies, part.bad);
        hold!((copies, bad) == counted, "node {id} counts copies {counted:?}, has {copies:?}, {bad} bad");
        Ok(())
    }

    /// Locks, leases and sessions hold exactly the paths that their records name.
    fn check_holds(&self) -> Applied {
        let mut expected: HashMap<u32, [u32; 6]> = HashMap::new();
        let mut hold = |node: u32, what: usize| -> Applied {
            self.node(node)?;
            self.upward(node).for_each(|(id, _)| expected.entry(id).or_default()[what] += 1);
            Ok(())
        };
        self.receipts.iter().try_for_each(|(_, r)| hold(r.node, 3))?;
        for (_, lease) in self.leases.iter() {
            hold(lease.node, if lease.worth == Reason::None { lease.tier as usize } else { 5 })?;
        }
        self.sessions.iter().filter(|(_, s)| s.node != NONE).try_for_each(|(_, s)| hold(s.node, 4))?;
        let mut leased = [0; 3];
        for (id, node) in self.nodes.iter() {
            let counts = |n: &Node| [n.leases[0], n.leases[1], n.leases[2], n.locks, n.sessions, n.retains];
            let want = expected.get(&id).copied().unwrap_or_default();
            hold!(counts(node) == want, "node {id} is held {:?}, records say {want:?}", counts(node));
            (0..3).for_each(|t| leased[t] += if node.leases[t] > 0 { node.pages } else { 0 });
        }
        let counted = self.pools.get(FULL).map_or([0; 3], |pools| [0, 1, 2].map(|t| pools[t].leased));
        hold!(leased == counted, "leased pages are {leased:?}, counted {counted:?}");
        Ok(())
    }

    /// What is held of spot components is what receipts and leases list, slot by slot.
    fn check_spots(&self) -> Applied {
        let mut expected: HashMap<u32, (u32, [u32; 3])> = HashMap::new();
        for (_, receipt) in self.receipts.iter() {
            receipt.spots.iter().for_each(|slot| expected.entry(*slot).or_default().0 += 1);
        }
        for (_, lease) in self.leases.iter().filter(|(_, lease)| lease.worth == Reason::None) {
            lease
                .spots
                .iter()
                .for_each(|slot| expected.entry(*slot).or_default().1[lease.tier as usize] += 1);
        }
        for (slot, spot) in self.spots.iter() {
            let record = self.slot(*slot)?;
            hold!(
                self.shape(record.component as usize) == Shape::Spot,
                "slot {slot} is of no spot component"
            );
            let want = expected.remove(slot).unwrap_or_default();
            hold!(
                (spot.locks, spot.leases) == want,
                "slot {slot} is held {:?}, records say {want:?}",
                (spot.locks, spot.leases)
            );
        }
        hold!(expected.is_empty(), "slots {:?} are held and are none", expected.keys().collect::<Vec<_>>());
        Ok(())
    }
}
