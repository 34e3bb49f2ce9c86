//! What each row does to the state. The live core and a replica both change by this and nothing else.

use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::members::Members;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::{Lease, NONE, Namespace, Node, Op, Receipt, Session, Slot};
use crate::row::Row;
use crate::runs::Runs;
use crate::state::{Applied, MAX_TIER_PAGES, State};

fn need<T: Clone>(field: &Option<T>, name: &str, row: &Row) -> Result<T, String> {
    let missing = || format!("{}/{} row {} lacks {name}", row.kind.name(), row.phase.name(), row.seq);
    field.clone().ok_or_else(missing)
}

impl State {
    pub fn apply(&mut self, row: &Row) -> Applied {
        if row.seq != self.seq + 1 {
            return Err(format!("row {} does not follow row {}", row.seq, self.seq));
        }
        match row.kind {
            Kind::Config => self.apply_config(row)?,
            Kind::Session => self.apply_session(row)?,
            Kind::Lock => self.apply_lock(row)?,
            Kind::Lease => self.apply_lease(row)?,
            Kind::Split => self.apply_split(row)?,
            Kind::Alloc => self.apply_alloc(row)?,
            Kind::Insert => self.apply_insert(row)?,
            Kind::Free => self.apply_free(row)?,
            Kind::Evict => self.apply_evict(row)?,
            Kind::Backup | Kind::Load | Kind::Prefetch | Kind::Offload => self.apply_move(row)?,
            // These tell; they change nothing.
            Kind::Request | Kind::Match | Kind::Tool | Kind::Hint | Kind::Canary => {}
            Kind::Pd | Kind::Rank | Kind::Keyframe | Kind::Gap => {}
        }
        self.seq = row.seq;
        self.clock = row.clock;
        Ok(())
    }

    fn apply_config(&mut self, row: &Row) -> Applied {
        match row.phase {
            Phase::Engine => {
                self.page_size = need(&row.tokens, "tokens", row)? as u32;
                self.page_bytes = need(&row.bytes, "bytes", row)?;
            }
            Phase::Pool => {
                let tier = need(&row.tier_to, "tier_to", row)?;
                let pages = need(&row.pages, "pages", row)?;
                if pages > MAX_TIER_PAGES {
                    return Err(format!("a tier of {pages} pages is too large"));
                }
                self.pools[tier as usize].pages = Bitmap::new(pages);
            }
            Phase::Namespace => {
                let (id, root) = (need(&row.namespace, "namespace", row)?, need(&row.node, "node", row)?);
                let name = need(&row.detail, "detail", row)?;
                self.new_node(root, Node { namespace: id, ..fresh_node(NONE, 0, row.clock) })?;
                if !self.namespaces.insert(id, Namespace { name, root }) {
                    return Err(format!("namespace {id} exists"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_session(&mut self, row: &Row) -> Applied {
        let name: Arc<str> = need(&row.session, "session", row)?;
        let old = self.sessions.get(&*name).map(|s| s.node);
        match row.phase {
            Phase::Open => {
                let session = Session { parent: row.parent_session.clone(), node: NONE, last_use: row.clock };
                if !self.sessions.insert(name, session) {
                    return Err("session is open already".into());
                }
                return Ok(());
            }
            Phase::Advance => {
                let node = need(&row.node, "node", row)?;
                self.change_path(node, |n| n.sessions += 1)?;
                self.sessions.update(&*name, |s| (s.node, s.last_use) = (node, row.clock));
            }
            Phase::Close => {
                self.sessions.remove(&*name);
            }
            _ => return Ok(()),
        }
        match old {
            None => Err(format!("session {name} is not open")),
            Some(NONE) => Ok(()),
            Some(node) => self.change_path(node, |n| n.sessions -= 1),
        }
    }

    fn apply_lock(&mut self, row: &Row) -> Applied {
        let id = need(&row.receipt, "receipt", row)?;
        let take = |n: &mut Node| {
            n.locks += 1;
            n.uses += 1;
            n.last_use = row.clock;
        };
        let old = self.receipts.get(&id).map(|r| r.node);
        match (row.phase, old) {
            (Phase::Acquire, None) => {
                let node = need(&row.node, "node", row)?;
                let (session, request) = (row.session.clone(), row.request.clone());
                self.receipts.insert(id, Receipt { node, session, request });
                self.change_path(node, take)
            }
            (Phase::Extend, Some(old)) => {
                let node = need(&row.node, "node", row)?;
                self.receipts.update(&id, |r| r.node = node);
                self.change_path(node, take)?;
                self.change_path(old, |n| n.locks -= 1)
            }
            (Phase::Release, Some(old)) => {
                self.receipts.remove(&id);
                self.change_path(old, |n| n.locks -= 1)
            }
            _ => Err(format!("receipt {id} cannot {}", row.phase.name())),
        }
    }

    fn apply_lease(&mut self, row: &Row) -> Applied {
        let id = need(&row.receipt, "receipt", row)?;
        let old = self.leases.get(&id).map(|l| (l.node, l.tier));
        match (row.phase, old) {
            (Phase::Grant, None) => {
                let lease = Lease {
                    session: need(&row.session, "session", row)?,
                    owner: need(&row.detail, "detail", row)?,
                    tier: need(&row.tier_to, "tier_to", row)?,
                    node: need(&row.node, "node", row)?,
                    expires: need(&row.score, "score", row)?,
                };
                let (node, tier) = (lease.node, lease.tier);
                self.leases.insert(id, lease);
                self.lease_path(node, tier, 1)
            }
            (Phase::Renew, Some((old, tier))) => {
                let (node, expires) = (need(&row.node, "node", row)?, need(&row.score, "score", row)?);
                self.leases.update(&id, |l| (l.node, l.expires) = (node, expires));
                self.lease_path(node, tier, 1)?;
                self.lease_path(old, tier, -1)
            }
            (Phase::Release | Phase::Expire, Some((old, tier))) => {
                self.leases.remove(&id);
                self.lease_path(old, tier, -1)
            }
            _ => Err(format!("lease {id} cannot {}", row.phase.name())),
        }
    }

    fn lease_path(&mut self, node: u32, tier: Tier, by: i32) -> Applied {
        let (t, mut pages) = (tier as usize, 0i32);
        self.change_path(node, |n| {
            let before = n.leases[t] > 0;
            n.leases[t] = n.leases[t].wrapping_add_signed(by);
            pages += n.slots.len() as i32 * ((n.leases[t] > 0) as i32 - before as i32);
        })?;
        let leased = &mut self.pools[t].leased;
        *leased = leased.wrapping_add_signed(pages);
        Ok(())
    }

    /// The tail keeps its number; the head is new, above it, and is held by whatever holds the tail.
    fn apply_split(&mut self, row: &Row) -> Applied {
        let (tail, head) = (need(&row.node, "node", row)?, need(&row.parent, "parent", row)?);
        let at = need(&row.pages, "pages", row)?;
        let old = self.node(tail)?.clone();
        if self.nodes.get(head).is_some() {
            return Err(format!("node {head} exists"));
        }
        if at == 0 || at >= old.slots.len() {
            return Err(format!("node {tail} of {} pages cannot be split at {at}", old.slots.len()));
        }
        let mut front = old.slots.clone();
        let back = front.split_off(at);
        let (mut copies, mut bad) = ([0; 3], 0);
        for slot in front.iter() {
            self.change_slot(slot, |s| {
                s.node = head;
                bad += s.bad.count_ones();
                for tier in Tier::ALL {
                    copies[*tier as usize] += s.has(*tier) as u32;
                }
            })?;
        }
        self.change_node(tail, |n| {
            n.parent = head;
            n.start += at;
            n.slots = back;
            n.bad -= bad;
            (0..3).for_each(|t| n.copies[t] -= copies[t]);
        })?;
        let below = self.node(tail)?;
        let kids_with = Tier::ALL.iter().map(|t| below.has_below(*t) as u32).collect::<Vec<_>>();
        let kids_with = [kids_with[0], kids_with[1], kids_with[2]];
        self.touch(head);
        let head_node = Node { slots: front, kids: 1, copies, kids_with, bad, ..old };
        self.nodes.insert(head, head_node).then_some(()).ok_or_else(|| format!("no node can be {head}"))
    }

    fn apply_alloc(&mut self, row: &Row) -> Applied {
        let Some(id) = row.op else { return Ok(()) };
        match row.phase {
            Phase::Grant => {
                self.join_op(id, row, None, Tier::Device)?;
                let page_from = need(&row.page_from, "page_from", row)?;
                for (i, slot) in row.slots().iter().enumerate() {
                    let page = page_from + i as u32;
                    self.fence_page(Tier::Device, page)?;
                    let mut record = Slot::new(NONE, NONE);
                    record.coming = Tier::Device.bit();
                    record.page[Tier::Device as usize] = page;
                    if !self.slots.insert(slot, record) {
                        return Err(format!("slot {slot} exists or cannot exist"));
                    }
                }
                Ok(())
            }
            Phase::Done | Phase::Abort => self.end_op(id),
            _ => Ok(()),
        }
    }

    fn join_op(&mut self, id: u64, row: &Row, tier_from: Option<Tier>, tier_to: Tier) -> Applied {
        if self.ops.get(&id).is_none() {
            self.ops.insert(
                id,
                Op {
                    kind: row.kind,
                    tier_from,
                    tier_to,
                    session: row.session.clone(),
                    request: row.request.clone(),
                    receipt: row.receipt,
                    draining: false,
                    slots: Members::default(),
                },
            );
        }
        let (run, capacity) = (row.slots(), self.pools[tier_to as usize].pages.capacity());
        if run.count > capacity || run.first.checked_add(run.count).is_none() {
            return Err(format!("slots {run:?} cannot go to {}, of {capacity} pages", tier_to.name()));
        }
        self.ops.update(&id, |op| op.slots.join(run));
        Ok(())
    }

    fn leave_op(&mut self, id: u64, row: &Row) -> Applied {
        let run = row.slots();
        match self.ops.update(&id, |op| op.slots.leave(run)) {
            Some(true) => Ok(()),
            _ => Err(format!("operation {id} does not have slots {run:?}")),
        }
    }

    fn end_op(&mut self, id: u64) -> Applied {
        match self.ops.remove(&id) {
            Some(op) if op.slots.is_empty() => Ok(()),
            Some(op) => Err(format!("operation {id} ends with {} slots left", op.slots.len())),
            None => Err(format!("operation {id} does not exist")),
        }
    }

    fn apply_insert(&mut self, row: &Row) -> Applied {
        let (op, node) = (need(&row.op, "op", row)?, need(&row.node, "node", row)?);
        let (run, end) = (row.slots(), need(&row.end_page, "end_page", row)?);
        let start = end - run.count;
        self.leave_op(op, row)?;
        if row.phase == Phase::Heal {
            return self.heal(row, node, start);
        }
        if row.digests.len() != run.count as usize {
            return Err(format!("insert row {} has {} digests", row.seq, row.digests.len()));
        }
        if self.nodes.get(node).is_none() {
            let parent = need(&row.parent, "parent", row)?;
            let namespace = self.node(parent)?.namespace;
            self.new_node(node, Node { namespace, ..fresh_node(parent, start, row.clock) })?;
        }
        if self.node(node)?.end() != start {
            return Err(format!("insert row {} leaves a hole in node {node}", row.seq));
        }
        self.count_in_node(node, |n| n.slots.push(run.first, run.count))?;
        for (i, slot) in run.iter().enumerate() {
            self.unfence_page(Tier::Device);
            self.copy_arrives(slot, Tier::Device, |s| {
                s.node = node;
                s.position = start + i as u32;
                s.coming = 0;
                s.digest = row.digests[i];
            })?;
        }
        Ok(())
    }

    /// The operation's pages become the device copies of slots that the node has already.
    fn heal(&mut self, row: &Row, node: u32, start: u32) -> Applied {
        let d = Tier::Device as usize;
        let record = self.node(node)?;
        let targets = record.slots.slice(start - record.start, start - record.start + row.slots().count);
        for (temporary, target) in row.slots().iter().zip(targets.iter()) {
            let page = self.slot(temporary)?.page[d];
            self.slots.remove(temporary);
            self.unfence_page(Tier::Device);
            self.copy_arrives(target, Tier::Device, |s| {
                (s.page[d], s.lost, s.lost_why) = (page, 0, Reason::None);
            })?;
        }
        Ok(())
    }

    fn apply_free(&mut self, row: &Row) -> Applied {
        if let Some(node) = row.node {
            return self.shorten(row, node);
        }
        self.leave_op(need(&row.op, "op", row)?, row)?;
        for slot in row.slots().iter() {
            let record = self.slots.remove(slot).ok_or_else(|| format!("slot {slot} does not exist"))?;
            self.unfence_page(Tier::Device);
            self.free_page(Tier::Device, record.page[Tier::Device as usize])?;
        }
        Ok(())
    }

    /// Take empty slots off a node's end; a node without slots is gone.
    fn shorten(&mut self, row: &Row, node: u32) -> Applied {
        let run = row.slots();
        let left = self.node(node)?.slots.len().checked_sub(run.count);
        let left = left.ok_or_else(|| format!("node {node} has fewer than {} pages", run.count))?;
        let mut tail = Runs::default();
        self.count_in_node(node, |n| tail = n.slots.split_off(left))?;
        if tail.as_runs() != [run] {
            return Err(format!("slots {run:?} are not the end of node {node}"));
        }
        for slot in run.iter() {
            if !self.slot(slot)?.is_gone() {
                return Err(format!("slot {slot} still has copies"));
            }
            self.slots.remove(slot);
        }
        if left > 0 {
            return Ok(());
        }
        let gone = self.nodes.remove(node).filter(Node::is_unnamed);
        let parent = gone.ok_or_else(|| format!("node {node} is still named"))?.parent;
        self.count_in_node(parent, |n| n.kids -= 1)
    }

    fn apply_evict(&mut self, row: &Row) -> Applied {
        let tier = need(&row.tier_from, "tier_from", row)?;
        for slot in row.slots().iter() {
            if row.phase == Phase::Marked {
                self.change_slot(slot, |s| s.bad |= tier.bit())?;
                self.count_in_node(self.slot(slot)?.node, |n| n.bad += 1)?;
                continue;
            }
            if self.slot(slot)?.readers[tier as usize] > 0 {
                return Err(format!("slot {slot} is being read on {}", tier.name()));
            }
            self.copy_leaves(slot, tier, row.seq, row.reason)?;
        }
        Ok(())
    }

    fn apply_move(&mut self, row: &Row) -> Applied {
        let Some(id) = row.op else { return Ok(()) };
        match row.phase {
            Phase::Reserve => self.reserve(row, id),
            Phase::Commit | Phase::Fail => self.settle(row, id),
            Phase::Abort => {
                let found = self.ops.update(&id, |op| op.draining = true);
                found.ok_or_else(|| format!("operation {id} does not exist"))
            }
            Phase::Done => self.end_op(id),
            _ => Ok(()),
        }
    }

    fn reserve(&mut self, row: &Row, id: u64) -> Applied {
        let (from, to) = (need(&row.tier_from, "tier_from", row)?, need(&row.tier_to, "tier_to", row)?);
        let page_from = need(&row.page_from, "page_from", row)?;
        self.join_op(id, row, Some(from), to)?;
        for (i, slot) in row.slots().iter().enumerate() {
            let page = page_from + i as u32;
            self.fence_page(to, page)?;
            if (self.slot(slot)?.here | self.slot(slot)?.coming) & to.bit() != 0 {
                return Err(format!("slot {slot} has or awaits a copy on {}", to.name()));
            }
            self.change_slot(slot, |s| {
                s.coming |= to.bit();
                s.page[to as usize] = page;
                s.readers[from as usize] += 1;
            })?;
        }
        Ok(())
    }

    fn settle(&mut self, row: &Row, id: u64) -> Applied {
        let (from, to) = (need(&row.tier_from, "tier_from", row)?, need(&row.tier_to, "tier_to", row)?);
        self.leave_op(id, row)?;
        for slot in row.slots().iter() {
            let page = self.slot(slot)?.page[to as usize];
            let moved = |s: &mut Slot| {
                s.coming &= !to.bit();
                s.readers[from as usize] -= 1;
            };
            self.touch(self.slot(slot)?.node);
            self.unfence_page(to);
            if row.phase == Phase::Commit {
                self.copy_arrives(slot, to, moved)?;
            } else {
                self.change_slot(slot, |s| {
                    moved(s);
                    s.page[to as usize] = NONE;
                    if s.is_gone() {
                        (s.lost, s.lost_why) = (row.seq, row.reason);
                    }
                })?;
                self.free_page(to, page)?;
            }
        }
        Ok(())
    }

    fn new_node(&mut self, id: u32, node: Node) -> Applied {
        if node.parent != NONE {
            self.count_in_node(node.parent, |n| n.kids += 1)?;
        }
        self.touch(id);
        if !self.nodes.insert(id, node) {
            return Err(format!("node {id} exists"));
        }
        Ok(())
    }
}

fn fresh_node(parent: u32, start: u32, clock: i64) -> Node {
    Node {
        namespace: 0,
        parent,
        start,
        locks: 0,
        leases: [0; 3],
        sessions: 0,
        last_use: clock,
        uses: 0,
        slots: Runs::default(),
        kids: 0,
        copies: [0; 3],
        kids_with: [0; 3],
        bad: 0,
    }
}
