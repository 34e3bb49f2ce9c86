//! Who is evicted next: an ordered queue for each component and tier, kept as nodes and slots change.
//!
//! Path components stand here by node, and only nodes without copies below them: taking pages from the end of the
//! first node never cuts a path in the middle of a tier. Spot components stand here by slot.

use crate::families::Shape;
use crate::names::Tier;
use crate::policy::{Facts, Policy};
use crate::queue::{Queue, Standing};
use crate::records::Node;
use crate::slots::Slot;
use crate::state::State;

/// What befell an item, as far as policies tell it apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Used,
    Evicted,
    Other,
}

pub struct Order {
    /// By component and tier.
    queues: Vec<[Queue; 3]>,
}

impl Order {
    pub fn new(components: usize, make: &mut dyn FnMut(Tier) -> Box<dyn Policy>) -> Self {
        let queues = (0..components).map(|_| std::array::from_fn(|t| Queue::new(make(Tier::ALL[t]))));
        Order { queues: queues.collect() }
    }

    pub fn queue(&self, component: usize, tier: Tier) -> &Queue {
        &self.queues[component][tier as usize]
    }

    pub fn queue_mut(&mut self, component: usize, tier: Tier) -> &mut Queue {
        &mut self.queues[component][tier as usize]
    }

    /// A node has changed, or is gone.
    pub fn refresh_node(&mut self, state: &State, now: i64, node: u32, change: Change) {
        let record = state.nodes.get(node);
        for (c, queues) in self.queues.iter_mut().enumerate() {
            if state.shape(c) != Shape::Path {
                continue;
            }
            for tier in Tier::ALL.iter().filter(|tier| state.has_tier(c, **tier)) {
                let queue = &mut queues[*tier as usize];
                let candidate = record.filter(|record| is_candidate(record, c, *tier));
                let standing = candidate.map(|record| node_standing(state, now, record, c, *tier));
                put(queue, node, standing, record.is_some(), change);
            }
        }
    }

    /// A slot of a spot component has changed, or is gone.
    pub fn refresh_spot(&mut self, state: &State, now: i64, id: u32, change: Change) {
        let slot = state.slots.get(id).filter(|slot| state.shape(slot.component as usize) == Shape::Spot);
        for (c, queues) in self.queues.iter_mut().enumerate() {
            if state.shape(c) != Shape::Spot {
                continue;
            }
            for tier in Tier::ALL.iter().filter(|tier| state.has_tier(c, **tier)) {
                let queue = &mut queues[*tier as usize];
                let here = slot.filter(|slot| slot.component as usize == c && slot.has(*tier));
                let standing = here.and_then(|slot| spot_standing(state, now, id, slot, *tier));
                put(queue, id, standing, slot.is_some(), change);
            }
        }
    }

    pub fn split(&mut self, tail: u32, head: u32) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.split(tail, head));
    }

    pub fn check(&self, state: &State, now: i64) -> Result<(), String> {
        for (c, queues) in self.queues.iter().enumerate() {
            for tier in Tier::ALL {
                let queue = &queues[*tier as usize];
                let mut expected: Vec<(u32, Standing)> = Vec::new();
                if state.shape(c) == Shape::Path {
                    let nodes = state.nodes.iter().filter(|(_, node)| is_candidate(node, c, *tier));
                    expected.extend(nodes.map(|(id, node)| (id, node_standing(state, now, node, c, *tier))));
                } else {
                    let slots = state.slots.iter().filter(|(_, s)| s.component as usize == c && s.has(*tier));
                    expected
                        .extend(slots.filter_map(|(id, slot)| {
                            Some((id, spot_standing(state, now, id, slot, *tier)?))
                        }));
                }
                queue
                    .check(&mut expected.into_iter())
                    .map_err(|why| format!("{} order of component {c}: {why}", tier.name()))?;
            }
        }
        Ok(())
    }
}

fn put(queue: &mut Queue, item: u32, standing: Option<Standing>, exists: bool, change: Change) {
    if standing.is_none() && (change == Change::Evicted || !exists) {
        queue.remove(item, change == Change::Evicted);
    } else {
        queue.place(item, standing, change == Change::Used);
    }
}

fn is_candidate(node: &Node, component: usize, tier: Tier) -> bool {
    let part = &node.parts[component];
    part.copies[tier as usize] > 0 && part.kids_with[tier as usize] == 0
}

/// What somebody asked to keep goes after everything else.
fn class(node: &Node) -> u8 {
    (node.retains > 0) as u8
}

fn node_standing(state: &State, now: i64, node: &Node, component: usize, tier: Tier) -> Standing {
    let mut facts = facts_of(state, now, node, component);
    (facts.created, facts.last_use, facts.uses) = (node.created, node.last_use, node.uses);
    facts.pages = node.parts[component].copies[tier as usize];
    facts.depth = node.start;
    facts.identity = identity(state, node.parts[component].slots.placed().first().map(|p| p.first));
    Standing { facts, class: class(node), held: node.is_held(tier), tie: u32::MAX - node.start }
}

fn spot_standing(state: &State, now: i64, id: u32, slot: &Slot, tier: Tier) -> Option<Standing> {
    let (node, spot) = (state.nodes.get(slot.node)?, state.spots.get(&id)?);
    let mut facts = facts_of(state, now, node, slot.component as usize);
    (facts.created, facts.last_use, facts.uses) = (spot.created, spot.last_use, spot.uses);
    (facts.pages, facts.depth) = (1, slot.position);
    facts.identity = identity(state, Some(id));
    Some(Standing { facts, class: class(node), held: spot.is_held(tier), tie: slot.position })
}

fn facts_of(state: &State, now: i64, node: &Node, component: usize) -> Facts {
    Facts {
        now,
        page_tokens: state.page_size,
        page_bytes: state.components[component].page_bytes,
        priority: node.priority,
        sessions: node.sessions,
        superseded: node.superseded,
        returns_at: node.returns_at,
        ..Facts::default()
    }
}

fn identity(state: &State, slot: Option<u32>) -> u64 {
    let digest = slot.and_then(|slot| state.slots.get(slot)).map(|slot| slot.digest);
    digest.map_or(0, |digest| u64::from_le_bytes(*digest.first_chunk().unwrap_or(&[0; 8])))
}
