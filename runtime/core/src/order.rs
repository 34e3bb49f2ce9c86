//! Eviction order, kept as nodes change. LRU: the key is (last use, deeper first, node), so that nothing
//! depends on the order of a hash table.
//!
//! Only nodes without copies below them stand here, so taking the first page from the end of the first node
//! never cuts a path in the middle of a tier.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::names::Tier;
use crate::state::State;

pub type Rank = (i64, Reverse<u32>, u32);

#[derive(Clone, Debug, Default)]
struct Queue {
    open: BTreeSet<Rank>,
    /// The same for nodes that are locked or leased: what eviction passes over.
    held: BTreeSet<Rank>,
    /// Where each node stands now, by node number.
    place: Vec<Option<(Rank, bool)>>,
}

#[derive(Clone, Debug, Default)]
pub struct Order {
    queues: [Queue; 3],
}

impl Order {
    /// A node has changed, or is gone.
    pub fn refresh(&mut self, state: &State, node: u32) {
        for tier in Tier::ALL {
            let queue = &mut self.queues[*tier as usize];
            if queue.place.len() <= node as usize {
                queue.place.resize(node as usize + 1, None);
            }
            let now = place(state, node, *tier);
            let before = std::mem::replace(&mut queue.place[node as usize], now);
            if before == now {
                continue;
            }
            if let Some((rank, held)) = before {
                queue.side(held).remove(&rank);
            }
            if let Some((rank, held)) = now {
                queue.side(held).insert(rank);
            }
        }
    }

    /// Candidates in order, first victim first.
    pub fn open(&self, tier: Tier) -> impl Iterator<Item = Rank> + '_ {
        self.queues[tier as usize].open.iter().copied()
    }

    /// Held nodes that would have gone before `rank`.
    pub fn passed_over(&self, tier: Tier, rank: Rank) -> impl Iterator<Item = Rank> + '_ {
        self.queues[tier as usize].held.range(..rank).copied()
    }

    pub fn check(&self, state: &State) -> Result<(), String> {
        for tier in Tier::ALL {
            let queue = &self.queues[*tier as usize];
            let mut counts = (0, 0);
            for (id, _) in state.nodes.iter() {
                let Some((rank, held)) = place(state, id, *tier) else { continue };
                let side = if held { &queue.held } else { &queue.open };
                if !side.contains(&rank) {
                    return Err(format!("node {id} is missing in the {} order", tier.name()));
                }
                if held { counts.1 += 1 } else { counts.0 += 1 }
            }
            if (queue.open.len(), queue.held.len()) != counts {
                return Err(format!("the {} order lists nodes that are not candidates", tier.name()));
            }
        }
        Ok(())
    }
}

impl Queue {
    fn side(&mut self, held: bool) -> &mut BTreeSet<Rank> {
        if held { &mut self.held } else { &mut self.open }
    }
}

fn place(state: &State, node: u32, tier: Tier) -> Option<(Rank, bool)> {
    let record = state.nodes.get(node)?;
    let t = tier as usize;
    let candidate = record.copies[t] > 0 && record.kids_with[t] == 0;
    candidate.then(|| ((record.last_use, Reverse(record.start), node), record.is_held(tier)))
}
