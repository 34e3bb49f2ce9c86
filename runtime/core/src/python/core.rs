//! `runtime._core.Core`: each method is one command.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::answers::{
    PyAction, PyCommit, PyMatch, PyOutcome, PyPoolInfo, PyReservation, PyRestore, PySessionInfo,
};
use super::errors::bad_argument;
use super::guard::guard;
use super::log::PyLog;
use super::text::Text;
use super::tokens::Tokens;
use crate::command::{Command, Journal, Note, Reply};
use crate::core::{Config, Core};
use crate::find;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::refusal::{Answer, Refusal};

struct Inner {
    core: Core,
    journal: Option<Journal>,
    /// After an internal fault the state may be half changed; nothing more is decided on it.
    fault: Option<String>,
}

#[pyclass(frozen, subclass, module = "runtime._core", name = "Core")]
pub struct PyCore(Mutex<Inner>);

impl PyCore {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, now: i64, command: Command) -> Answer<Reply> {
        let mut inner = self.inner();
        if let Some(fault) = &inner.fault {
            return Err(Refusal::Internal(fault.clone()));
        }
        if let Some(journal) = &mut inner.journal {
            journal.append(now, &command);
        }
        let core = &mut inner.core;
        let answer = guard(|| core.run(now, &command))
            .unwrap_or_else(|panic| Err(Refusal::Internal(format!("{panic}; in {command:.200?}"))));
        if let Err(Refusal::Internal(fault)) = &answer {
            inner.fault = Some(fault.clone());
        }
        answer
    }
}

/// (owner, page, position, digest)
type Copy<'py> = (u64, u32, u32, Bound<'py, PyBytes>);

fn copy_to_python(py: Python<'_>, (owner, page, position, digest): find::Copy) -> Copy<'_> {
    (owner, page, position, PyBytes::new(py, &digest))
}

macro_rules! expect {
    ($self:ident, $now:ident, $reply:ident, $command:expr) => {
        match $self.run($now, $command)? {
            Reply::$reply(value) => Ok(value.into()),
            other => Err(Refusal::Internal(format!("unexpected reply {other:?}")).into()),
        }
    };
}

fn parse<T>(
    what: &str,
    text: &str,
    all: &[T],
    parse: fn(&str) -> Option<T>,
    name: fn(&T) -> &str,
) -> PyResult<T> {
    let names = || all.iter().map(name).filter(|n| !n.is_empty()).collect::<Vec<_>>().join(", ");
    parse(text).ok_or_else(|| bad_argument(&format!("{what} is {text:?}; it must be one of {}", names())))
}

fn tier(text: &str) -> PyResult<Tier> {
    parse("tier", text, Tier::ALL, Tier::parse, |t| t.name())
}

fn optional_tier(text: &str) -> PyResult<Option<Tier>> {
    if text.is_empty() { Ok(None) } else { tier(text).map(Some) }
}

fn reason(text: &str) -> PyResult<Reason> {
    parse("reason", text, Reason::ALL, Reason::parse, |r| r.name())
}

#[pymethods]
impl PyCore {
    #[new]
    #[pyo3(signature = (*, engine, epoch, namespace, page_size, device, host = 0, storage = 0, page_bytes = 0,
        secret = Vec::new(), wall_offset = 0, now = 0, write_through = true, pin_share = 0.5, ghosts = 4096,
        log_rows = 1 << 16, journal = false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        engine: Text,
        epoch: Text,
        namespace: Text,
        page_size: u32,
        device: u32,
        host: u32,
        storage: u32,
        page_bytes: u64,
        secret: Vec<u8>,
        wall_offset: i64,
        now: i64,
        write_through: bool,
        pin_share: f64,
        ghosts: u32,
        log_rows: u32,
        journal: bool,
    ) -> PyResult<Self> {
        if !(0.0..=1.0).contains(&pin_share) {
            return Err(bad_argument(&format!("pin_share is {pin_share}; it must be between 0 and 1")));
        }
        let config = Config {
            engine: engine.0,
            epoch: epoch.0,
            namespace: namespace.0,
            page_size,
            pages: [device, host, storage],
            page_bytes,
            secret,
            wall_offset,
            now,
            write_through,
            pin_permille: (pin_share * 1000.0).round() as u32,
            ghosts,
            log_rows,
        };
        let journal = journal.then(|| Journal::new(&config));
        Ok(PyCore(Mutex::new(Inner { core: Core::new(config)?, journal, fault: None })))
    }

    #[pyo3(signature = (now, session, parent = Text::default()))]
    fn open_session(&self, now: i64, session: Text, parent: Text) -> PyResult<()> {
        Ok(self.run(now, Command::OpenSession { session: session.0, parent: parent.0 }).map(|_| ())?)
    }

    fn close_session(&self, now: i64, session: Text) -> PyResult<u64> {
        expect!(self, now, Number, Command::CloseSession { session: session.0 })
    }

    #[pyo3(name = "match")]
    fn look(&self, now: i64, session: Text, request: Text, tokens: Tokens) -> PyResult<PyMatch> {
        expect!(
            self,
            now,
            Match,
            Command::Look { session: session.0, request: request.0, tokens: tokens.as_cow() }
        )
    }

    #[pyo3(signature = (now, session, request, tokens, *, grid = 1))]
    fn acquire(
        &self,
        now: i64,
        session: Text,
        request: Text,
        tokens: Tokens,
        grid: u32,
    ) -> PyResult<PyMatch> {
        expect!(
            self,
            now,
            Match,
            Command::Acquire { session: session.0, request: request.0, tokens: tokens.as_cow(), grid }
        )
    }

    fn release(&self, now: i64, receipt: u64) -> PyResult<()> {
        Ok(self.run(now, Command::Release { receipt }).map(|_| ())?)
    }

    fn restore(&self, now: i64, receipt: u64) -> PyResult<PyRestore> {
        expect!(self, now, Restore, Command::Restore { receipt })
    }

    fn table(&self, receipt: u64) -> PyResult<Vec<(u32, u32, u32)>> {
        Ok(self.inner().core.table(receipt)?)
    }

    fn keys<'py>(&self, py: Python<'py>, receipt: u64) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let keys = self.inner().core.path_keys(receipt)?;
        Ok(keys.iter().map(|key| PyBytes::new(py, key)).collect())
    }

    fn copies<'py>(&self, py: Python<'py>, receipt: u64) -> PyResult<Vec<Copy<'py>>> {
        let copies = self.inner().core.copies(receipt)?;
        Ok(copies.into_iter().map(|copy| copy_to_python(py, copy)).collect())
    }

    fn reserve(&self, now: i64, receipt: u64, pages: u32) -> PyResult<PyReservation> {
        expect!(self, now, Reservation, Command::Reserve { receipt, pages })
    }

    fn commit(&self, now: i64, op: u64, tokens: Tokens, start: u32, pages: u32) -> PyResult<PyCommit> {
        expect!(self, now, Commit, Command::Commit { op, tokens: tokens.as_cow(), start, pages })
    }

    #[pyo3(signature = (now, op, reason = Text::from("aborted")))]
    fn abort(&self, now: i64, op: u64, reason: Text) -> PyResult<()> {
        let reason = self::reason(&reason)?;
        Ok(self.run(now, Command::Abort { op, reason }).map(|_| ())?)
    }

    fn actions(&self, py: Python<'_>) -> Vec<PyAction> {
        let actions = std::mem::take(&mut self.inner().core.actions);
        actions.into_iter().map(|action| PyAction::new(py, action)).collect()
    }

    #[pyo3(signature = (now, op, results, *, bytes = 0, duration = 0, detail = Text::default()))]
    fn complete(
        &self,
        now: i64,
        op: u64,
        results: Vec<u8>,
        bytes: u64,
        duration: i64,
        detail: Text,
    ) -> PyResult<()> {
        Ok(self.run(now, Command::Complete { op, results, bytes, duration, detail: detail.0 }).map(|_| ())?)
    }

    fn damaged(&self, now: i64, tier: Text, slot: u32, generation: u32) -> PyResult<bool> {
        let tier = self::tier(&tier)?;
        expect!(self, now, Flag, Command::Damaged { tier, slot, generation })
    }

    #[pyo3(signature = (tier, session = Text::default()))]
    fn resident<'py>(&self, py: Python<'py>, tier: Text, session: Text) -> PyResult<Vec<Copy<'py>>> {
        let session = (!session.is_empty()).then_some(&*session);
        let copies = self.inner().core.resident(self::tier(&tier)?, session)?;
        Ok(copies.into_iter().map(|copy| copy_to_python(py, copy)).collect())
    }

    fn user(&self, slot: u32) -> String {
        self.inner().core.slot_user(slot).map_or(String::new(), |name| name.to_string())
    }

    fn pin(&self, now: i64, session: Text, tier: Text, ttl: i64, owner: Text) -> PyResult<PyOutcome> {
        let tier = self::tier(&tier)?;
        expect!(self, now, Outcome, Command::Pin { session: session.0, tier, ttl, owner: owner.0 })
    }

    fn unpin(&self, now: i64, lease: u64) -> PyResult<()> {
        Ok(self.run(now, Command::Unpin { lease }).map(|_| ())?)
    }

    fn demote(&self, now: i64, session: Text, owner: Text) -> PyResult<PyOutcome> {
        expect!(self, now, Outcome, Command::Demote { session: session.0, owner: owner.0 })
    }

    fn prefetch(&self, now: i64, session: Text, owner: Text) -> PyResult<PyOutcome> {
        expect!(self, now, Outcome, Command::Prefetch { session: session.0, owner: owner.0 })
    }

    fn flush(&self, now: i64, session: Text, owner: Text) -> PyResult<PyOutcome> {
        expect!(self, now, Outcome, Command::Flush { session: session.0, owner: owner.0 })
    }

    fn tick(&self, now: i64) -> PyResult<u64> {
        expect!(self, now, Number, Command::Tick {})
    }

    #[pyo3(signature = (now, kind, phase, *, session = Text::default(), request = Text::default(), reason = Text::default(),
        cause = 0, op = 0, slot = None, pages = 0, tokens = 0, bytes = 0, duration = 0, tier_from = Text::default(),
        tier_to = Text::default(), detail = Text::default()))]
    #[allow(clippy::too_many_arguments)]
    fn note(
        &self,
        now: i64,
        kind: Text,
        phase: Text,
        session: Text,
        request: Text,
        reason: Text,
        cause: u64,
        op: u64,
        slot: Option<u32>,
        pages: u32,
        tokens: u32,
        bytes: u64,
        duration: i64,
        tier_from: Text,
        tier_to: Text,
        detail: Text,
    ) -> PyResult<u64> {
        let note = Note {
            kind: parse("kind", &kind, Kind::ALL, Kind::parse, |k| k.name())?,
            phase: parse("phase", &phase, Phase::ALL, Phase::parse, |p| p.name())?,
            session: session.0,
            request: request.0,
            reason: self::reason(&reason)?,
            cause,
            op,
            slot,
            pages,
            tokens: tokens.into(),
            bytes,
            duration,
            tier_from: optional_tier(&tier_from)?,
            tier_to: optional_tier(&tier_to)?,
            detail: detail.0,
        };
        expect!(self, now, Number, Command::Note { note })
    }

    fn pools(&self) -> Vec<PyPoolInfo> {
        self.inner().core.state.pool_reports().into_iter().map(Into::into).collect()
    }

    fn sessions(&self) -> Vec<PySessionInfo> {
        self.inner().core.state.session_reports().into_iter().map(Into::into).collect()
    }

    fn session(&self, name: Text) -> PyResult<PySessionInfo> {
        let inner = self.inner();
        let key = inner.core.known(&name)?;
        let state = &inner.core.state;
        let session = state.sessions.get(&key).ok_or(Refusal::UnknownSession(name.0))?;
        Ok(state.session_report(&key, session).into())
    }

    fn seq(&self) -> u64 {
        self.inner().core.state.seq
    }

    fn state_hash(&self) -> String {
        format!("{:032x}", self.inner().core.state.hash())
    }

    fn check(&self) -> PyResult<()> {
        Ok(self.inner().core.check().map_err(Refusal::Internal)?)
    }

    fn log(&self) -> PyLog {
        PyLog(self.inner().core.log.clone())
    }

    fn journal<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner().journal.as_ref().map_or(&[], |j| j.bytes()))
    }

    #[staticmethod]
    fn replay(journal: &[u8]) -> PyResult<Self> {
        let core = guard(|| Core::replay(journal)).unwrap_or_else(|panic| Err(Refusal::Log(panic)))?;
        Ok(PyCore(Mutex::new(Inner { core, journal: None, fault: None })))
    }
}
