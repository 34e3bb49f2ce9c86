//! Leases: what somebody holds in a tier until it ends. A pin is never evicted from its tier, within a budget;
//! retain and share only let everything else go first, and need none.

use std::sync::Arc;

use crate::core::Core;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::Lease;
use crate::refusal::{Answer, Refusal};
use crate::row::Row;

/// A lease is renewed by a hit when at least this part of its time has passed.
const RENEWED_FROM: i64 = 16;

/// Who asks for a lease, on what, for how long.
pub(crate) struct Wanted<'a> {
    pub session: &'a Arc<str>,
    pub owner: &'a str,
    pub worth: Reason,
    pub tier: Tier,
    pub node: u32,
    pub ttl: i64,
    pub forks: u32,
    pub cause: u64,
}

impl Core {
    /// The longest start of a path that the tier's budget for leases allows, as a node.
    pub(crate) fn grantable(&mut self, node: u32, tier: Tier) -> Answer<u32> {
        let t = tier as usize;
        let capacity = self.config.components[0].pages[t] as u64;
        let allowed = (capacity * self.config.pin_permille as u64 / 1000) as u32;
        let mut budget = allowed.saturating_sub(self.state.pools[0][t].leased);
        let path = self.state.path(node);
        let mut end = 0;
        for id in &path {
            let record = self.state.node(*id).map_err(Refusal::Internal)?;
            let cost = if record.leases[t] > 0 { 0 } else { record.pages };
            if cost > budget {
                end = record.start + budget;
                break;
            }
            budget -= cost;
            end = record.end();
        }
        let root = self.root_of(node);
        self.cut(root, &path, end)
    }

    pub(crate) fn grant_lease(&mut self, wanted: &Wanted) -> Answer<u64> {
        let same = |l: &Lease| {
            (&l.session, &*l.owner, l.worth, l.tier)
                == (wanted.session, wanted.owner, wanted.worth, wanted.tier)
        };
        let old = self.state.leases.wanted(same).first().copied();
        let id = old.unwrap_or_else(|| self.number());
        let mut row = Row::new(Kind::Lease, if old.is_some() { Phase::Renew } else { Phase::Grant });
        (row.receipt, row.node, row.tier_to) = (Some(id), Some(wanted.node), Some(wanted.tier));
        (row.session, row.detail) = (Some(wanted.session.clone()), Some(wanted.owner.into()));
        (row.reason, row.duration) = (wanted.worth, Some(wanted.ttl));
        row.tokens = (wanted.forks > 0).then_some(wanted.forks as i64);
        row.pages = Some(self.state.path_pages(wanted.node));
        (row.score, row.cause) = (Some(self.now.saturating_add(wanted.ttl)), Some(wanted.cause));
        self.emit(row)?;
        Ok(id)
    }

    /// A session has come back to a path: its own leases there last longer, and a shared start has one fork less to
    /// wait for.
    pub(crate) fn refresh_leases(&mut self, session: &Arc<str>, node: u32) -> Answer<()> {
        let end = self.state.nodes.get(node);
        if end.is_none_or(|n| n.leases == [0; 3] && n.retains == 0 && self.state.leases.count() == 0) {
            return Ok(());
        }
        let path = self.state.path(node);
        let parent = self.state.sessions.get(&**session).and_then(|s| s.parent.clone());
        for id in self.state.leases.wanted(|lease| path.contains(&lease.node)) {
            let Some(lease) = self.state.leases.get(&id).cloned() else { continue };
            let forked = lease.worth == Reason::Share && parent.as_ref() == Some(&lease.session);
            let expires = self.now.saturating_add(lease.ttl);
            let own = lease.session == *session && expires - lease.expires >= lease.ttl / RENEWED_FROM;
            if forked && lease.forks <= 1 {
                self.end_lease(id, Phase::Release)?;
            } else if forked || own {
                let mut row = Row::new(Kind::Lease, Phase::Renew);
                (row.receipt, row.node, row.tier_to) = (Some(id), Some(lease.node), Some(lease.tier));
                (row.session, row.detail) = (Some(lease.session.clone()), Some(lease.owner.clone()));
                (row.reason, row.duration) = (lease.worth, Some(lease.ttl));
                let forks = lease.forks - forked as u32;
                row.tokens = (forks > 0).then_some(forks as i64);
                row.pages = Some(self.state.path_pages(lease.node));
                row.score = Some(if own { expires } else { lease.expires });
                self.emit(row)?;
            }
        }
        Ok(())
    }

    pub fn unpin(&mut self, lease: u64) -> Answer<()> {
        self.end_lease(lease, Phase::Release)?;
        self.settle()
    }

    pub(crate) fn end_lease(&mut self, id: u64, phase: Phase) -> Answer<()> {
        let unknown = || {
            Refusal::UnknownLease(format!("lease {id} does not exist: never granted, released, or expired"))
        };
        let lease = self.state.leases.get(&id).ok_or_else(unknown)?;
        let mut row = Row::new(Kind::Lease, phase);
        (row.receipt, row.node, row.tier_to) = (Some(id), Some(lease.node), Some(lease.tier));
        (row.session, row.detail, row.reason) =
            (Some(lease.session.clone()), Some(lease.owner.clone()), lease.worth);
        self.emit(row).map(|_| ())
    }

    /// Let time pass: leases expire, moves that take too long are given up. Says how many leases expired.
    pub fn tick(&mut self) -> Answer<u32> {
        let due = self.state.leases.wanted(|lease| lease.expires <= self.now);
        for id in &due {
            self.end_lease(*id, Phase::Expire)?;
        }
        self.abort_late()?;
        self.settle()?;
        Ok(due.len() as u32)
    }
}
