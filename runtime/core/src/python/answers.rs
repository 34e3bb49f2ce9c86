//! What commands answer, as Python sees it. Documented in runtime/_core.pyi.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::commit::Commit;
use crate::find::Match;
use crate::hints::Outcome;
use crate::moves::Action;
use crate::report::{PoolReport, SessionReport};
use crate::reserve::Reservation;
use crate::restore::Restore;

macro_rules! answer {
    ($name:ident as $python:literal { $($field:ident: $t:ty),* $(,)? }) => {
        #[pyclass(frozen, get_all, module = "runtime._core", name = $python)]
        pub struct $name { $($field: $t),* }

        #[pymethods]
        impl $name {
            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let mut fields = Vec::new();
                $(fields.push(format!("{}={}", stringify!($field), (&self.$field).into_pyobject(py)?.repr()?));)*
                Ok(format!("{}({})", $python, fields.join(", ")))
            }
        }
    };
}

type Run = (u32, u32, u32);
type Part = (&'static str, u32, u32, u32, u32);

answer!(PyMatch as "Match" {
    node: u32, pages: u32, device_pages: u32, host_pages: u32, storage_pages: u32, full_pages: u32,
    clipped_by: &'static str, branch: u32, reason: &'static str, offset: i64, lost_seq: u64, seq: u64, receipt: u64,
});
answer!(PyRestore as "Restore" { ready: u32, pending: u32, ops: Vec<u64> });
answer!(PyReservation as "Reservation" { op: u64, pages: u32, runs: Vec<Run>, parts: Vec<Part> });
answer!(PyCommit as "Commit" {
    node: u32, inserted: u32, healed: u32, duplicate: u32, runs: Vec<Run>, parts: Vec<Part>,
});
answer!(PyOutcome as "Outcome" {
    hint: u64, outcome: &'static str, reason: &'static str, pages: u32, asked: u32, pending: u32, lease: u64,
    seq: u64,
});
answer!(PyAction as "Action" {
    op: u64, kind: &'static str, component: &'static str, tier_from: &'static str, tier_to: &'static str, session: String, pages: u32,
    runs: Vec<(u32, u32, u32, u32)>, keys: Vec<Py<PyBytes>>, owners: Vec<u64>, positions: Vec<u32>,
});
answer!(PySessionInfo as "SessionInfo" {
    name: String, parent: String, pages: u32, device_pages: u32, host_pages: u32, storage_pages: u32,
    fastest: (u32, u32, u32), shared_pages: u32, leases: Vec<(u64, &'static str, String, u32, i64)>, last_use: i64,
});
answer!(PyPoolInfo as "PoolInfo" {
    component: &'static str, tier: &'static str, capacity: u32, used: u32, fenced: u32, free: u32, leased: u32,
});

impl From<Match> for PyMatch {
    fn from(m: Match) -> Self {
        let [device_pages, host_pages, storage_pages] = m.by_tier;
        PyMatch {
            node: m.node,
            pages: m.pages,
            device_pages,
            host_pages,
            storage_pages,
            full_pages: m.full_pages,
            clipped_by: m.clipped_by,
            branch: m.branch,
            reason: m.miss.reason.name(),
            offset: m.miss.offset,
            lost_seq: m.miss.lost_seq,
            seq: m.seq,
            receipt: m.receipt,
        }
    }
}

impl From<Restore> for PyRestore {
    fn from(r: Restore) -> Self {
        PyRestore { ready: r.ready, pending: r.pending, ops: r.ops }
    }
}

impl From<Reservation> for PyReservation {
    fn from(r: Reservation) -> Self {
        PyReservation { op: r.op, pages: r.runs.iter().map(|run| run.2).sum(), runs: r.runs, parts: r.parts }
    }
}

impl From<Commit> for PyCommit {
    fn from(c: Commit) -> Self {
        PyCommit {
            node: c.node,
            inserted: c.inserted,
            healed: c.healed,
            duplicate: c.duplicate,
            runs: c.runs,
            parts: c.parts,
        }
    }
}

impl From<Outcome> for PyOutcome {
    fn from(o: Outcome) -> Self {
        PyOutcome {
            hint: o.hint,
            outcome: o.outcome.name(),
            reason: o.reason.name(),
            pages: o.pages,
            asked: o.asked,
            pending: o.pending,
            lease: o.lease,
            seq: o.seq,
        }
    }
}

impl PyAction {
    pub fn new(py: Python<'_>, a: Action) -> Self {
        PyAction {
            op: a.op,
            kind: a.kind.name(),
            component: a.component,
            tier_from: a.tier_from.name(),
            tier_to: a.tier_to.name(),
            session: a.session,
            pages: a.keys.len() as u32,
            runs: a.runs,
            keys: a.keys.iter().map(|key| PyBytes::new(py, key).unbind()).collect(),
            owners: a.owners,
            positions: a.positions,
        }
    }
}

impl From<SessionReport> for PySessionInfo {
    fn from(s: SessionReport) -> Self {
        let [device_pages, host_pages, storage_pages] = s.by_tier;
        let leases = s.leases.into_iter();
        PySessionInfo {
            name: s.name.to_string(),
            parent: s.parent,
            pages: s.pages,
            device_pages,
            host_pages,
            storage_pages,
            fastest: s.fastest.into(),
            shared_pages: s.shared,
            leases: leases
                .map(|(id, tier, owner, n, at)| (id, tier.name(), owner.to_string(), n, at))
                .collect(),
            last_use: s.last_use,
        }
    }
}

impl From<PoolReport> for PyPoolInfo {
    fn from(p: PoolReport) -> Self {
        PyPoolInfo {
            component: p.component,
            tier: p.tier.name(),
            capacity: p.capacity,
            used: p.used,
            fenced: p.fenced,
            free: p.free,
            leased: p.leased,
        }
    }
}

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMatch>()?;
    module.add_class::<PyRestore>()?;
    module.add_class::<PyReservation>()?;
    module.add_class::<PyCommit>()?;
    module.add_class::<PyOutcome>()?;
    module.add_class::<PyAction>()?;
    module.add_class::<PySessionInfo>()?;
    module.add_class::<PyPoolInfo>()
}
