//! `runtime._core.Core`: each method is one command. PyO3 takes a class's methods in one block, unless they are
//! registered when the library is loaded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::answers::{
    PyAction, PyCommit, PyMatch, PyOutcome, PyPoolInfo, PyReservation, PyRestore, PySessionInfo,
};
use super::calls::Inner;
use super::component::PyComponent;
use super::errors::bad_argument;
use super::keyframe::keyframe_slice;
use super::list::List;
use super::log::PyLog;
use super::policy::{choose_policies, make_policy};
use super::text::{OwnText, Text};
use super::tokens::Tokens;
use super::words;
use crate::command::{Command, Note, Reply};
use crate::config::{ComponentConfig, Config};
use crate::core::Core;
use crate::guard::guard;
use crate::held;
use crate::journal::Journal;
use crate::names::{FamilyName, KeyKind, Kind, Phase};
use crate::refusal::Refusal;

#[pyclass(frozen, subclass, module = "runtime._core", name = "Core")]
pub struct PyCore {
    pub(super) key: KeyKind,
    /// A policy of the user's own may run in the middle of a command.
    pub(super) asks_python: bool,
    pub(super) inner: Mutex<Inner>,
}

/// (owner, page, position, digest)
type Copy<'py> = (u64, u32, u32, Bound<'py, PyBytes>);

fn copy_to_python(py: Python<'_>, (owner, page, position, digest): held::Resident) -> Copy<'_> {
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

#[pymethods]
impl PyCore {
    #[new]
    #[pyo3(signature = (*, engine, epoch, namespace, page_size, device, host = 0, storage = 0, page_bytes = 0,
        key = Text::from("tokens"), components = List::default(), observed_device = false, secret = List::default(),
        wall_offset = 0, now = 0, write_through = true, policies = HashMap::new(), admit_host = 1, admit_storage = 1,
        move_timeout = 0, defer_digests = None, pin_share = 0.5, ghosts = 4096, log_rows = 1 << 16, journal = false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        engine: Text<'_>,
        epoch: Text<'_>,
        namespace: Text<'_>,
        page_size: u32,
        device: u32,
        host: u32,
        storage: u32,
        page_bytes: u64,
        key: Text<'_>,
        components: List<PyComponent>,
        observed_device: bool,
        secret: List<u8>,
        wall_offset: i64,
        now: i64,
        write_through: bool,
        policies: HashMap<OwnText, OwnText>,
        admit_host: u32,
        admit_storage: u32,
        move_timeout: i64,
        defer_digests: Option<bool>,
        pin_share: f64,
        ghosts: u32,
        log_rows: u32,
        journal: bool,
    ) -> PyResult<Self> {
        if !(0.0..=1.0).contains(&pin_share) {
            return Err(bad_argument(&format!("pin_share is {pin_share}; it must be between 0 and 1")));
        }
        if move_timeout < 0 {
            return Err(bad_argument(&format!(
                "move_timeout is {move_timeout} ns; it must be 0 (none) or more"
            )));
        }
        let pages = [device, host, storage];
        let key = words::parse("key", &key, KeyKind::ALL, KeyKind::parse, |k| k.name())?;
        let name = "full".to_string();
        let full = ComponentConfig {
            name,
            family: FamilyName::Full,
            follows: String::new(),
            number: 0,
            pages,
            page_bytes,
        };
        let config = Config {
            engine: engine.into_string(),
            epoch: epoch.into_string(),
            namespace: namespace.into_string(),
            key,
            page_size,
            components: std::iter::once(full).chain(components.0.into_iter().map(|c| c.0)).collect(),
            observed_device,
            secret: secret.0,
            wall_offset,
            now,
            write_through,
            policies: choose_policies(policies, pages, observed_device)?,
            admit: [admit_host, admit_storage],
            move_timeout,
            // Of a given digest nothing is left to compute.
            defer_digests: defer_digests.unwrap_or(page_size == 1 && key != KeyKind::Digests),
            pin_permille: (pin_share * 1000.0).round() as u32,
            ghosts,
            log_rows,
        };
        let journal = journal.then(|| Journal::new(&config));
        let core = Core::new(config, &mut make_policy)?;
        Ok(PyCore::of(core, journal))
    }

    fn open_namespace(&self, now: i64, name: Text<'_>) -> PyResult<u64> {
        expect!(self, now, Number, Command::OpenNamespace { name: name.into_string() })
    }

    fn retire(&self, now: i64, namespace: u32) -> PyResult<u64> {
        expect!(self, now, Number, Command::Retire { namespace })
    }

    #[pyo3(signature = (now, session, parent = Text::default(), *, group = Text::default(), priority = 0))]
    fn open_session(
        &self,
        now: i64,
        session: Text<'_>,
        parent: Text<'_>,
        group: Text<'_>,
        priority: i64,
    ) -> PyResult<()> {
        if i32::try_from(priority).is_err() {
            return Err(bad_argument(&format!("priority is {priority}; it must fit into 32 bits")));
        }
        let priority = priority as i32;
        let command = Command::OpenSession {
            session: session.into_string(),
            parent: parent.into_string(),
            group: group.into_string(),
            priority,
        };
        self.done(now, command)
    }

    fn close_session(&self, now: i64, session: Text<'_>) -> PyResult<u64> {
        expect!(self, now, Number, Command::CloseSession { session: session.into_string() })
    }

    fn close_group(&self, now: i64, group: Text<'_>) -> PyResult<u64> {
        expect!(self, now, Number, Command::CloseGroup { group: group.into_string() })
    }

    fn expect(&self, now: i64, session: Text<'_>, at: i64) -> PyResult<()> {
        self.done(now, Command::Expect { session: session.into_string(), at })
    }

    #[pyo3(name = "match", signature = (now, session, request, tokens, *, skip = 0, namespace = 0))]
    fn look(
        &self,
        now: i64,
        session: Text<'_>,
        request: Text<'_>,
        tokens: &Bound<'_, PyAny>,
        skip: u32,
        namespace: u32,
    ) -> PyResult<PyMatch> {
        let tokens = Tokens::read(tokens, self.key)?;
        let (session, request) = (Cow::Borrowed(&*session), Cow::Borrowed(&*request));
        expect!(
            self,
            now,
            Match,
            Command::Look { session, request, namespace, skip, key: tokens.view(self.asks_python) }
        )
    }

    #[pyo3(signature = (now, session, request, tokens, *, grid = 1, skip = 0, namespace = 0))]
    #[allow(clippy::too_many_arguments)]
    fn acquire(
        &self,
        now: i64,
        session: Text<'_>,
        request: Text<'_>,
        tokens: &Bound<'_, PyAny>,
        grid: u32,
        skip: u32,
        namespace: u32,
    ) -> PyResult<PyMatch> {
        let tokens = Tokens::read(tokens, self.key)?;
        let (session, request) = (Cow::Borrowed(&*session), Cow::Borrowed(&*request));
        expect!(
            self,
            now,
            Match,
            Command::Acquire { session, request, namespace, skip, key: tokens.view(self.asks_python), grid }
        )
    }

    fn release(&self, now: i64, receipt: u64) -> PyResult<()> {
        self.done(now, Command::Release { receipt })
    }

    fn hold(&self, now: i64, receipt: u64) -> PyResult<u64> {
        expect!(self, now, Number, Command::Hold { receipt })
    }

    #[pyo3(signature = (now, tier, pages, component = Text::from("full")))]
    fn evict(&self, now: i64, tier: Text<'_>, pages: u32, component: Text<'_>) -> PyResult<u64> {
        let (tier, component) = (words::tier(&tier)?, self.inner()?.component(&component)? as u32);
        expect!(self, now, Number, Command::Evict { tier, pages, component })
    }

    #[pyo3(signature = (now, receipt, into = None))]
    fn restore(&self, now: i64, receipt: u64, into: Option<List<u32>>) -> PyResult<PyRestore> {
        let into = into.map(|into| into.0);
        expect!(self, now, Restore, Command::Restore { receipt, into })
    }

    #[pyo3(signature = (receipt, component = Text::from("full")))]
    fn table(&self, receipt: u64, component: Text<'_>) -> PyResult<Vec<(u32, u32, u32)>> {
        let inner = self.inner()?;
        Ok(inner.core.table(receipt, inner.component(&component)?)?)
    }

    fn keys<'py>(&self, py: Python<'py>, receipt: u64) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let keys = self.inner()?.core.path_keys(receipt)?;
        Ok(keys.iter().map(|key| PyBytes::new(py, key)).collect())
    }

    #[pyo3(signature = (receipt, component = Text::from("full")))]
    fn copies<'py>(&self, py: Python<'py>, receipt: u64, component: Text<'_>) -> PyResult<Vec<Copy<'py>>> {
        let copies = {
            let inner = self.inner()?;
            inner.core.copies(receipt, inner.component(&component)?)?
        };
        Ok(copies.into_iter().map(|copy| copy_to_python(py, copy)).collect())
    }

    #[pyo3(signature = (now, receipt, pages, *, start = None))]
    fn reserve(&self, now: i64, receipt: u64, pages: u32, start: Option<u32>) -> PyResult<PyReservation> {
        expect!(self, now, Reservation, Command::Reserve { receipt, pages, start })
    }

    #[pyo3(signature = (now, op, tokens, start, pages, *, skip = 0))]
    fn commit(
        &self,
        now: i64,
        op: u64,
        tokens: &Bound<'_, PyAny>,
        start: u32,
        pages: u32,
        skip: u32,
    ) -> PyResult<PyCommit> {
        let tokens = Tokens::read(tokens, self.key)?;
        expect!(
            self,
            now,
            Commit,
            Command::Commit { op, key: tokens.view(self.asks_python), skip, start, pages }
        )
    }

    #[pyo3(signature = (now, receipt, tokens, start, blocks, *, skip = 0, component = Text::from("full")))]
    #[allow(clippy::too_many_arguments)]
    fn observe(
        &self,
        now: i64,
        receipt: u64,
        tokens: &Bound<'_, PyAny>,
        start: u32,
        blocks: List<u32>,
        skip: u32,
        component: Text<'_>,
    ) -> PyResult<PyCommit> {
        let tokens = Tokens::read(tokens, self.key)?;
        let component = self.inner()?.component(&component)? as u32;
        expect!(
            self,
            now,
            Commit,
            Command::Observe {
                receipt,
                key: tokens.view(self.asks_python),
                skip,
                start,
                blocks: blocks.0,
                component
            }
        )
    }

    #[pyo3(signature = (now, blocks, component = Text::from("full")))]
    fn forget(&self, now: i64, blocks: List<u32>, component: Text<'_>) -> PyResult<u64> {
        let component = self.inner()?.component(&component)? as u32;
        expect!(self, now, Number, Command::Forget { blocks: blocks.0, component })
    }

    #[pyo3(signature = (now, op, reason = Text::from("aborted")))]
    fn abort(&self, now: i64, op: u64, reason: Text<'_>) -> PyResult<()> {
        let reason = words::reason(&reason)?;
        self.done(now, Command::Abort { op, reason })
    }

    fn actions(&self, py: Python<'_>) -> PyResult<Vec<PyAction>> {
        let actions = std::mem::take(&mut self.inner()?.core.actions);
        Ok(actions.into_iter().map(|action| PyAction::new(py, action)).collect())
    }

    #[pyo3(signature = (now, op, results, *, bytes = 0, duration = 0, detail = Text::default()))]
    fn complete(
        &self,
        now: i64,
        op: u64,
        results: List<u8>,
        bytes: u64,
        duration: i64,
        detail: Text<'_>,
    ) -> PyResult<()> {
        let detail = detail.into_string();
        self.done(now, Command::Complete { op, results: results.0, bytes, duration, detail })
    }

    fn damaged(&self, now: i64, tier: Text<'_>, slot: u32, generation: u32) -> PyResult<bool> {
        let tier = words::tier(&tier)?;
        expect!(self, now, Flag, Command::Damaged { tier, slot, generation })
    }

    #[pyo3(signature = (tier, session = Text::default(), component = Text::from("full")))]
    fn resident<'py>(
        &self,
        py: Python<'py>,
        tier: Text<'_>,
        session: Text<'_>,
        component: Text<'_>,
    ) -> PyResult<Vec<Copy<'py>>> {
        let session = (!session.is_empty()).then_some(&*session);
        let copies = {
            let inner = self.inner()?;
            inner.core.resident(words::tier(&tier)?, session, inner.component(&component)?)?
        };
        Ok(copies.into_iter().map(|copy| copy_to_python(py, copy)).collect())
    }

    fn user(&self, slot: u32) -> PyResult<String> {
        Ok(self.inner()?.core.slot_user(slot).map_or(String::new(), |name| name.to_string()))
    }

    fn pin(
        &self,
        now: i64,
        session: Text<'_>,
        tier: Text<'_>,
        ttl: i64,
        owner: Text<'_>,
    ) -> PyResult<PyOutcome> {
        let tier = words::tier(&tier)?;
        expect!(
            self,
            now,
            Outcome,
            Command::Pin { session: session.into_string(), tier, ttl, owner: owner.into_string() }
        )
    }

    fn unpin(&self, now: i64, lease: u64) -> PyResult<()> {
        self.done(now, Command::Unpin { lease })
    }

    fn demote(&self, now: i64, session: Text<'_>, owner: Text<'_>) -> PyResult<PyOutcome> {
        expect!(
            self,
            now,
            Outcome,
            Command::Demote { session: session.into_string(), owner: owner.into_string() }
        )
    }

    fn prefetch(&self, now: i64, session: Text<'_>, owner: Text<'_>) -> PyResult<PyOutcome> {
        expect!(
            self,
            now,
            Outcome,
            Command::Prefetch { session: session.into_string(), owner: owner.into_string() }
        )
    }

    fn flush(&self, now: i64, session: Text<'_>, owner: Text<'_>) -> PyResult<PyOutcome> {
        expect!(
            self,
            now,
            Outcome,
            Command::Flush { session: session.into_string(), owner: owner.into_string() }
        )
    }

    fn retain(&self, now: i64, session: Text<'_>, ttl: i64, owner: Text<'_>) -> PyResult<PyOutcome> {
        expect!(
            self,
            now,
            Outcome,
            Command::Retain { session: session.into_string(), ttl, owner: owner.into_string() }
        )
    }

    fn share(
        &self,
        now: i64,
        session: Text<'_>,
        forks: u32,
        ttl: i64,
        owner: Text<'_>,
    ) -> PyResult<PyOutcome> {
        expect!(
            self,
            now,
            Outcome,
            Command::Share { session: session.into_string(), forks, ttl, owner: owner.into_string() }
        )
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
        kind: Text<'_>,
        phase: Text<'_>,
        session: Text<'_>,
        request: Text<'_>,
        reason: Text<'_>,
        cause: u64,
        op: u64,
        slot: Option<u32>,
        pages: u32,
        tokens: u32,
        bytes: u64,
        duration: i64,
        tier_from: Text<'_>,
        tier_to: Text<'_>,
        detail: Text<'_>,
    ) -> PyResult<u64> {
        let note = Note {
            kind: words::parse("kind", &kind, Kind::ALL, Kind::parse, |k| k.name())?,
            phase: words::parse("phase", &phase, Phase::ALL, Phase::parse, |p| p.name())?,
            session: session.into_string(),
            request: request.into_string(),
            reason: words::reason(&reason)?,
            cause,
            op,
            slot,
            pages,
            tokens: tokens.into(),
            bytes,
            duration,
            tier_from: words::optional_tier(&tier_from)?,
            tier_to: words::optional_tier(&tier_to)?,
            detail: detail.into_string(),
        };
        expect!(self, now, Number, Command::Note { note })
    }

    fn pools(&self) -> PyResult<Vec<PyPoolInfo>> {
        Ok(self.inner()?.core.state.pool_reports().into_iter().map(Into::into).collect())
    }

    fn sessions(&self) -> PyResult<Vec<PySessionInfo>> {
        Ok(self.inner()?.core.state.session_reports().into_iter().map(Into::into).collect())
    }

    fn session(&self, name: Text<'_>) -> PyResult<PySessionInfo> {
        let inner = self.inner()?;
        let key = inner.core.known(&name)?;
        let state = &inner.core.state;
        let session = state.sessions.get(&key).ok_or(Refusal::UnknownSession(name.into_string()))?;
        Ok(state.session_report(&key, session).into())
    }

    fn seq(&self) -> PyResult<u64> {
        Ok(self.inner()?.core.state.seq)
    }

    fn state_hash(&self) -> PyResult<String> {
        Ok(format!("{:032x}", self.inner()?.core.state.hash()))
    }

    fn observed_hash(&self) -> PyResult<String> {
        Ok(format!("{:032x}", self.inner()?.core.state.observed_hash()))
    }

    fn policy_faults(&self) -> PyResult<Vec<(&'static str, &'static str, &'static str, String)>> {
        let faults = self.inner()?.core.policy_faults();
        Ok(faults.into_iter().map(|f| (f.component, f.tier.name(), f.policy, f.why)).collect())
    }

    fn check(&self) -> PyResult<()> {
        Ok(self.inner()?.core.check().map_err(Refusal::Internal)?)
    }

    fn keyframe_begin(&self) -> PyResult<u64> {
        let mut inner = self.inner()?;
        match &inner.fault {
            Some(fault) => Err(Refusal::Internal(fault.clone()).into()),
            None => Ok(inner.core.keyframe_begin()),
        }
    }

    #[pyo3(signature = (max_records = 4096))]
    fn keyframe_slice<'py>(
        &self,
        py: Python<'py>,
        max_records: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut inner = self.inner()?;
        keyframe_slice(py, max_records, |most| inner.core.keyframe_slice(most))
    }

    fn log(&self) -> PyResult<PyLog> {
        Ok(PyLog(self.inner()?.core.log.clone()))
    }

    fn journal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.inner()?.journal.as_ref().map(Journal::piece).unwrap_or_default()))
    }

    fn drain_journal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let taken = self.inner()?.journal.as_mut().map(Journal::take).unwrap_or_default();
        Ok(PyBytes::new(py, &taken))
    }

    #[staticmethod]
    #[pyo3(signature = (journal, *, policies = false))]
    fn replay(journal: &[u8], policies: bool) -> PyResult<Self> {
        let mut make = |name: &str| match name.contains(':') && !policies {
            true => Err(Refusal::BadArgument(format!(
                "the journal names the policy {name:?}, which would be imported and called; pass policies=True if you trust it"
            ))),
            false => make_policy(name),
        };
        let core =
            guard(|| Core::replay(journal, &mut make)).unwrap_or_else(|panic| Err(Refusal::Log(panic)))?;
        Ok(PyCore::of(core, None))
    }
}
