//! Sessions: their lives, the paths that are theirs, and what only they name.

use std::sync::Arc;

use crate::core::Core;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::FULL;
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::slots::Slot;

/// What became of a session's own pages when they were to be dropped.
#[derive(Default)]
pub(crate) struct Dropped {
    pub asked: u32,
    pub lost: u32,
    pub left: u32,
    /// What stood in the way of those that are left.
    pub obstacle: Option<Reason>,
}

impl Core {
    pub fn open_session(&mut self, name: &str, parent: &str, group: &str, priority: i32) -> Answer<()> {
        if name.is_empty() {
            return Err(Refusal::BadArgument("a session needs a name".into()));
        }
        let parent = if parent.is_empty() { None } else { Some(self.known(parent)?) };
        if self.state.sessions.get(name).is_some() {
            return Ok(());
        }
        let mut row = Row::new(Kind::Session, Phase::Open);
        (row.session, row.parent_session) = (Some(name.into()), parent);
        row.detail = (!group.is_empty()).then(|| group.into());
        row.score = (priority != 0).then_some(priority as i64);
        self.emit(row)?;
        self.settle()
    }

    pub fn close_session(&mut self, name: &str) -> Answer<u32> {
        let session = self.known(name)?;
        let dropped = self.drop_own(&session, Reason::Close, None)?;
        let number = self.state.sessions.number(&*session);
        let mut row = Row::new(Kind::Session, Phase::Close);
        (row.session, row.pages) = (Some(session.clone()), Some(dropped.lost));
        self.emit(row)?;
        number.into_iter().for_each(|number| self.prompts.clear(number));
        self.settle()?;
        Ok(dropped.lost)
    }

    pub(crate) fn known(&self, session: &str) -> Answer<Arc<str>> {
        let found = self.state.sessions.key(session).cloned();
        found.ok_or_else(|| Refusal::UnknownSession(format!("session {session:?} is not open")))
    }

    /// Drop from every tier what only this session names. Pages in flight, locked, leased or shared stay.
    pub(crate) fn drop_own(
        &mut self,
        session: &Arc<str>,
        reason: Reason,
        op: Option<u64>,
    ) -> Answer<Dropped> {
        let (node, _) = self.session_path(session);
        let mut dropped =
            Dropped { asked: self.path_where(node, |s| !s.is_gone()).len() as u32, ..Dropped::default() };
        let (own, obstacle) = self.own_nodes(session, None, None);
        let idle = |s: &Slot| s.here != 0 && s.coming == 0 && !s.is_read();
        let slots = self.copies_of(&own, FULL, idle);
        // What lies on somebody else's device stays there.
        let owned: Vec<Tier> = Tier::ALL.iter().copied().filter(|t| !self.state.is_observed(*t)).collect();
        let bits = owned.iter().fold(0, |bits, tier| bits | tier.bit());
        let lost = |s: &&u32| self.state.slots.get(**s).is_some_and(|slot| slot.here & !bits == 0);
        dropped.lost = slots.iter().filter(lost).count() as u32;
        dropped.left = dropped.asked - dropped.lost;
        dropped.obstacle = obstacle.or((dropped.left > 0).then_some(Reason::InFlight));
        let mut like = Row::new(Kind::Evict, Phase::None);
        (like.reason, like.op) = (reason, op);
        for tier in owned {
            let has = |s: &u32| self.state.slots.get(*s).is_some_and(|slot| slot.has(tier));
            let here: Vec<u32> = slots.iter().copied().filter(has).collect();
            self.drop_copies(&here, tier, like.clone())?;
        }
        Ok(dropped)
    }

    /// A session's next turn is expected at `at`, ns; what it needs then is worth more the sooner that is.
    pub fn expect(&mut self, name: &str, at: i64) -> Answer<()> {
        let mut row = Row::new(Kind::Session, Phase::Expect);
        (row.session, row.score) = (Some(self.known(name)?), Some(at));
        self.emit(row)?;
        self.settle()
    }

    /// End every open session of a group of forks. Returns how many there were.
    pub fn close_group(&mut self, group: &str) -> Answer<u64> {
        let names = self.state.sessions.wanted(|session| session.group.as_deref() == Some(group));
        for name in &names {
            self.close_session(name)?;
        }
        Ok(names.len() as u64)
    }

    /// The end of a session's path that only it names and that nobody holds (on `tier`, or on any), in path
    /// order; and what ends it towards the root. The lock `except` does not count, as far as it reaches.
    pub(crate) fn own_nodes(
        &self,
        session: &str,
        tier: Option<Tier>,
        except: Option<u64>,
    ) -> (Vec<u32>, Option<Reason>) {
        let (node, _) = self.session_path(session);
        let excepted = except.and_then(|receipt| self.state.receipts.get(&receipt));
        let excepted = excepted.map_or(Vec::new(), |receipt| self.state.path(receipt.node));
        let mut own = Vec::new();
        for (id, record) in self.state.upward(node) {
            let leased = match tier {
                Some(tier) => record.leases[tier as usize] > 0,
                None => record.leases != [0; 3],
            };
            let obstacle = match () {
                () if record.locks > excepted.contains(&id) as u32 => Some(Reason::Locked),
                () if record.sessions > 1 => Some(Reason::Shared),
                () if leased => Some(Reason::Leased),
                () => None,
            };
            if obstacle.is_some() {
                own.reverse();
                return (own, obstacle);
            }
            own.push(id);
        }
        own.reverse();
        (own, None)
    }

    pub(crate) fn copies_of(
        &self,
        nodes: &[u32],
        component: usize,
        wanted: impl Fn(&Slot) -> bool,
    ) -> Vec<u32> {
        let nodes = nodes.iter().filter_map(|n| self.state.nodes.get(*n));
        let slots = nodes.flat_map(|n| n.parts[component].slots.iter().map(|(_, slot)| slot));
        slots.filter(|s| self.state.slots.get(*s).is_some_and(&wanted)).collect()
    }
}
