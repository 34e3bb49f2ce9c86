//! Where the pages of a held path lie: what an engine reads of a lock, and of a tier.

use crate::core::Core;
use crate::digest::Digest;
use crate::families::Shape;
use crate::names::Tier;
use crate::refusal::Answer;
use crate::slots::Slot;

/// (first slot, first device page, count)
pub type DeviceRun = (u32, u32, u32);

/// (generation << 32 | slot, page in the tier's pool, position, digest)
pub type Resident = (u64, u32, u32, Digest);

impl Core {
    pub fn table(&self, receipt: u64, component: usize) -> Answer<Vec<DeviceRun>> {
        let node = self.receipt_node(receipt)?;
        if self.state.shape(component) == Shape::Spot {
            let spots = self.state.receipts.get(&receipt).map(|r| r.spots.clone()).unwrap_or_default();
            return Ok(self.spot_runs(&spots, component));
        }
        Ok(self.device_runs(node, component, 0, u32::MAX))
    }

    pub fn path_keys(&self, receipt: u64) -> Answer<Vec<Digest>> {
        let node = self.receipt_node(receipt)?;
        Ok(self.state.path_slots(node).map(|(id, _)| self.digest_of(id)).collect())
    }

    /// The locked path's copies on the device, gaps or not; of a spot component, the held ones.
    pub fn copies(&self, receipt: u64, component: usize) -> Answer<Vec<Resident>> {
        let node = self.receipt_node(receipt)?;
        let held = self.state.receipts.get(&receipt).map(|r| r.spots.as_slice()).unwrap_or_default();
        let spot = self.state.shape(component) == Shape::Spot;
        let slots = self.state.component_slots(node, component);
        let there = slots.filter(|(id, slot)| slot.usable(Tier::Device) && (!spot || held.contains(id)));
        Ok(there.map(|(id, slot)| self.copy(id, slot, Tier::Device)).collect())
    }

    /// Every settled copy in a tier; with `session`, only those on its path.
    pub fn resident(&self, tier: Tier, session: Option<&str>, component: usize) -> Answer<Vec<Resident>> {
        let node = match session {
            Some(name) => Some(self.session_path(&self.known(name)?).0),
            None => None,
        };
        let settled = |(id, slot): (u32, &Slot)| slot.usable(tier).then(|| self.copy(id, slot, tier));
        Ok(match node {
            Some(node) => self.state.component_slots(node, component).filter_map(settled).collect(),
            None => {
                let mine = self.state.slots.iter().filter(|(_, slot)| slot.component as usize == component);
                mine.filter_map(settled).collect()
            }
        })
    }

    fn copy(&self, id: u32, slot: &Slot, tier: Tier) -> Resident {
        (self.state.slots.owner(id), slot.page(tier), slot.position, self.digest_of(id))
    }

    /// Device pages of the path to `node`, from page `from` on, as far as they are there without a gap.
    pub(crate) fn device_runs(&self, node: u32, component: usize, from: u32, to: u32) -> Vec<DeviceRun> {
        let mut runs: Vec<DeviceRun> = Vec::new();
        for (_, record) in
            self.state.path(node).into_iter().filter_map(|id| Some((id, self.state.nodes.get(id)?)))
        {
            if record.end() <= from {
                continue;
            }
            let placed = record.parts[component].slots.between(from.max(record.start), to.min(record.end()));
            for id in placed.flat_map(|placed| placed.slots().iter()) {
                match self.state.slots.get(id).filter(|slot| slot.usable(Tier::Device)) {
                    Some(slot) => join(&mut runs, id, slot.page(Tier::Device)),
                    None => return runs,
                }
            }
        }
        runs
    }

    pub(crate) fn spot_runs(&self, slots: &[u32], component: usize) -> Vec<DeviceRun> {
        let mine = slots.iter().filter_map(|id| Some((*id, self.state.slots.get(*id)?)));
        let mut mine: Vec<(u32, &Slot)> =
            mine.filter(|(_, s)| s.component as usize == component && s.usable(Tier::Device)).collect();
        mine.sort_by_key(|(_, slot)| slot.position);
        let mut runs = Vec::new();
        mine.into_iter().for_each(|(id, slot)| join(&mut runs, id, slot.page(Tier::Device)));
        runs
    }
}

fn join(runs: &mut Vec<DeviceRun>, slot: u32, page: u32) {
    match runs.last_mut() {
        Some((s, p, n)) if *s + *n == slot && *p + *n == page => *n += 1,
        _ => runs.push((slot, page, 1)),
    }
}
