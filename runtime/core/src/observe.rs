//! A device tier that the engine owns: it tells what it put there and what it took away. What we know of it are
//! beliefs: they are hashed apart, nothing is allocated, and nothing of ours is promised on their ground.

use std::collections::{BTreeMap, BTreeSet};

use crate::commit::{Commit, Computed};
use crate::core::Core;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::{FULL, NONE};
use crate::refusal::{Answer, Refusal};
use crate::reserve::pair;
use crate::row::Row;
use crate::runs::{Run, Runs};

impl Core {
    /// The engine's pages `blocks` hold one component's state for the pages of the key from `start` on.
    pub fn observe(
        &mut self,
        receipt: u64,
        key: &[u8],
        skip: u32,
        start: u32,
        blocks: &[u32],
        component: usize,
    ) -> Answer<Commit> {
        self.given(receipt)?;
        if !self.state.is_observed(Tier::Device) {
            return Err(Refusal::BadArgument(
                "this runtime owns its device pages; reserve and commit them".into(),
            ));
        }
        self.claim(blocks, |loads| loads == component)?;
        let computed = self.place(receipt, None, key, skip, start, blocks.len() as u32)?;
        if component != FULL && computed.path.pages < computed.range.end {
            return Err(Refusal::BadArgument("full has to be observed before what goes beside it".into()));
        }
        // What these blocks held before is gone; what of it is this very page is believed again at once.
        self.forget(&self.strangers(&computed, component, blocks), component)?;
        let computed = self.place(receipt, None, key, skip, start, blocks.len() as u32)?;
        let (healed, duplicate, node) = if component == FULL {
            self.observe_full(&computed, key, skip, blocks)?
        } else {
            let (healed, duplicate) =
                self.observe_known(&computed, component, computed.range.start, blocks)?;
            (healed, duplicate, self.cut(computed.path.root, &computed.path.nodes, computed.range.end)?)
        };
        self.conclude(receipt, computed, node, key, skip, (healed, duplicate))
    }

    /// Blocks named together must differ, and none may be the target of a load in flight of these components: each
    /// numbers its device pages for itself.
    pub(crate) fn claim(&self, blocks: &[u32], of: impl Fn(usize) -> bool) -> Answer<()> {
        let mut named = blocks.to_vec();
        named.sort_unstable();
        if named.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Refusal::BadArgument("a block is named twice".into()));
        }
        if named.last() == Some(&NONE) {
            return Err(Refusal::BadArgument(format!("block {NONE} cannot be: the number stands for none")));
        }
        let loads =
            self.state.ops.iter().filter(|(_, op)| op.tier_to == Tier::Device && of(op.component as usize));
        let targets =
            loads.flat_map(|(_, op)| op.slots.iter()).filter_map(|slot| self.state.slots.get(*slot));
        match targets.map(|slot| slot.page(Tier::Device)).find(|page| named.binary_search(page).is_ok()) {
            Some(page) => Err(Refusal::BadArgument(format!("block {page} is being loaded into"))),
            None => Ok(()),
        }
    }

    /// Blocks that are believed to hold something else than what is observed now.
    fn strangers(&self, computed: &Computed, component: usize, blocks: &[u32]) -> Vec<u32> {
        let (end, path) = (computed.path.end(), computed.range.start..);
        let same = |(page, block): &(u32, u32)| {
            // The node in which the path ends may go on, as another path.
            let here = *page < computed.path.pages;
            let slot = self.state.slot_at(end, component, *page).and_then(|s| self.state.slots.get(s));
            here && slot.is_some_and(|slot| slot.page(Tier::Device) == *block)
        };
        path.zip(blocks.iter().copied()).filter(|pair| !same(pair)).map(|(_, block)| block).collect()
    }

    fn observe_full(
        &mut self,
        computed: &Computed,
        key: &[u8],
        skip: u32,
        blocks: &[u32],
    ) -> Answer<(u32, u32, u32)> {
        let (known, fresh) = blocks.split_at(computed.known as usize);
        let (healed, duplicate) = self.observe_known(computed, FULL, computed.range.start, known)?;
        let at = computed.range.start + computed.known;
        let parent = self.cut(computed.path.root, &computed.path.nodes, at)?;
        if fresh.is_empty() {
            return Ok((healed, duplicate, parent));
        }
        let mut digests = self.new_digests(parent, at, computed.range.end, key, skip).into_iter();
        let grows = self.continues(parent, &computed.asker);
        let node = if grows { parent } else { self.state.nodes.choose(1)[0].first };
        let slots = self.state.slots.choose(fresh.len() as u32);
        let pages: Runs = fresh.iter().copied().collect();
        let mut position = at;
        for (run, block) in pair(&slots, pages.as_runs()) {
            position += run.count;
            let mut row = self.observed_row(computed, FULL, run, block, position);
            (row.node, row.parent) = (Some(node), Some(parent));
            row.digests = digests.by_ref().take(run.count as usize).collect();
            self.emit(row)?;
        }
        let key = &key[self.bytes_of(at - skip)..self.bytes_of(computed.range.end - skip)];
        if grows {
            self.keys.append(node, key)
        } else {
            self.keys.add(node, parent, key)
        }
        Ok((healed, duplicate, node))
    }

    /// Pages whose place is known: a slot without a device copy gets one, and a spot that was missing is there again.
    fn observe_known(
        &mut self,
        computed: &Computed,
        component: usize,
        start: u32,
        blocks: &[u32],
    ) -> Answer<(u32, u32)> {
        let (mut healed, mut duplicate) = (0, 0);
        for (page, block) in (start..).zip(blocks) {
            let nodes = &computed.path.nodes;
            let at = nodes.partition_point(|id| self.state.path_pages(*id) <= page);
            let Some(node) = nodes.get(at).copied() else { break };
            let there = self.state.slot_at(node, component, page).and_then(|s| self.state.slots.get(s));
            if there.is_some_and(|slot| !slot.lacks(Tier::Device)) {
                duplicate += 1;
                continue;
            }
            let heals = there.is_some();
            let run = self.state.slots.choose(1)[0];
            let mut row = self.observed_row(computed, component, run, *block, page + 1);
            row.node = Some(node);
            if heals {
                row.phase = Phase::Heal;
            } else if !self.config.defer_digests {
                let full = self.state.slot_at(node, FULL, page).and_then(|s| self.state.slots.get(s));
                row.digests = full.map(|s| s.digest).into_iter().collect();
            }
            self.emit(row)?;
            healed += 1;
        }
        Ok((healed, duplicate))
    }

    fn observed_row(&self, computed: &Computed, component: usize, run: Run, block: u32, end: u32) -> Row {
        let mut row = Row::new(Kind::Insert, Phase::New);
        row.reason = Reason::Observed;
        (row.session, row.request) = (computed.asker.session.clone(), computed.asker.request.clone());
        (row.slot_from, row.page_from, row.pages) = (Some(run.first), Some(block), Some(run.count));
        (row.end_page, row.tier_to) = (Some(end), Some(Tier::Device));
        row.component = Some(self.state.name_of(component));
        row.tokens = (component == FULL).then(|| self.state.tokens(run.count));
        row
    }

    /// The engine has other things in these pages now. Returns the copies that are believed no longer. A move that
    /// reads one of them, or writes it, ends as failed for it, whatever its completion says.
    pub fn forget(&mut self, blocks: &[u32], component: usize) -> Answer<u64> {
        if !self.state.is_observed(Tier::Device) {
            return Err(Refusal::BadArgument(
                "this runtime owns its device pages; nobody else can take them".into(),
            ));
        }
        let mut named: Vec<u32> = blocks.to_vec();
        named.sort_unstable();
        let taken = |s: &u32| self.state.slots.get(*s).is_some_and(|slot| slot.has(Tier::Device));
        let slots = named.iter().filter_map(|block| self.blocks.slot(component, *block)).filter(taken);
        let slots: BTreeSet<u32> = slots.collect();
        let mut by_node: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for slot in &slots {
            by_node.entry(self.state.slots.get(*slot).map_or(0, |s| s.node)).or_default().push(*slot);
        }
        let target = |s: &&u32| {
            self.state.slots.get(**s).is_some_and(|slot| {
                slot.component as usize == component && named.binary_search(&slot.page(Tier::Device)).is_ok()
            })
        };
        for (id, op) in self.state.ops.iter() {
            let (reads, writes) = (op.tier_from == Some(Tier::Device), op.tier_to == Tier::Device);
            let torn = op.slots.iter().filter(|s| reads && slots.contains(s) || writes && target(s));
            self.torn.extend(torn.map(|s| (*id, *s)));
        }
        let like = Row { reason: Reason::Forgotten, ..Row::new(Kind::Evict, Phase::None) };
        for (_, mut slots) in by_node {
            slots.sort_by_key(|s| self.state.slots.get(*s).map_or(0, |slot| slot.position));
            self.drop_copies(&slots, Tier::Device, like.clone())?;
        }
        self.settle()?;
        Ok(slots.len() as u64)
    }
}
