//! What a person wants to know of a state, live or rebuilt.

use std::sync::Arc;

use crate::names::{Name, Tier};
use crate::records::{FULL, NONE, Session};
use crate::state::State;

pub struct SessionReport {
    pub name: Arc<str>,
    pub parent: String,
    pub pages: u32,
    /// Pages with a copy in each tier.
    pub by_tier: [u32; 3],
    /// Pages whose fastest copy is there.
    pub fastest: [u32; 3],
    pub shared: u32,
    /// (lease, tier, owner, pages, expiry in ns)
    pub leases: Vec<(u64, Tier, Arc<str>, u32, i64)>,
    pub last_use: i64,
}

pub struct PoolReport {
    pub component: Name,
    pub tier: Tier,
    pub capacity: u32,
    pub used: u32,
    pub fenced: u32,
    pub free: u32,
    pub leased: u32,
}

impl State {
    pub fn session_reports(&self) -> Vec<SessionReport> {
        let mut sessions: Vec<_> = self.sessions.iter().collect();
        sessions.sort_unstable_by_key(|(name, _)| *name);
        sessions.into_iter().map(|(name, session)| self.session_report(name, session)).collect()
    }

    pub fn session_report(&self, name: &Arc<str>, session: &Session) -> SessionReport {
        let (mut by_tier, mut fastest, mut shared) = ([0; 3], [0; 3], 0);
        if session.node != NONE {
            for (_, node) in self.upward(session.node) {
                (0..3).for_each(|t| by_tier[t] += node.parts[FULL].copies[t]);
                if node.is_whole_on_device(FULL) {
                    fastest[0] += node.pages;
                } else {
                    let slots = node.slots().iter().filter_map(|(_, s)| self.slots.get(s)?.best());
                    slots.for_each(|tier| fastest[tier as usize] += 1);
                }
                shared += if node.sessions > 1 { node.pages } else { 0 };
            }
        }
        let mine = self.leases.wanted(|lease| lease.session == *name).into_iter();
        let mine = mine.filter_map(|id| Some((id, self.leases.get(&id)?)));
        SessionReport {
            name: name.clone(),
            parent: session.parent.as_deref().unwrap_or("").to_string(),
            pages: self.path_pages(session.node),
            by_tier,
            fastest,
            shared,
            leases: mine
                .map(|(id, l)| (id, l.tier, l.owner.clone(), self.path_pages(l.node), l.expires))
                .collect(),
            last_use: session.last_use,
        }
    }

    pub fn pool_reports(&self) -> Vec<PoolReport> {
        let mut reports = Vec::new();
        for c in self.slotted() {
            for tier in Tier::ALL {
                let pool = &self.pools[c][*tier as usize];
                reports.push(PoolReport {
                    component: self.name_of(c),
                    tier: *tier,
                    capacity: pool.pages.capacity(),
                    used: pool.pages.taken() - if pool.observed { 0 } else { pool.fenced },
                    fenced: pool.fenced,
                    free: pool.pages.free(),
                    leased: pool.leased,
                });
            }
        }
        reports
    }
}
