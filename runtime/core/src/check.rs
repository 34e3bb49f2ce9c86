//! Proof that the state is sound: each invariant counted again from the records it follows from.

use std::collections::HashMap;

use crate::core::Core;
use crate::names::Tier;
use crate::records::{NONE, Node};
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
        self.check_holds()
    }

    fn check_hash(&self) -> Applied {
        let parts = [
            self.namespaces.rehash(),
            self.nodes.rehash(),
            self.slots.rehash(),
            self.sessions.rehash(),
            self.receipts.rehash(),
            self.leases.rehash(),
            self.ops.rehash(),
            self.config_hash(),
        ];
        let whole = parts.iter().fold(0, |sum: u128, part| sum.wrapping_add(*part));
        hold!(whole == self.hash(), "state_hash {:032x} is not the records' {whole:032x}", self.hash());
        Ok(())
    }

    /// No page is used twice or lost: free + used + fenced = capacity.
    fn check_pages(&self) -> Applied {
        for tier in Tier::ALL {
            let t = *tier as usize;
            let (mut users, mut used, mut fenced) = (HashMap::new(), 0, 0);
            for (id, slot) in self.slots.iter() {
                let (has, awaits) = (slot.has(*tier), slot.awaits(*tier));
                hold!(!(has && awaits), "slot {id} has and awaits a copy on {}", tier.name());
                hold!(
                    (slot.page[t] == NONE) != (has || awaits),
                    "slot {id} has a page of {} without a copy",
                    tier.name()
                );
                if slot.page[t] == NONE {
                    continue;
                }
                used += has as u32;
                fenced += awaits as u32;
                let other = users.insert(slot.page[t], id);
                hold!(
                    other.is_none(),
                    "page {} of {} is used by slots {other:?} and {id}",
                    slot.page[t],
                    tier.name()
                );
                hold!(
                    self.pools[t].pages.is_taken(slot.page[t]),
                    "slot {id} uses a free page of {}",
                    tier.name()
                );
            }
            let pool = &self.pools[t];
            hold!(
                fenced == pool.fenced,
                "{} pages of {} are fenced, counted {}",
                fenced,
                tier.name(),
                pool.fenced
            );
            hold!(
                used + fenced == pool.pages.taken(),
                "{} pages of {} leaked",
                pool.pages.taken() - used - fenced,
                tier.name()
            );
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
                hold!(self.slots.get(*slot).is_some(), "operation {id} names slot {slot}, which is gone");
                *writers.entry((*slot, op.tier_to)).or_default() += 1;
                if let Some(from) = op.tier_from {
                    *readers.entry((*slot, from)).or_default() += 1;
                }
            }
        }
        for (id, slot) in self.slots.iter() {
            for tier in Tier::ALL {
                let writing = writers.get(&(id, *tier)).copied().unwrap_or(0);
                hold!(
                    writing == slot.awaits(*tier) as u32,
                    "slot {id} has {writing} writers on {}",
                    tier.name()
                );
                let reading = readers.get(&(id, *tier)).copied().unwrap_or(0);
                hold!(
                    reading == slot.readers[*tier as usize] as u32,
                    "slot {id} has {reading} readers on {}",
                    tier.name()
                );
                hold!(
                    reading == 0 || slot.has(*tier),
                    "slot {id} is read on {}, where it is not",
                    tier.name()
                );
            }
            hold!(slot.bad & !slot.here == 0, "slot {id} has damaged copies that are not there");
            hold!(slot.node != NONE || slot.awaits(Tier::Device), "slot {id} belongs to nobody");
        }
        Ok(())
    }

    fn check_tree(&self) -> Applied {
        let mut in_nodes = 0;
        let (mut kids, mut kids_with) = (HashMap::<u32, u32>::new(), HashMap::<(u32, Tier), u32>::new());
        for (id, node) in self.nodes.iter() {
            if node.parent == NONE {
                hold!(node.slots.is_empty() && node.start == 0, "root {id} has pages");
                continue;
            }
            hold!(!node.slots.is_empty(), "node {id} is empty");
            let parent = self.node(node.parent)?;
            hold!(
                parent.end() == node.start,
                "node {id} starts at {}, its parent ends at {}",
                node.start,
                parent.end()
            );
            hold!(parent.namespace == node.namespace, "node {id} left its namespace");
            *kids.entry(node.parent).or_default() += 1;
            for tier in Tier::ALL {
                *kids_with.entry((node.parent, *tier)).or_default() += node.has_below(*tier) as u32;
            }
        }
        for (id, node) in self.nodes.iter() {
            hold!(
                node.kids == kids.get(&id).copied().unwrap_or(0),
                "node {id} counts {} children",
                node.kids
            );
            let (mut copies, mut bad) = ([0; 3], 0);
            for (i, slot) in node.slots.iter().enumerate() {
                let record = self.slot(slot)?;
                hold!(record.node == id, "slot {slot} is in node {id} but says {}", record.node);
                hold!(record.position == node.start + i as u32, "slot {slot} is at the wrong position");
                Tier::ALL.iter().for_each(|t| copies[*t as usize] += record.has(*t) as u32);
                bad += record.bad.count_ones();
                in_nodes += 1;
            }
            hold!(
                copies == node.copies && bad == node.bad,
                "node {id} counts copies {:?}, has {copies:?}",
                node.copies
            );
            for tier in Tier::ALL {
                let with = kids_with.get(&(id, *tier)).copied().unwrap_or(0);
                hold!(
                    node.kids_with[*tier as usize] == with,
                    "node {id} miscounts children on {}",
                    tier.name()
                );
            }
        }
        let named = self.slots.iter().filter(|(_, slot)| slot.node != NONE).count();
        hold!(named == in_nodes, "{named} slots name a node, nodes have {in_nodes}");
        Ok(())
    }

    /// Locks, leases and sessions hold exactly the paths that their records name.
    fn check_holds(&self) -> Applied {
        let mut expected: HashMap<u32, [u32; 5]> = HashMap::new();
        let mut hold = |node: u32, what: usize| -> Applied {
            let mut at = node;
            while at != NONE {
                expected.entry(at).or_default()[what] += 1;
                at = self.node(at)?.parent;
            }
            Ok(())
        };
        self.receipts.iter().try_for_each(|(_, r)| hold(r.node, 3))?;
        self.leases.iter().try_for_each(|(_, l)| hold(l.node, l.tier as usize))?;
        self.sessions.iter().filter(|(_, s)| s.node != NONE).try_for_each(|(_, s)| hold(s.node, 4))?;
        let mut leased = [0; 3];
        for (id, node) in self.nodes.iter() {
            let counts = |n: &Node| [n.leases[0], n.leases[1], n.leases[2], n.locks, n.sessions];
            let want = expected.get(&id).copied().unwrap_or_default();
            hold!(counts(node) == want, "node {id} is held {:?}, records say {want:?}", counts(node));
            (0..3).for_each(|t| leased[t] += if node.leases[t] > 0 { node.slots.len() } else { 0 });
        }
        let counted = [self.pools[0].leased, self.pools[1].leased, self.pools[2].leased];
        hold!(leased == counted, "leased pages are {leased:?}, counted {counted:?}");
        Ok(())
    }
}

impl Core {
    pub fn check(&self) -> Applied {
        self.state.check()?;
        self.keys.check(&self.state)?;
        self.order.check(&self.state)?;
        for receipt in self.live.keys() {
            hold!(self.state.receipts.get(receipt).is_some(), "lock {receipt} is live without a record");
        }
        hold!(self.live.len() == self.state.receipts.count(), "a lock has a record and is not live");
        for (id, node) in self.state.nodes.iter() {
            let last = node.slots.iter().next_back().and_then(|s| self.state.slots.get(s));
            let stale = node.parent != NONE && node.is_unnamed() && last.is_some_and(|s| s.is_gone());
            hold!(!stale, "node {id} has nothing, is named by nobody, and is still there");
        }
        Ok(())
    }
}
