//! Leases: what a pin holds in a tier, within that tier's budget, until it ends.

use std::sync::Arc;

use crate::core::Core;
use crate::names::{Kind, Phase, Tier};
use crate::records::Lease;
use crate::refusal::{Answer, Refusal};
use crate::row::Row;

impl Core {
    /// The longest start of a path that the tier's budget for leases allows, as a node.
    pub(crate) fn grantable(&mut self, node: u32, tier: Tier) -> Answer<u32> {
        let t = tier as usize;
        let capacity = self.config.pages[t] as u64;
        let allowed = (capacity * self.config.pin_permille as u64 / 1000) as u32;
        let mut budget = allowed.saturating_sub(self.state.pools[t].leased);
        let path = self.state.path(node);
        let mut end = 0;
        for id in &path {
            let record = self.state.node(*id).map_err(Refusal::Internal)?;
            let pages = record.slots.len();
            let cost = if record.leases[t] > 0 { 0 } else { pages };
            if cost > budget {
                end = record.start + budget;
                break;
            }
            budget -= cost;
            end = record.end();
        }
        self.cut(&path, end)
    }

    pub(crate) fn grant_lease(
        &mut self,
        session: &Arc<str>,
        owner: &str,
        tier: Tier,
        node: u32,
        ttl: i64,
        cause: u64,
    ) -> Answer<u64> {
        let same = |l: &Lease| l.session == *session && &*l.owner == owner && l.tier == tier;
        let old = self.state.leases.iter().find(|(_, lease)| same(lease)).map(|(id, _)| *id);
        let id = old.unwrap_or_else(|| self.number());
        let mut row = Row::new(Kind::Lease, if old.is_some() { Phase::Renew } else { Phase::Grant });
        (row.receipt, row.node, row.tier_to) = (Some(id), Some(node), Some(tier));
        (row.session, row.detail) = (Some(session.clone()), Some(owner.into()));
        (row.pages, row.score, row.cause) =
            (Some(self.state.path_pages(node)), Some(self.now.saturating_add(ttl)), Some(cause));
        self.emit(row)?;
        Ok(id)
    }

    pub fn unpin(&mut self, lease: u64) -> Answer<()> {
        self.end_lease(lease, Phase::Release)?;
        self.settle()
    }

    fn end_lease(&mut self, id: u64, phase: Phase) -> Answer<()> {
        let unknown = || {
            Refusal::UnknownLease(format!("lease {id} does not exist: never granted, released, or expired"))
        };
        let lease = self.state.leases.get(&id).ok_or_else(unknown)?;
        let mut row = Row::new(Kind::Lease, phase);
        (row.receipt, row.node, row.tier_to) = (Some(id), Some(lease.node), Some(lease.tier));
        (row.session, row.detail) = (Some(lease.session.clone()), Some(lease.owner.clone()));
        self.emit(row).map(|_| ())
    }

    /// Let time pass; says how many leases expired.
    pub fn tick(&mut self) -> Answer<u32> {
        let due = self.state.leases.iter().filter(|(_, l)| l.expires <= self.now);
        let due: Vec<u64> = due.map(|(id, _)| *id).collect();
        for id in &due {
            self.end_lease(*id, Phase::Expire)?;
        }
        self.settle()?;
        Ok(due.len() as u32)
    }
}
