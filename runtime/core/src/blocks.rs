//! Which slot is believed to be in each page of a device that the engine owns, or is being loaded into it. Kept beside
//! the state, by the rows that change it; empty where the device is ours.

use hashbrown::HashTable;

use crate::chunks::Chunks;
use crate::mixer::fold;
use crate::names::{Kind, Phase, Tier};
use crate::records::NONE;
use crate::row::Row;
use crate::state::State;

#[derive(Default)]
pub struct Blocks {
    slots: HashTable<(Place, u32)>,
    /// The place by which each slot stands there.
    places: Chunks<Option<Place>>,
}

/// A component, and a page of its device.
type Place = (u8, u32);

fn hash((component, page): &Place) -> u64 {
    fold((*component as u64) << 32 | *page as u64, 0x9E37_79B9_7F4A_7C15)
}

impl Blocks {
    pub fn slot(&self, component: usize, block: u32) -> Option<u32> {
        self.at(&(component as u8, block))
    }

    /// The row has been applied.
    pub fn follow(&mut self, state: &State, row: &Row) {
        match row.kind {
            Kind::Insert if row.phase == Phase::Heal => {
                // What came took the place of a slot that the node had already.
                let count = row.slots().count;
                let end = row.end_page.unwrap_or(0);
                let node = row.node.and_then(|node| state.nodes.get(node));
                let component = row.component.and_then(|name| state.component(name));
                let Some((node, component)) = node.zip(component) else { return };
                for placed in node.parts[component].slots.between(end.saturating_sub(count), end) {
                    placed.slots().iter().for_each(|slot| self.place(state, slot));
                }
            }
            Kind::Insert | Kind::Evict | Kind::Load => {
                row.slots().iter().for_each(|slot| self.place(state, slot));
            }
            _ => {}
        }
    }

    fn at(&self, place: &Place) -> Option<u32> {
        self.slots.find(hash(place), |(known, _)| known == place).map(|(_, slot)| *slot)
    }

    fn put(&mut self, place: Place, slot: u32) {
        match self.slots.find_mut(hash(&place), |(known, _)| *known == place) {
            Some(found) => found.1 = slot,
            None => drop(self.slots.insert_unique(hash(&place), (place, slot), |(known, _)| hash(known))),
        }
    }

    /// Unless another has come there since.
    fn take(&mut self, place: Place, slot: u32) {
        if let Ok(found) = self.slots.find_entry(hash(&place), |known| *known == (place, slot)) {
            found.remove();
        }
    }

    fn place(&mut self, state: &State, id: u32) {
        let slot = state.slots.get(id).filter(|slot| !slot.lacks(Tier::Device));
        let after = slot.map(|slot| (slot.component, slot.page(Tier::Device)));
        let before = self.places.get(id).copied().flatten();
        if before == after {
            return;
        }
        if let Some(place) = before {
            self.take(place, id);
        }
        if let Some(place) = after {
            self.put(place, id);
        }
        *self.places.entry(id) = after;
    }

    pub fn check(&self, state: &State) -> Result<(), String> {
        let observed = state.is_observed(Tier::Device);
        let believed = state.slots.iter().filter(|(_, slot)| observed && !slot.lacks(Tier::Device));
        let mut count = 0;
        for (id, slot) in believed {
            let page = slot.page(Tier::Device);
            let known = self.slot(slot.component as usize, page);
            if page == NONE || known != Some(id) {
                return Err(format!("slot {id} is in block {page}, where {known:?} should be"));
            }
            count += 1;
        }
        if self.slots.len() != count {
            return Err(format!("{} blocks are said to have slots, {count} have", self.slots.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use crate::command::{Command, Reply};
    use crate::config::{ComponentConfig, Config};
    use crate::core::Core;
    use crate::names::{FamilyName, KeyKind};
    use crate::policy::Lru;

    fn core() -> Core {
        let config = Config {
            engine: "e".into(),
            epoch: "1".into(),
            namespace: "m".into(),
            key: KeyKind::Tokens,
            page_size: 1,
            components: vec![ComponentConfig {
                name: "full".into(),
                family: FamilyName::Full,
                follows: String::new(),
                number: 0,
                pages: [0, 8, 0],
                page_bytes: 1,
            }],
            observed_device: true,
            secret: Vec::new(),
            wall_offset: 0,
            now: 0,
            write_through: false,
            policies: ["lru", "lru", "lru"].map(String::from),
            admit: [1, 1],
            move_timeout: 0,
            defer_digests: false,
            pin_permille: 500,
            ghosts: 0,
            log_rows: 0,
        };
        Core::new(config, &mut |_| Ok(Box::new(Lru))).unwrap()
    }

    #[test]
    fn a_block_is_known_from_when_it_is_told_until_it_is_forgotten_and_check_proves_it() {
        let mut core = core();
        let name = || Cow::Borrowed("s");
        let open = Command::OpenSession {
            session: "s".into(),
            parent: String::new(),
            group: String::new(),
            priority: 0,
        };
        core.run(1, &open).unwrap();
        let key: Cow<[u8]> = Cow::Owned([1u32, 2, 3].iter().flat_map(|token| token.to_le_bytes()).collect());
        let ask = Command::Acquire {
            session: name(),
            request: name(),
            namespace: 0,
            skip: 0,
            key: key.clone(),
            grid: 1,
        };
        let Reply::Match(found) = core.run(2, &ask).unwrap() else { panic!() };
        let blocks = vec![70, 5, 6];
        let observe =
            Command::Observe { receipt: found.receipt, key, skip: 0, start: 0, blocks, component: 0 };
        core.run(3, &observe).unwrap();
        let slot = core.blocks.slot(0, 5).unwrap();
        assert_eq!(core.state.slots.get(slot).unwrap().position, 1);
        assert_eq!(core.check(), Ok(()));

        let forget = Command::Forget { blocks: vec![5, 9], component: 0 };
        assert_eq!(core.run(4, &forget), Ok(Reply::Number(1)));
        assert_eq!(core.blocks.slot(0, 5), None);
        assert_eq!(core.check(), Ok(()));

        let kept = core.blocks.slot(0, 6).unwrap();
        core.blocks.take((0, 6), kept);
        assert!(core.check().is_err(), "one is missing");
        core.blocks.put((0, 6), slot);
        assert!(core.check().is_err(), "one is another's");
        core.blocks.put((0, 6), kept);
        assert_eq!(core.check(), Ok(()));
        core.blocks.put((0, 8), kept);
        assert!(core.check().is_err(), "one is too many");
    }
}
