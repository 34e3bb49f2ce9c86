//! Moves between tiers: what to write down or fetch, and the actions that say so.

use std::collections::BTreeSet;

use crate::core::{Core, For, group};
use crate::digest::Digest;
use crate::families::Shape;
use crate::names::{Kind, Name, Phase, Reason, Tier};
use crate::refusal::{Answer, Refusal};
use crate::reserve::pair;
use crate::row::Row;
use crate::runs::{Run, Runs};
use crate::slots::Slot;

/// Bytes for the shell to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub op: u64,
    pub kind: Kind,
    pub component: Name,
    pub tier_from: Tier,
    pub tier_to: Tier,
    pub session: String,
    /// (first slot, first source page, first destination page, count)
    pub runs: Vec<(u32, u32, u32, u32)>,
    pub keys: Vec<Digest>,
    pub owners: Vec<u64>,
    pub positions: Vec<u32>,
}

/// From where to where, and what that is called.
pub(crate) type Way = (Kind, Tier, Tier);

pub(crate) const BACKUP: Way = (Kind::Backup, Tier::Device, Tier::Host);
pub(crate) const OFFLOAD: Way = (Kind::Offload, Tier::Host, Tier::Storage);
pub(crate) const PREFETCH: Way = (Kind::Prefetch, Tier::Storage, Tier::Host);
pub(crate) const LOAD: Way = (Kind::Load, Tier::Host, Tier::Device);
/// Without a host tier, storage is next to the device.
const DIRECT_DOWN: Way = (Kind::Offload, Tier::Device, Tier::Storage);
pub(crate) const DIRECT_UP: Way = (Kind::Load, Tier::Storage, Tier::Device);

impl Core {
    /// Storage without a host tier before it.
    pub(crate) fn is_direct(&self, component: usize) -> bool {
        let pages = self.config.components[component].pages;
        pages[Tier::Host as usize] == 0 && pages[Tier::Storage as usize] > 0
    }

    /// Where a component's copies in a tier are written down to, when anywhere.
    pub(crate) fn way_down(&self, component: usize, tier: Tier) -> Option<(Way, Tier)> {
        let way = match tier {
            Tier::Device if self.is_direct(component) => DIRECT_DOWN,
            Tier::Device => BACKUP,
            Tier::Host => OFFLOAD,
            Tier::Storage => return None,
        };
        let exists = self.config.components.get(component)?.pages[way.2 as usize] > 0;
        exists.then_some((way, way.2))
    }

    /// Write down what is new on a path, as write-through does: what has been used often enough.
    pub(crate) fn write_down(&mut self, node: u32, asker: &For) -> Answer<()> {
        for c in self.state.slotted().collect::<Vec<_>>() {
            let Some((_, below)) = self.way_down(c, Tier::Device) else { continue };
            let admit = self.config.admit[below as usize - 1];
            self.back_up(node, c, asker, |core, _, slot| {
                !slot.usable(Tier::Storage) && core.uses(slot) >= admit
            })?;
            if below == Tier::Host && self.way_down(c, Tier::Host).is_some() {
                // What failed when it came to the host, or had not been used often enough, may go on now.
                let admit = self.config.admit[Tier::Storage as usize - 1];
                let slots = self.bare(node, c, Tier::Host, Tier::Storage, |_, slot| self.uses(slot) >= admit);
                self.start_move(OFFLOAD, c, &slots, asker)?;
            }
        }
        Ok(())
    }

    pub(crate) fn uses(&self, slot: &Slot) -> u32 {
        self.state.nodes.get(slot.node).map_or(0, |n| n.uses)
    }

    /// Write down, in path order, what is wanted of the pages that are on the device and not in the tier below.
    pub(crate) fn back_up(
        &mut self,
        node: u32,
        component: usize,
        asker: &For,
        wanted: impl Fn(&Core, u32, &Slot) -> bool,
    ) -> Answer<Option<(u64, u32)>> {
        let Some((way, below)) = self.way_down(component, Tier::Device) else { return Ok(None) };
        let slots = self.bare(node, component, Tier::Device, below, |id, slot| wanted(self, id, slot));
        self.start_move(way, component, &slots, asker)
    }

    /// A path's slots with a copy in one tier and none in the other, in order. Most of a path is written down long
    /// since: whole nodes of it are passed by their counts.
    fn bare(
        &self,
        node: u32,
        component: usize,
        has: Tier,
        lacks: Tier,
        wanted: impl Fn(u32, &Slot) -> bool,
    ) -> Vec<u32> {
        let mut slots = Vec::new();
        for record in self.state.path(node).into_iter().filter_map(|id| self.state.nodes.get(id)) {
            let part = &record.parts[component];
            if part.copies[has as usize] > 0 && part.copies[lacks as usize] < part.slots.len() {
                let there = part.slots.iter().filter_map(|(_, s)| Some((s, self.state.slots.get(s)?)));
                let bare = there.filter(|(_, slot)| slot.usable(has) && slot.lacks(lacks));
                slots.extend(bare.filter(|(id, slot)| wanted(*id, slot)).map(|(id, _)| id));
            }
        }
        slots
    }

    /// Fetch to the host what the path has in storage only.
    pub(crate) fn fetch(
        &mut self,
        node: u32,
        component: usize,
        asker: &For,
        failed: &BTreeSet<u32>,
    ) -> Answer<Option<(u64, u32)>> {
        if self.is_direct(component) {
            return Ok(None);
        }
        let stored = |slot: &Slot| slot.best() == Some(Tier::Storage) && slot.lacks(Tier::Host);
        let mut slots = self.component_where(node, component, stored);
        slots.retain(|slot| !failed.contains(slot));
        self.start_move(PREFETCH, component, &slots, asker)
    }

    /// The same over all components: the path's own slots, and of spots what resuming at its end needs.
    pub(crate) fn needed_where(&self, node: u32, wanted: impl Fn(&Slot) -> bool) -> Vec<u32> {
        let paths = self.state.of_shape(Shape::Path).flat_map(|c| self.component_where(node, c, &wanted));
        let spots = self.state.needed_spots(node);
        let is_wanted = |id: &u32| self.state.slots.get(*id).is_some_and(&wanted);
        paths.chain(spots.into_iter().filter(is_wanted)).collect()
    }

    pub(crate) fn path_where(&self, node: u32, wanted: impl Fn(&Slot) -> bool) -> Vec<u32> {
        self.state.path_slots(node).filter(|(_, slot)| wanted(slot)).map(|(id, _)| id).collect()
    }

    pub(crate) fn component_where(
        &self,
        node: u32,
        component: usize,
        wanted: impl Fn(&Slot) -> bool,
    ) -> Vec<u32> {
        let slots = self.state.component_slots(node, component);
        slots.filter(|(_, slot)| wanted(slot)).map(|(id, _)| id).collect()
    }

    /// Open a move of as many leading slots as there is room for. None when there is none.
    pub(crate) fn start_move(
        &mut self,
        way: Way,
        component: usize,
        slots: &[u32],
        asker: &For,
    ) -> Answer<Option<(u64, u32)>> {
        self.start_move_to(way, component, slots, asker, None)
    }

    /// The same, into pages of somebody else's tier.
    pub(crate) fn start_move_to(
        &mut self,
        way: Way,
        component: usize,
        slots: &[u32],
        asker: &For,
        into: Option<&[u32]>,
    ) -> Answer<Option<(u64, u32)>> {
        let (kind, from, to) = way;
        let observed = self.state.is_observed(to);
        let exists = observed || self.config.components[component].pages[to as usize] > 0;
        if slots.is_empty() || !exists || observed && into.is_none() {
            return Ok(None);
        }
        let op = self.number();
        let mut row = Row::new(kind, Phase::Ask);
        (row.op, row.receipt, row.cause) = (Some(op), asker.receipt, asker.cause);
        (row.session, row.request) = (asker.session.clone(), asker.request.clone());
        (row.tier_from, row.tier_to) = (Some(from), Some(to));
        row.component = Some(self.state.name_of(component));
        row.pages = Some(slots.len() as u32);
        let ask = self.emit(row.clone())?;
        row.cause = Some(ask);
        let room = match into {
            Some(pages) => pages.len().min(slots.len()) as u32,
            None => {
                // Writing down never pushes out what was used since: that would trade a newer page for an older one.
                let older_than = slots.iter().filter_map(|s| self.last_use(*s)).min().filter(|_| to > from);
                self.make_room(component, to, slots.len() as u32, older_than, ask)?
            }
        };
        if room < slots.len() as u32 {
            let missing = Some(slots.len() as u32 - room);
            self.emit(Row {
                phase: Phase::Fail,
                reason: Reason::NoRoom,
                op: None,
                pages: missing,
                ..row.clone()
            })?;
        }
        if room == 0 {
            return Ok(None);
        }
        let slots = &slots[..room as usize];
        let pages: Vec<Run> = match into {
            Some(pages) => pages[..room as usize].iter().copied().collect::<Runs>().as_runs().to_vec(),
            None => self.state.pools[component][to as usize].pages.choose(room),
        };
        let action = self.action(op, way, component, slots, &pages, asker)?;
        let deadline =
            (self.config.move_timeout > 0).then(|| self.now.saturating_add(self.config.move_timeout));
        for (slot, _, page, count) in &action.runs {
            self.emit(Row {
                phase: Phase::Reserve,
                slot_from: Some(*slot),
                page_from: Some(*page),
                pages: Some(*count),
                score: deadline,
                ..row.clone()
            })?;
        }
        self.actions.push(action);
        Ok(Some((op, room)))
    }

    /// When a page was last used, as its component counts.
    fn last_use(&self, slot: u32) -> Option<i64> {
        match self.state.spots.get(&slot) {
            Some(spot) => Some(spot.last_use),
            None => self.state.nodes.get(self.state.slots.get(slot)?.node).map(|n| n.last_use),
        }
    }

    fn action(
        &self,
        op: u64,
        (kind, from, to): Way,
        component: usize,
        slots: &[u32],
        pages: &[Run],
        asker: &For,
    ) -> Answer<Action> {
        let session = asker.session.as_deref().unwrap_or("").to_string();
        let mut action = Action {
            op,
            kind,
            component: self.state.name_of(component),
            tier_from: from,
            tier_to: to,
            session,
            runs: Vec::new(),
            keys: Vec::new(),
            owners: Vec::new(),
            positions: Vec::new(),
        };
        let runs: Vec<Run> = group(slots, |_| ()).into_iter().map(|(run, ())| run).collect();
        for (run, target) in pair(&runs, pages) {
            for (i, id) in run.iter().enumerate() {
                let slot = self.state.slot(id).map_err(Refusal::Internal)?;
                let (source, target) = (slot.page(from), target + i as u32);
                match action.runs.last_mut() {
                    Some((s, a, b, n)) if *s + *n == id && *a + *n == source && *b + *n == target => *n += 1,
                    _ => action.runs.push((id, source, target, 1)),
                }
                action.keys.push(self.digest_of(id));
                action.owners.push(self.state.slots.owner(id));
                action.positions.push(slot.position);
            }
        }
        Ok(action)
    }
}
