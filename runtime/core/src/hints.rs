//! What operators and routers ask about a session. Every hint gets exactly one outcome; one that has to wait
//! for bytes is deferred, and completed later.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::{Core, For, Live};
use crate::evict::idle;
use crate::leases::Wanted;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::{FULL, Op};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::slots::Slot;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Pin(Tier),
    Demote,
    Prefetch,
}

/// A hint that waits for moves. It holds the session's path meanwhile.
#[derive(Clone, Debug)]
pub struct Hint {
    wish: Wish,
    session: Arc<str>,
    receipt: u64,
    seq: u64,
    ops: BTreeSet<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub hint: u64,
    pub outcome: Phase,
    pub reason: Reason,
    pub pages: u32,
    pub asked: u32,
    pub pending: u32,
    pub lease: u64,
    pub seq: u64,
}

impl Core {
    pub fn pin(&mut self, name: &str, tier: Tier, ttl: i64, owner: &str) -> Answer<Outcome> {
        let session = self.known(name)?;
        if ttl <= 0 {
            return Err(Refusal::BadArgument(format!("ttl is {ttl} ns; it must be positive")));
        }
        if self.config.components[FULL].pages[tier as usize] == 0 {
            return Err(Refusal::BadArgument(format!("this runtime owns no {} tier to pin in", tier.name())));
        }
        let (node, asked) = self.session_path(&session);
        if self.path_where(node, |s| !s.is_gone()).is_empty() {
            return self.answer("pin", Phase::Rejected, Reason::NotStored, &session, owner, (0, asked, 0));
        }
        let node = self.grantable(node, tier)?;
        let granted = self.state.path_pages(node);
        if granted == 0 {
            return self.answer("pin", Phase::Rejected, Reason::Budget, &session, owner, (0, asked, 0));
        }
        // A component without this tier stays where it is.
        let comes = |s: &Slot| self.config.components[s.component as usize].pages[tier as usize] > 0;
        let missing = |s: &Slot| comes(s) && !s.usable(tier) && (s.best().is_some() || s.awaits(tier));
        let pending = if tier == Tier::Storage { 0 } else { self.needed_where(node, missing).len() as u32 };
        let outcome = match (pending, granted < asked) {
            (0, false) => (Phase::Accepted, Reason::None),
            (0, true) => (Phase::Clipped, Reason::Budget),
            (_, false) => (Phase::Deferred, Reason::None),
            (_, true) => (Phase::Deferred, Reason::Budget),
        };
        let mut answer =
            self.answer("pin", outcome.0, outcome.1, &session, owner, (granted, asked, pending))?;
        let cause = answer.seq;
        let wanted =
            Wanted { session: &session, owner, worth: Reason::None, tier, node, ttl, forks: 0, cause };
        answer.lease = self.grant_lease(&wanted)?;
        if pending > 0 {
            self.wait_for(&answer, Wish::Pin(tier), session, node)?;
        }
        self.settle()?;
        Ok(answer)
    }

    /// Keep a session's path as long as anything else can go instead.
    pub fn retain(&mut self, name: &str, ttl: i64, owner: &str) -> Answer<Outcome> {
        self.keep(name, ttl, owner, Reason::Retain, 0)
    }

    /// The same, until `forks` sessions that this one spawned have continued from there.
    pub fn share(&mut self, name: &str, forks: u32, ttl: i64, owner: &str) -> Answer<Outcome> {
        if forks == 0 {
            return Err(Refusal::BadArgument("forks is 0; a share waits for at least 1".into()));
        }
        self.keep(name, ttl, owner, Reason::Share, forks)
    }

    fn keep(&mut self, name: &str, ttl: i64, owner: &str, worth: Reason, forks: u32) -> Answer<Outcome> {
        let session = self.known(name)?;
        if ttl <= 0 {
            return Err(Refusal::BadArgument(format!("ttl is {ttl} ns; it must be positive")));
        }
        let (node, asked) = self.session_path(&session);
        let present = self.path_where(node, |s| !s.is_gone()).len() as u32;
        if present == 0 {
            return self.answer(
                worth.name(),
                Phase::Rejected,
                Reason::NotStored,
                &session,
                owner,
                (0, asked, 0),
            );
        }
        let (outcome, reason) = if present < asked {
            (Phase::Clipped, Reason::NotStored)
        } else {
            (Phase::Accepted, Reason::None)
        };
        let mut answer = self.answer(worth.name(), outcome, reason, &session, owner, (present, asked, 0))?;
        let (tier, cause) = (Tier::Device, answer.seq);
        answer.lease =
            self.grant_lease(&Wanted { session: &session, owner, worth, tier, node, ttl, forks, cause })?;
        self.settle()?;
        Ok(answer)
    }

    pub fn demote(&mut self, name: &str, owner: &str) -> Answer<Outcome> {
        let session = self.known(name)?;
        if self.state.is_observed(Tier::Device) {
            return Err(Refusal::BadArgument(
                "the engine owns its device pages; only it can take them away".into(),
            ));
        }
        let (node, _) = self.session_path(&session);
        let asked = self.path_where(node, |s| s.has(Tier::Device)).len() as u32;
        if asked == 0 {
            return self.answer("demote", Phase::Rejected, Reason::NothingToDo, &session, owner, (0, 0, 0));
        }
        if self.way_down(FULL, Tier::Device).is_none() {
            return self.answer("demote", Phase::Rejected, Reason::NoRoom, &session, owner, (0, asked, 0));
        }
        let (own, obstacle) = self.own_nodes(&session, Some(Tier::Device), None);
        let bare = |s: &Slot| s.usable(Tier::Device) && !s.usable(Tier::Host) && !s.usable(Tier::Storage);
        let below = |c: &usize| self.way_down(*c, Tier::Device).is_some();
        let pending: usize =
            self.state.slotted().filter(below).map(|c| self.copies_of(&own, c, bare).len()).sum();
        let (pages, pending) =
            (self.copies_of(&own, FULL, |s| s.usable(Tier::Device)).len() as u32, pending as u32);
        if pages == 0 {
            let reason = obstacle.unwrap_or(Reason::NothingToDo);
            return self.answer("demote", Phase::Rejected, reason, &session, owner, (0, asked, 0));
        }
        let outcome = match pending {
            1.. => (Phase::Deferred, Reason::None),
            _ if pages < asked => (Phase::Clipped, obstacle.unwrap_or(Reason::InFlight)),
            _ => (Phase::Accepted, Reason::None),
        };
        let counts = (pages - self.copies_of(&own, FULL, bare).len() as u32, asked, pending);
        let answer = self.answer("demote", outcome.0, outcome.1, &session, owner, counts)?;
        self.drop_demoted(&own, answer.seq)?;
        if pending > 0 {
            self.wait_for(&answer, Wish::Demote, session, node)?;
        }
        self.settle()?;
        Ok(answer)
    }

    /// Drop the device copies that have another copy below.
    fn drop_demoted(&mut self, nodes: &[u32], cause: u64) -> Answer<()> {
        let safe = |s: &Slot| {
            let below = s.usable(Tier::Host) || s.usable(Tier::Storage);
            idle(s, Tier::Device) && below
        };
        for c in self.state.slotted().collect::<Vec<_>>() {
            let slots = self.copies_of(nodes, c, safe);
            let mut like = Row::new(Kind::Evict, Phase::None);
            (like.reason, like.cause) = (Reason::Demote, Some(cause));
            self.drop_copies(&slots, Tier::Device, like)?;
        }
        Ok(())
    }

    pub fn prefetch(&mut self, name: &str, owner: &str) -> Answer<Outcome> {
        let session = self.known(name)?;
        let (node, asked) = self.session_path(&session);
        let missing = self.needed_where(node, |s| s.best() == Some(Tier::Storage)).len() as u32;
        if missing == 0 {
            let stored = self.path_where(node, |s| s.best().is_some()).len();
            let reason = if stored == 0 { Reason::NotStored } else { Reason::NothingToDo };
            return self.answer("prefetch", Phase::Rejected, reason, &session, owner, (0, asked, 0));
        }
        let answer =
            self.answer("prefetch", Phase::Deferred, Reason::None, &session, owner, (0, asked, missing))?;
        self.wait_for(&answer, Wish::Prefetch, session, node)?;
        self.settle()?;
        Ok(answer)
    }

    pub fn flush(&mut self, name: &str, owner: &str) -> Answer<Outcome> {
        let session = self.known(name)?;
        let (node, asked) = self.session_path(&session);
        let present = self.path_where(node, |s| !s.is_gone()).len() as u32;
        if present == 0 {
            return self.answer(
                "flush",
                Phase::Rejected,
                Reason::NothingToDo,
                &session,
                owner,
                (0, asked, 0),
            );
        }
        let number = self.number();
        let dropped = self.drop_own(&session, Reason::Flush, Some(number))?;
        let outcome = match (dropped.lost, dropped.left) {
            (0, _) => Phase::Rejected,
            (_, 0) => Phase::Accepted,
            _ => Phase::Clipped,
        };
        let reason = dropped.obstacle.filter(|_| dropped.left > 0).unwrap_or(Reason::None);
        let counts = (dropped.lost, dropped.asked, 0);
        let answer = self.answer_as(number, "flush", outcome, reason, &session, owner, counts)?;
        self.settle()?;
        Ok(answer)
    }

    fn answer(
        &mut self,
        verb: &str,
        outcome: Phase,
        reason: Reason,
        session: &Arc<str>,
        owner: &str,
        counts: (u32, u32, u32),
    ) -> Answer<Outcome> {
        let number = self.number();
        self.answer_as(number, verb, outcome, reason, session, owner, counts)
    }

    #[allow(clippy::too_many_arguments)]
    fn answer_as(
        &mut self,
        hint: u64,
        verb: &str,
        outcome: Phase,
        reason: Reason,
        session: &Arc<str>,
        owner: &str,
        (pages, asked, pending): (u32, u32, u32),
    ) -> Answer<Outcome> {
        let mut row = Row::new(Kind::Hint, outcome);
        (row.op, row.session, row.reason) = (Some(hint), Some(session.clone()), reason);
        row.pages = Some(pages);
        row.detail = Some(format!("{verb} by {owner}: {pages} of {asked} pages, {pending} in flight").into());
        let seq = self.emit(row)?;
        Ok(Outcome { hint, outcome, reason, pages, asked, pending, lease: 0, seq })
    }

    /// Hold the path and move until the wish is fulfilled or cannot be.
    fn wait_for(&mut self, answer: &Outcome, wish: Wish, session: Arc<str>, node: u32) -> Answer<()> {
        let live = Live { of_hint: true, seq: answer.seq, ..Live::default() };
        let receipt = self.lock(node, Some(session.clone()), None, live)?;
        let hint = Hint { wish, session, receipt, seq: answer.seq, ops: BTreeSet::new() };
        self.hints.insert(answer.hint, hint);
        self.advance(answer.hint)
    }

    /// An operation has ended: see to the hints that waited for it.
    pub(crate) fn hints_after(&mut self, op: u64) -> Answer<()> {
        let waiting = self.hints.iter().filter(|(_, hint)| hint.ops.contains(&op));
        for id in waiting.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.advance(id)?;
        }
        Ok(())
    }

    fn advance(&mut self, id: u64) -> Answer<()> {
        let Some(hint) = self.hints.get(&id).cloned() else { return Ok(()) };
        let node = self.receipt_node(hint.receipt)?;
        let failed = self.live_of(hint.receipt)?.failed.clone();
        let asker = For {
            session: Some(hint.session.clone()),
            request: None,
            receipt: Some(hint.receipt),
            cause: Some(hint.seq),
        };
        let wanted = |_: &Core, id: u32, slot: &Slot| match hint.wish {
            Wish::Demote => !slot.usable(Tier::Storage) && !failed.contains(&id),
            _ => !failed.contains(&id),
        };
        if hint.wish == Wish::Pin(Tier::Device) {
            self.bring_to_device(hint.receipt, None)?;
        } else {
            for c in self.state.slotted().collect::<Vec<_>>() {
                if hint.wish != Wish::Prefetch {
                    self.back_up(node, c, &asker, wanted)?;
                }
                if hint.wish != Wish::Demote {
                    self.fetch(node, c, &asker, &failed)?;
                }
            }
        }
        let tier = match hint.wish {
            Wish::Pin(tier) => tier,
            Wish::Demote => self.way_down(FULL, Tier::Device).map_or(Tier::Host, |(_, below)| below),
            Wish::Prefetch => Tier::Host,
        };
        let ops = self.ops_for(hint.wish, node);
        if ops.is_empty() {
            return self.fulfil(id, &hint, node, tier);
        }
        if let Some(hint) = self.hints.get_mut(&id) {
            hint.ops = ops;
        }
        Ok(())
    }

    /// Operations that bring pages of a path, of any component, to where a wish wants them or on their way there.
    fn ops_for(&self, wish: Wish, node: u32) -> BTreeSet<u64> {
        let path = self.state.path(node);
        let on_path = |s: &u32| self.state.slots.get(*s).is_some_and(|slot| path.contains(&slot.node));
        let brings = |op: &Op| {
            let there = match wish {
                Wish::Demote => self
                    .way_down(op.component as usize, Tier::Device)
                    .is_some_and(|(_, below)| op.tier_to == below),
                Wish::Pin(Tier::Device) => matches!(op.tier_to, Tier::Device | Tier::Host),
                Wish::Pin(tier) => op.tier_to == tier,
                Wish::Prefetch => op.tier_to == Tier::Host,
            };
            op.kind != Kind::Alloc && there && op.slots.iter().any(on_path)
        };
        self.state.ops.wanted(brings).into_iter().collect()
    }

    fn fulfil(&mut self, id: u64, hint: &Hint, node: u32, tier: Tier) -> Answer<()> {
        self.hints.remove(&id);
        if hint.wish == Wish::Demote {
            let (own, _) = self.own_nodes(&hint.session, Some(Tier::Device), Some(hint.receipt));
            self.drop_demoted(&own, hint.seq)?;
        }
        let there = self.path_where(node, |s| match hint.wish {
            Wish::Demote => !s.has(Tier::Device) && s.best().is_some(),
            _ => s.usable(tier),
        });
        let mut row = Row::new(Kind::Hint, Phase::Completed);
        (row.op, row.session, row.cause) = (Some(id), Some(hint.session.clone()), Some(hint.seq));
        row.pages = Some(there.len() as u32);
        if there.len() < self.state.path_pages(node) as usize {
            row.reason = Reason::Failed;
        }
        self.emit(row)?;
        self.unlock(hint.receipt)
    }
}
