//! Pages for what a request computes: reserve, then commit or abort.

use crate::core::{Core, ROOT};
use crate::digest::page_digest;
use crate::find::DeviceRun;
use crate::keys::Walk;
use crate::names::{Component, Kind, Phase, Reason, Tier};
use crate::records::Op;
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::runs::{Run, Runs};

#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    pub op: u64,
    pub runs: Vec<DeviceRun>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub node: u32,
    pub inserted: u32,
    pub healed: u32,
    pub duplicate: u32,
    pub runs: Vec<DeviceRun>,
}

impl Core {
    pub fn reserve(&mut self, receipt: u64, pages: u32) -> Answer<Reservation> {
        self.given(receipt)?;
        let asker = self.for_receipt(receipt)?;
        let op = self.number();
        let mut row = Row::new(Kind::Alloc, Phase::Ask);
        (row.op, row.receipt, row.cause) = (Some(op), Some(receipt), asker.cause);
        (row.session, row.request) = (asker.session.clone(), asker.request.clone());
        (row.tier_to, row.component) = (Some(Tier::Device), Some(Component::Full));
        row.pages = Some(pages);
        let ask = self.emit(row.clone())?;
        let granted = self.make_room(Tier::Device, pages, None, ask)?;
        row.cause = Some(ask);
        if granted < pages {
            let failed = Row {
                phase: Phase::Fail,
                reason: Reason::NoRoom,
                pages: Some(pages - granted),
                ..row.clone()
            };
            self.emit(failed)?;
        }
        let mut runs = Vec::new();
        for (slots, device) in
            pair(&self.state.slots.choose(granted), &self.state.pools[0].pages.choose(granted))
        {
            let grant = Row {
                phase: Phase::Grant,
                slot_from: Some(slots.first),
                page_from: Some(device),
                pages: Some(slots.count),
                ..row.clone()
            };
            self.emit(grant)?;
            runs.push((slots.first, device, slots.count));
        }
        if granted == 0 {
            // An operation without slots: there to be committed or aborted like any other.
            let grant =
                Row { phase: Phase::Grant, slot_from: Some(0), page_from: Some(0), pages: Some(0), ..row };
            self.emit(grant)?;
        }
        self.settle()?;
        Ok(Reservation { op, runs })
    }

    pub fn commit(&mut self, id: u64, tokens: &[u32], start: u32, pages: u32) -> Answer<Commit> {
        let op = self.reservation(id)?.clone();
        let receipt = op.receipt.ok_or_else(|| Refusal::Internal("a reservation without a lock".into()))?;
        let asker = self.for_receipt(receipt)?;
        let locked = self.receipt_node(receipt)?;
        let held = self.state.path_pages(locked);
        let total = start.saturating_add(pages);
        let page = self.page();
        if pages as usize > op.slots.len() {
            return Err(Refusal::BadArgument(format!(
                "{pages} pages to commit, {} reserved",
                op.slots.len()
            )));
        }
        if start > held {
            return Err(Refusal::BadArgument(format!(
                "start is page {start}, beyond the locked path of {held} pages"
            )));
        }
        if tokens.len() < total as usize * page {
            return Err(Refusal::BadArgument(format!(
                "{} tokens do not fill the {total} pages of {page} tokens to commit",
                tokens.len()
            )));
        }
        let tokens = &tokens[..tokens.len().min(total.max(held) as usize * page)];
        let walk = self.keys.walk(&self.state, ROOT, tokens);
        let agreed = held.min(total);
        let through = |nodes: &[u32]| nodes.iter().copied().find(|n| self.state.path_pages(*n) >= agreed);
        if walk.pages < agreed || agreed > 0 && through(&walk.nodes) != through(&self.state.path(locked)) {
            return Err(Refusal::BadArgument(format!(
                "the tokens leave the locked path within its first {agreed} pages"
            )));
        }
        let known = walk.pages.min(total).saturating_sub(start);
        let (healed, duplicate) = self.meet_known(id, &op, &walk, start, known)?;
        let node = self.add_new(id, &op, &walk, tokens, start, known, pages)?;
        self.free_reservation(id, Reason::Unused)?;

        let end = total.max(held);
        let node = if end > total { locked } else { node };
        let mut row = Row::new(Kind::Lock, Phase::Extend);
        (row.receipt, row.node, row.end_page, row.op) = (Some(receipt), Some(node), Some(end), Some(id));
        self.emit(row)?;
        self.set_user(&self.state.path(node), &asker.session);
        if let Some(session) = asker.session.clone().filter(|s| self.state.sessions.get(&**s).is_some()) {
            let mut row = Row::new(Kind::Session, Phase::Advance);
            (row.session, row.node, row.end_page) = (Some(session), Some(node), Some(end));
            (row.request, row.op) = (asker.request.clone(), Some(id));
            self.emit(row)?;
        }
        let runs = self.device_runs(node, start, total);
        if self.config.write_through {
            self.back_up(node, &asker, |_, slot| !slot.usable(Tier::Storage))?;
        }
        self.settle()?;
        Ok(Commit { node, inserted: pages - known, healed, duplicate, runs })
    }

    /// Pages whose place the tree knows: ours fill its holes, and are freed where it has the bytes.
    fn meet_known(&mut self, id: u64, op: &Op, walk: &Walk, start: u32, known: u32) -> Answer<(u32, u32)> {
        let (mut healed, mut duplicate) = (0, 0);
        let nodes: Vec<(u32, u32, Runs)> = walk
            .nodes
            .iter()
            .filter_map(|id| self.state.nodes.get(*id).map(|n| (*id, n.start, n.slots.clone())))
            .collect();
        for (node, node_start, slots) in nodes {
            let from = node_start.max(start);
            let to = (node_start + slots.len()).min(start + known);
            if from >= to {
                continue;
            }
            let ours = &op.slots[(from - start) as usize..(to - start) as usize];
            let has = |position: u32| {
                let slot = slots.get(position - node_start).and_then(|s| self.state.slots.get(s));
                slot.is_some_and(|s| s.has(Tier::Device) || s.awaits(Tier::Device))
            };
            let fates: Vec<bool> = (from..to).map(has).collect();
            let mut at = 0;
            while at < ours.len() {
                let same = |i: &usize| fates[*i] == fates[at] && ours[*i] == ours[at] + (*i - at) as u32;
                let count = (at..ours.len()).take_while(same).count() as u32;
                let mut row = Row::new(Kind::Insert, Phase::Heal);
                (row.op, row.slot_from, row.pages) = (Some(id), Some(ours[at]), Some(count));
                if fates[at] {
                    (row.kind, row.phase, row.reason) = (Kind::Free, Phase::None, Reason::Duplicate);
                    duplicate += count;
                } else {
                    (row.node, row.end_page) = (Some(node), Some(from + at as u32 + count));
                    row.component = Some(Component::Full);
                    healed += count;
                }
                self.emit(row)?;
                at += count as usize;
            }
        }
        Ok((healed, duplicate))
    }

    /// Pages that are new to the tree become a node. Returns the node in which the committed path ends.
    #[allow(clippy::too_many_arguments)]
    fn add_new(
        &mut self,
        id: u64,
        op: &Op,
        walk: &Walk,
        tokens: &[u32],
        start: u32,
        known: u32,
        pages: u32,
    ) -> Answer<u32> {
        let (at, total) = (start + known, start + pages);
        let parent = self.cut(&walk.nodes, at)?;
        if known == pages {
            return Ok(parent);
        }
        let page = self.page();
        let mut digest = match self.state.nodes.get(parent).and_then(|n| n.slots.iter().next_back()) {
            Some(slot) => self.state.slot(slot).map_err(Refusal::Internal)?.digest,
            None => self.root_digest,
        };
        let node = self.state.nodes.choose(1)[0].first;
        let mut position = at;
        let ours: Runs = op.slots[known as usize..pages as usize].iter().copied().collect();
        for run in ours.as_runs() {
            let mut row = Row::new(Kind::Insert, Phase::New);
            (row.op, row.node, row.parent, row.namespace) = (Some(id), Some(node), Some(parent), Some(0));
            (row.session, row.request) = (op.session.clone(), op.request.clone());
            (row.slot_from, row.pages, row.end_page) =
                (Some(run.first), Some(run.count), Some(position + run.count));
            (row.tier_to, row.component) = (Some(Tier::Device), Some(Component::Full));
            row.tokens = Some((run.count as usize * page) as i64);
            for p in position..position + run.count {
                digest = page_digest(&digest, &tokens[p as usize * page..][..page]);
                row.digests.push(digest);
            }
            position += run.count;
            self.emit(row)?;
        }
        self.keys.add(&self.state, node, parent, &tokens[at as usize * page..total as usize * page]);
        Ok(node)
    }

    pub fn abort(&mut self, id: u64, reason: Reason) -> Answer<()> {
        match self.state.ops.get(&id).map(|op| (op.kind, op.draining)) {
            None => return Err(unknown_operation(id)),
            Some((Kind::Alloc, _)) => self.free_reservation(id, reason)?,
            Some((_, true)) => {}
            Some((kind, false)) => {
                let mut row = Row::new(kind, Phase::Abort);
                (row.op, row.reason) = (Some(id), reason);
                self.emit(row)?;
            }
        }
        self.settle()
    }

    /// Free what is left of a reservation, and end it.
    pub(crate) fn free_reservation(&mut self, id: u64, reason: Reason) -> Answer<()> {
        let slots: Runs = self.reservation(id)?.slots.iter().copied().collect();
        for run in slots.as_runs() {
            let mut row = Row::new(Kind::Free, Phase::None);
            (row.op, row.slot_from, row.pages, row.reason) =
                (Some(id), Some(run.first), Some(run.count), reason);
            self.emit(row)?;
        }
        let phase = if reason == Reason::Unused { Phase::Done } else { Phase::Abort };
        let mut row = Row::new(Kind::Alloc, phase);
        row.op = Some(id);
        if phase == Phase::Abort {
            row.reason = reason;
        }
        self.emit(row).map(|_| ())
    }

    fn reservation(&self, id: u64) -> Answer<&Op> {
        let op = self.state.ops.get(&id).ok_or_else(|| unknown_operation(id))?;
        if op.kind != Kind::Alloc {
            return Err(Refusal::UnknownOperation(format!(
                "operation {id} is a {}, not a reservation",
                op.kind.name()
            )));
        }
        Ok(op)
    }
}

pub(crate) fn unknown_operation(id: u64) -> Refusal {
    Refusal::UnknownOperation(format!("operation {id} does not exist, or has ended already"))
}

/// Walk two equally long lists of runs together: (run of the first, start in the second).
pub(crate) fn pair(left: &[Run], right: &[Run]) -> Vec<(Run, u32)> {
    let mut pairs = Vec::new();
    let (mut i, mut j, mut a, mut b) = (0, 0, 0, 0);
    while i < left.len() && j < right.len() {
        let count = (left[i].count - a).min(right[j].count - b);
        pairs.push((Run { first: left[i].first + a, count }, right[j].first + b));
        (a, b) = (a + count, b + count);
        if a == left[i].count {
            (i, a) = (i + 1, 0);
        }
        if b == right[j].count {
            (j, b) = (j + 1, 0);
        }
    }
    pairs
}
