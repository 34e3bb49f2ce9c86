//! Finding what the cache has, and why the rest is not there.

use std::sync::Arc;

use crate::core::{Core, ROOT};
use crate::digest::{Digest, page_digest};
use crate::keys::{Walk, common_tokens};
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::{NONE, Slot};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;

#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    pub node: u32,
    pub pages: u32,
    /// Of them, by fastest tier.
    pub by_tier: [u32; 3],
    pub miss: Miss,
    pub seq: u64,
    pub receipt: u64,
}

/// Why the first page after a match is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    pub reason: Reason,
    pub offset: i64,
    pub lost_seq: u64,
}

/// (first slot, first device page, count)
pub type DeviceRun = (u32, u32, u32);

/// (generation << 32 | slot, page in the tier's pool, position, digest)
pub type Copy = (u64, u32, u32, Digest);

impl Core {
    pub fn look(&mut self, session: &str, request: &str, tokens: &[u32]) -> Answer<Match> {
        self.known(session)?;
        let walk = self.keys.walk(&self.state, ROOT, tokens);
        let (pages, by_tier) = self.restorable(&walk, u32::MAX);
        let miss = self.explain(session, tokens, &walk, pages);
        let node = walk.nodes.iter().copied().find(|n| self.state.path_pages(*n) >= pages);
        let node = if pages == 0 { ROOT } else { node.unwrap_or(ROOT) };
        let seq = self.tell_match(Phase::Look, session, request, tokens, node, by_tier, &miss)?;
        Ok(Match { node, pages, by_tier, miss, seq, receipt: 0 })
    }

    pub fn acquire(&mut self, session: &str, request: &str, tokens: Arc<[u32]>, grid: u32) -> Answer<Match> {
        let name = self.known(session)?;
        if grid == 0 {
            return Err(Refusal::BadArgument("grid is 0 pages; it must be at least 1".into()));
        }
        let walk = self.keys.walk(&self.state, ROOT, &tokens);
        let (found, _) = self.restorable(&walk, u32::MAX);
        let miss = self.explain(session, &tokens, &walk, found);
        let (pages, by_tier) = self.restorable(&walk, found / grid * grid);
        let node = self.cut(&walk.nodes, pages)?;
        let seq = self.tell_match(Phase::Acquire, session, request, &tokens, node, by_tier, &miss)?;
        let receipt = self.lock(node, Some(name.clone()), Some(request.into()), seq, tokens.clone())?;
        self.prompts.insert(name, tokens);
        self.settle()?;
        Ok(Match { node, pages, by_tier, miss, seq, receipt })
    }

    pub fn table(&self, receipt: u64) -> Answer<Vec<DeviceRun>> {
        let node = self.receipt_node(receipt)?;
        Ok(self.device_runs(node, 0, u32::MAX))
    }

    pub fn path_keys(&self, receipt: u64) -> Answer<Vec<Digest>> {
        let node = self.receipt_node(receipt)?;
        Ok(self.state.path_slots(node).map(|(_, slot)| slot.digest).collect())
    }

    /// The locked path's copies on the device, gaps or not.
    pub fn copies(&self, receipt: u64) -> Answer<Vec<Copy>> {
        let slots = self.state.path_slots(self.receipt_node(receipt)?);
        let there = slots.filter(|(_, slot)| slot.usable(Tier::Device));
        Ok(there.map(|(id, slot)| self.copy(id, slot, Tier::Device)).collect())
    }

    /// Every settled copy in a tier; with `session`, only those on its path.
    pub fn resident(&self, tier: Tier, session: Option<&str>) -> Answer<Vec<Copy>> {
        let node = match session {
            Some(name) => Some(self.session_path(&self.known(name)?).0),
            None => None,
        };
        let settled = |(id, slot): (u32, &Slot)| slot.usable(tier).then(|| self.copy(id, slot, tier));
        Ok(match node {
            Some(node) => self.state.path_slots(node).filter_map(settled).collect(),
            None => self.state.slots.iter().filter_map(settled).collect(),
        })
    }

    fn copy(&self, id: u32, slot: &Slot, tier: Tier) -> Copy {
        let owner = (self.state.slots.generation(id) as u64) << 32 | id as u64;
        (owner, slot.page[tier as usize], slot.position, slot.digest)
    }

    /// Device pages of the path to `node`, from page `from` on, as far as they are there without a gap.
    pub(crate) fn device_runs(&self, node: u32, from: u32, to: u32) -> Vec<DeviceRun> {
        let mut runs: Vec<DeviceRun> = Vec::new();
        let slots = self.state.path_slots(node).skip(from as usize).take((to - from) as usize);
        for (id, slot) in slots.take_while(|(_, slot)| slot.usable(Tier::Device)) {
            let page = slot.page[Tier::Device as usize];
            match runs.last_mut() {
                Some((s, p, n)) if *s + *n == id && *p + *n == page => *n += 1,
                _ => runs.push((id, page, 1)),
            }
        }
        runs
    }

    /// Leading pages of a walk, at most `limit`, that some tier can give; and by which tier.
    fn restorable(&self, walk: &Walk, limit: u32) -> (u32, [u32; 3]) {
        let (mut pages, mut by_tier) = (0, [0; 3]);
        let limit = limit.min(walk.pages);
        for node in walk.nodes.iter().filter_map(|n| self.state.nodes.get(*n)) {
            let whole = node.slots.len();
            if node.bad == 0 && node.copies[0] == whole && pages + whole <= limit {
                pages += whole;
                by_tier[0] += whole;
                continue;
            }
            for slot in node.slots.iter() {
                let best = self.state.slots.get(slot).and_then(|s| s.best());
                let Some(tier) = best.filter(|_| pages < limit) else { return (pages, by_tier) };
                pages += 1;
                by_tier[tier as usize] += 1;
            }
        }
        (pages, by_tier)
    }

    fn explain(&self, session: &str, tokens: &[u32], walk: &Walk, pages: u32) -> Miss {
        let miss = |reason| Miss { reason, offset: -1, lost_seq: 0 };
        let page = self.page();
        let at = pages as usize * page;
        if at + page > tokens.len() {
            return miss(if at == tokens.len() { Reason::None } else { Reason::BelowPage });
        }
        let lost = |seq, why| {
            let reason = match why {
                Reason::Failed | Reason::Damaged | Reason::Timeout => Reason::LoadFailed,
                _ => Reason::Evicted,
            };
            Miss { lost_seq: seq, ..miss(reason) }
        };
        if pages < walk.pages {
            // The page's slot stands in the tree, but nothing usable is in it.
            let node = walk.nodes.iter().filter_map(|n| self.state.nodes.get(*n)).find(|n| n.end() > pages);
            let slot = node.and_then(|n| n.slots.get(pages - n.start)).and_then(|s| self.state.slots.get(s));
            return match slot {
                Some(slot) if slot.coming != 0 => miss(Reason::PendingWrite),
                Some(slot) if slot.bad != 0 => miss(Reason::LoadFailed),
                Some(slot) if slot.lost > 0 => lost(slot.lost, slot.lost_why),
                _ => miss(Reason::Unknown),
            };
        }
        if self.is_being_computed(tokens, pages) {
            return miss(Reason::PendingWrite);
        }
        if let Some((seq, why)) =
            self.ghosts.find(&page_digest(&self.digest_at(walk), &tokens[at..at + page]))
        {
            return lost(seq, why);
        }
        self.compare_with_earlier(session, tokens, pages)
    }

    fn compare_with_earlier(&self, session: &str, tokens: &[u32], pages: u32) -> Miss {
        let miss = |reason| Miss { reason, offset: -1, lost_seq: 0 };
        let record = self.state.sessions.get(session);
        let own = self.prompts.get(session).map(|p| (p, record));
        let parent = || {
            let name = record?.parent.as_deref()?;
            Some((self.prompts.get(name)?, self.state.sessions.get(name)))
        };
        let Some((earlier, owner)) = own.or_else(parent) else { return miss(Reason::NeverStored) };
        let same = common_tokens(earlier, tokens);
        let page = self.page();
        if same / page > pages as usize {
            // The earlier path had this very page. Either it was never committed, or we forgot who took it.
            let committed = owner.filter(|s| s.node != NONE).map_or(0, |s| self.state.path_pages(s.node));
            return miss(if pages >= committed { Reason::NeverStored } else { Reason::Unknown });
        }
        if same / page == pages as usize && same < earlier.len() {
            return Miss { offset: same as i64, ..miss(Reason::Diverged) };
        }
        miss(Reason::NeverStored)
    }

    /// Digest of the last page of a walk.
    pub(crate) fn digest_at(&self, walk: &Walk) -> Digest {
        let Some(node) = self.state.nodes.get(walk.node).filter(|n| n.parent != NONE) else {
            return self.root_digest;
        };
        let slot = node.slots.get(walk.pages - 1 - node.start).and_then(|s| self.state.slots.get(s));
        slot.map_or(self.root_digest, |s| s.digest)
    }

    /// Another request has reserved pages for these very tokens and has not committed yet.
    fn is_being_computed(&self, tokens: &[u32], pages: u32) -> bool {
        let end = (pages as usize + 1) * self.page();
        self.state.ops.iter().filter(|(_, op)| op.kind == Kind::Alloc).any(|(_, op)| {
            let Some(receipt) = op.receipt else { return false };
            let Some(live) = self.live.get(&receipt) else { return false };
            let held = self.state.receipts.get(&receipt).map_or(0, |r| self.state.path_pages(r.node));
            let reserved = held..held + op.slots.len() as u32;
            reserved.contains(&pages) && live.tokens.get(..end) == tokens.get(..end)
        })
    }

    #[allow(clippy::too_many_arguments)] // one row, said once
    fn tell_match(
        &mut self,
        phase: Phase,
        session: &str,
        request: &str,
        tokens: &[u32],
        node: u32,
        by_tier: [u32; 3],
        miss: &Miss,
    ) -> Answer<u64> {
        let mut row = Row::new(Kind::Match, phase);
        (row.session, row.request) = (Some(session.into()), Some(request.into()));
        (row.namespace, row.node) = (Some(0), Some(node));
        row.tokens = Some(tokens.len() as i64);
        row.pages = Some(by_tier.iter().sum());
        row.end_page = row.pages;
        row.hit_tokens = Some(by_tier.map(|pages| (pages * self.state.page_size) as i64));
        row.reason = miss.reason;
        row.cause = (miss.lost_seq > 0).then_some(miss.lost_seq);
        row.score = (miss.offset >= 0).then_some(miss.offset);
        self.emit(row)
    }
}
