//! Whoever moves the bytes: pages hold a tag of their content in place of bytes.

use std::collections::BTreeMap;

use _core::command::Command;
use _core::digest::Digest;
use _core::moves::Action;
use _core::names::{Reason, Tier};
use _core::refusal::Refusal;

use super::{Step, World};

/// Pools of tags by component, and moves that have been asked for and not been answered.
#[derive(Default)]
pub struct Shell {
    pub(super) pages: [BTreeMap<(&'static str, u32), Digest>; 3],
    pub moving: Vec<Action>,
}

impl World {
    pub(super) fn complete(&mut self, step: &Step) {
        if self.shell.moving.is_empty() {
            return;
        }
        let action = self.shell.moving.swap_remove(step.a as usize % self.shell.moving.len());
        let aborted = step.c.is_multiple_of(7);
        if aborted {
            self.run(Command::Abort { op: action.op, reason: Reason::Timeout }).unwrap();
        }
        let (from, to) = (action.tier_from as usize, action.tier_to as usize);
        let mut results = Vec::new();
        for (i, (source, target)) in pages_of(&action).into_iter().enumerate() {
            let tag = self.shell.pages[from][&(action.component, source)];
            let torn = self.observed && from == 0;
            assert!(torn || tag == action.keys[i], "a source was overwritten while it was read");
            let result = if step.b.is_multiple_of(5) { (step.c >> i) as u8 % 3 } else { 1 };
            let written = if result == 1 { tag } else { [0xDD; 32] };
            self.shell.pages[to].insert((action.component, target), written);
            results.push(result);
        }
        let complete = || Command::Complete {
            op: action.op,
            results: results.clone(),
            bytes: 1,
            duration: 1,
            detail: String::new(),
        };
        if results.contains(&2) {
            self.forget_given();
        }
        self.run(complete()).unwrap();
        assert!(matches!(self.run(complete()), Err(Refusal::UnknownOperation(_))));
        if aborted {
            let component = self.core.state.component(action.component).unwrap();
            let there = self.core.resident(action.tier_to, None, component).unwrap();
            assert!(there.iter().all(|copy| !action.owners.contains(&copy.0)), "an aborted move arrived");
        }
    }

    pub(super) fn damage(&mut self, step: &Step) {
        let tier = Tier::ALL[step.a as usize % 3];
        let component = step.c as usize % self.core.state.components.len();
        let copies = self.core.resident(tier, None, component).unwrap();
        let Some((owner, ..)) = copies.get(step.b as usize % copies.len().max(1)) else { return };
        let (slot, generation) = (*owner as u32, (owner >> 32) as u32);
        self.forget_given();
        self.run(Command::Damaged { tier, slot, generation }).unwrap();
        let served = self.core.resident(tier, None, component).unwrap();
        assert!(served.iter().all(|copy| copy.0 != *owner), "a damaged copy is still served");
    }
}

pub fn pages_of(action: &Action) -> Vec<(u32, u32)> {
    action.runs.iter().flat_map(|(_, from, to, n)| (0..*n).map(move |i| (from + i, to + i))).collect()
}
