//! How a call reaches a core: one at a time, in the journal before it is done, and without a panic back.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use super::core::PyCore;
use crate::command::{Command, Reply};
use crate::core::Core;
use crate::guard::guard;
use crate::journal::Journal;
use crate::refusal::{Answer, Refusal};

pub struct Inner {
    pub core: Core,
    pub journal: Option<Journal>,
    /// After an internal fault the state may be half changed; nothing more is decided on it.
    pub fault: Option<String>,
}

impl Inner {
    pub(super) fn component(&self, name: &str) -> Answer<usize> {
        let state = &self.core.state;
        let known = || state.slotted().map(|c| state.name_of(c)).collect::<Vec<_>>().join(", ");
        let found = state.component(name).filter(|c| state.slotted().any(|known| known == *c));
        found.ok_or_else(|| {
            Refusal::BadArgument(format!("component is {name:?}; it must be one of {}", known()))
        })
    }
}

thread_local! {
    /// A command runs on this thread: whoever calls a core now is a user's policy that the command has asked.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

impl PyCore {
    pub(super) fn of(core: Core, journal: Option<Journal>) -> Self {
        let asks_python = !core.may_fail.is_empty();
        PyCore { key: core.key_kind(), asks_python, inner: Mutex::new(Inner { core, journal, fault: None }) }
    }

    /// Lets go of the GIL while it waits: who has the lock may be a user's policy, which needs it.
    pub(super) fn inner(&self) -> Answer<MutexGuard<'_, Inner>> {
        if RUNNING.get() {
            return Err(Refusal::BadArgument(
                "a policy may not call a core: it is asked in the middle of a command".into(),
            ));
        }
        Ok(Python::attach(|py| self.inner.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner))
    }

    /// A command whose answer says nothing but that it was done.
    pub(super) fn done(&self, now: i64, command: Command) -> PyResult<()> {
        self.run(now, command)?;
        Ok(())
    }

    pub(super) fn run(&self, now: i64, command: Command) -> Answer<Reply> {
        let mut inner = self.inner()?;
        if let Some(fault) = &inner.fault {
            return Err(Refusal::Internal(fault.clone()));
        }
        if let Some(journal) = &mut inner.journal {
            journal.append(now, &command);
        }
        let core = &mut inner.core;
        RUNNING.set(true);
        let answer = guard(|| core.run(now, &command))
            .unwrap_or_else(|panic| Err(Refusal::Internal(format!("{panic}; in {command:.200?}"))));
        RUNNING.set(false);
        if let Err(Refusal::Internal(fault)) = &answer {
            inner.fault = Some(fault.clone());
        }
        answer
    }
}
