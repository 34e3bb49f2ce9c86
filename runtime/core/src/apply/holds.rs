//! Rows about who holds a path: sessions, locks, leases.

use std::sync::Arc;

use super::need;
use crate::names::{Phase, Reason, Tier};
use crate::records::{FULL, Lease, NONE, Node, Receipt, Session, Spot};
use crate::row::Row;
use crate::state::{Applied, State};

impl State {
    pub(super) fn apply_session(&mut self, row: &Row) -> Applied {
        let name: Arc<str> = need(&row.session, "session", row)?;
        let old = self.sessions.get(&*name).map(|s| s.node);
        match row.phase {
            Phase::Open => {
                let session = Session {
                    parent: row.parent_session.clone(),
                    group: row.detail.clone(),
                    priority: row.score.unwrap_or(0) as i32,
                    node: NONE,
                    last_use: row.clock,
                };
                if !self.sessions.insert(name, session) {
                    return Err("session is open already".into());
                }
                return Ok(());
            }
            Phase::Advance => {
                let node = need(&row.node, "node", row)?;
                let goes_on = self.use_nodes_below(node, old.unwrap_or(NONE), |n| n.sessions += 1)?;
                self.touch_spots_of(node);
                self.sessions.update(&*name, |s| (s.node, s.last_use) = (node, row.clock));
                if goes_on {
                    return Ok(());
                }
            }
            Phase::Expect => {
                let at = need(&row.score, "score", row)?;
                let node = old.ok_or_else(|| format!("session {name} is not open"))?;
                if node == NONE {
                    return Ok(());
                }
                self.use_nodes(node, |n| n.returns_at = at)?;
                self.touch_spots_of(node);
                return Ok(());
            }
            Phase::Close => {
                self.sessions.remove(&*name);
            }
            _ => return Ok(()),
        }
        match old {
            None => Err(format!("session {name} is not open")),
            Some(NONE) => Ok(()),
            Some(node) => {
                self.use_nodes(node, |n| {
                    n.sessions -= 1;
                    n.superseded |= row.phase == Phase::Advance && n.sessions == 0;
                })?;
                self.touch_spots_of(node);
                Ok(())
            }
        }
    }

    pub(super) fn apply_lock(&mut self, row: &Row) -> Applied {
        let id = need(&row.receipt, "receipt", row)?;
        match (row.phase, self.receipts.get(&id).map(|r| r.node)) {
            (Phase::Acquire, None) => {
                let node = need(&row.node, "node", row)?;
                let (session, request) = (row.session.clone(), row.request.clone());
                let spots = self.use_path(node, row, 1)?;
                self.receipts.insert(id, Receipt { node, spots, session, request });
                Ok(())
            }
            (Phase::Extend, Some(old)) => {
                let node = need(&row.node, "node", row)?;
                if !self.use_nodes_below(node, old, |n| n.locks += 1)? {
                    self.use_nodes(old, |n| n.locks -= 1)?;
                }
                let taken = self.use_path(node, row, 0)?;
                let let_go = self.receipts.update(&id, |r| {
                    r.node = node;
                    std::mem::replace(&mut r.spots, taken)
                });
                self.change_spots(&let_go.unwrap_or_default(), |s| s.locks -= 1)
            }
            (Phase::Release, Some(old)) => {
                let let_go = self.receipts.remove(&id).map(|r| r.spots);
                self.use_nodes(old, |n| n.locks -= 1)?;
                self.change_spots(&let_go.unwrap_or_default(), |s| s.locks -= 1)
            }
            _ => Err(format!("receipt {id} cannot {}", row.phase.name())),
        }
    }

    /// Count a path as used, and as held by so many more. Returns the slots of spot components that are held with it.
    fn use_path(&mut self, node: u32, row: &Row, locks: u32) -> Result<Vec<u32>, String> {
        let session = row.session.as_ref().or_else(|| self.receipts.get(&row.receipt?)?.session.as_ref());
        let priority = session.and_then(|name| self.sessions.get(&**name)).map_or(0, |s| s.priority);
        self.use_nodes(node, |n| {
            (n.priority, n.returns_at) = (priority, 0);
            n.locks += locks;
            n.uses += 1;
            n.last_use = row.clock;
            n.superseded = false;
        })?;
        self.touch_spots_of(node);
        let spots = self.needed_spots(node);
        self.change_spots(&spots, |s| {
            s.locks += 1;
            s.uses += 1;
            s.last_use = row.clock;
        })?;
        Ok(spots)
    }

    pub(super) fn apply_lease(&mut self, row: &Row) -> Applied {
        let id = need(&row.receipt, "receipt", row)?;
        let old = self.leases.get(&id).cloned();
        match (row.phase, old) {
            (Phase::Grant, None) => {
                let node = need(&row.node, "node", row)?;
                let lease = Lease {
                    session: need(&row.session, "session", row)?,
                    owner: need(&row.detail, "detail", row)?,
                    worth: row.reason,
                    tier: need(&row.tier_to, "tier_to", row)?,
                    node,
                    spots: self.needed_spots(node),
                    ttl: need(&row.duration, "duration", row)?,
                    expires: need(&row.score, "score", row)?,
                    forks: row.tokens.unwrap_or(0) as u32,
                };
                self.lease_path(&lease, 1)?;
                self.leases.insert(id, lease);
                Ok(())
            }
            (Phase::Renew, Some(old)) => {
                let node = need(&row.node, "node", row)?;
                let lease = Lease {
                    node,
                    spots: self.needed_spots(node),
                    ttl: need(&row.duration, "duration", row)?,
                    expires: need(&row.score, "score", row)?,
                    forks: row.tokens.unwrap_or(0) as u32,
                    ..old.clone()
                };
                self.lease_path(&lease, 1)?;
                self.lease_path(&old, -1)?;
                self.leases.update(&id, |l| *l = lease);
                Ok(())
            }
            (Phase::Release | Phase::Expire, Some(old)) => {
                self.leases.remove(&id);
                self.lease_path(&old, -1)
            }
            _ => Err(format!("lease {id} cannot {}", row.phase.name())),
        }
    }

    fn lease_path(&mut self, lease: &Lease, by: i32) -> Applied {
        if lease.worth != Reason::None {
            self.use_nodes(lease.node, |n| n.retains = n.retains.wrapping_add_signed(by))?;
            self.touch_spots_of(lease.node);
            return Ok(());
        }
        let (tier, mut pages): (Tier, i32) = (lease.tier, 0);
        let t = tier as usize;
        self.use_nodes(lease.node, |n: &mut Node| {
            let before = n.leases[t] > 0;
            n.leases[t] = n.leases[t].wrapping_add_signed(by);
            pages += n.pages as i32 * ((n.leases[t] > 0) as i32 - before as i32);
        })?;
        let leased = &mut self.pool(FULL as u8, tier)?.leased;
        *leased = leased.wrapping_add_signed(pages);
        self.change_spots(&lease.spots, |s: &mut Spot| s.leases[t] = s.leases[t].wrapping_add_signed(by))
    }
}
