//! An engine on a device of its own.

use _core::command::{Command, Reply};

use super::{PAGE, Step, World, bytes};

impl World {
    /// The engine tells what it computed into its own pages.
    pub(super) fn observe(&mut self, index: usize, step: &Step) {
        let request = &self.requests[index];
        let (tokens, namespace, held, receipt) =
            (request.tokens.clone(), request.namespace, request.held, request.receipt);
        let start = if step.b.is_multiple_of(4) { held.min(step.c % 4) } else { held };
        let count = (step.b % 9).min((tokens.len() / PAGE) as u32 - start);
        let blocks: Vec<u32> = (0..count).map(|i| self.next_block + i + (i > step.c % 5) as u32).collect();
        self.next_block += 12;
        for c in self.core.state.slotted().collect::<Vec<_>>() {
            let name = self.core.state.components[c].name;
            for (i, block) in blocks.iter().enumerate() {
                let tag = self.digest_of(namespace, &tokens, start + i as u32);
                self.shell.pages[0].insert((name, *block), tag);
            }
            let (key, blocks) = (bytes(&tokens), blocks.clone());
            let command = Command::Observe { receipt, key, skip: 0, start, blocks, component: c as u32 };
            let Reply::Commit(_) = self.run(command).unwrap() else { panic!() };
            self.committed(index, start + count);
        }
    }

    pub(super) fn forget(&mut self, step: &Step) {
        if !self.observed || self.next_block == 0 {
            return;
        }
        let from = step.a % self.next_block;
        let slotted: Vec<usize> = self.core.state.slotted().collect();
        let component = slotted[step.b as usize % slotted.len()] as u32;
        let blocks: Vec<u32> = (from..from + step.c % 8).collect();
        let name = self.core.state.components[component as usize].name;
        self.run(Command::Forget { blocks: blocks.clone(), component }).unwrap();
        for block in blocks {
            self.shell.pages[0].insert((name, block), [0xBB; 32]);
        }
    }
}
