//! Rows about who holds a path: sessions, locks, leases.

use std::sync::Arc;

use super::need;
use crate::names::{Phase, Tier};
use crate::records::{Lease, NONE, Node, Receipt, Session};
use crate::row::Row;
use crate::state::{Applied, State};

impl State {
    pub(super) fn apply_session(&mut self, row: &Row) -> Applied {
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

    pub(super) fn apply_lock(&mut self, row: &Row) -> Applied {
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

    pub(super) fn apply_lease(&mut self, row: &Row) -> Applied {
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
}
