//! A policy of the user's own: a Python class, named by module path.

use std::collections::HashMap;
use std::fmt::Display;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::errors::bad_argument;
use super::text::OwnText;
use super::words;
use crate::policy::{Facts, NAMES, Policy, Score, Verdict, by_name};
use crate::refusal::{Answer, Refusal};

/// An eviction policy for each tier, "lru" unless chosen. None can be chosen for a tier that is not there, or whose
/// evictions are the engine's.
pub fn choose_policies(
    policies: HashMap<OwnText, OwnText>,
    pages: [u32; 3],
    observed_device: bool,
) -> PyResult<[String; 3]> {
    let mut chosen = [(); 3].map(|()| "lru".to_string());
    for (OwnText(name), OwnText(policy)) in policies {
        let tier = words::tier(&name)? as usize;
        if pages[tier] == 0 {
            let why = if tier == 0 && observed_device {
                "the engine owns its device, and evicts there itself".to_string()
            } else {
                format!("{name} is 0 pages: there is no such tier")
            };
            return Err(bad_argument(&format!("policies has {policy:?} for {name:?}, but {why}")));
        }
        chosen[tier] = policy;
    }
    Ok(chosen)
}

/// A policy that a configuration names: one of ours, or a class of the user's by its module path.
pub fn make_policy(name: &str) -> Answer<Box<dyn Policy>> {
    match by_name(name) {
        Some(policy) => Ok(policy),
        None if name.contains(':') => Ok(Box::new(PythonPolicy::new(name)?)),
        None => Err(Refusal::BadArgument(format!(
            "policy is {name:?}; it must be one of {}, or a class of yours as module.path:Class",
            NAMES.join(", ")
        ))),
    }
}

/// What a Python policy is told of one candidate; see `policy::Facts`.
#[pyclass(frozen, get_all, module = "runtime._core", name = "Facts")]
pub struct PyFacts {
    now: i64,
    created: i64,
    last_use: i64,
    uses: u32,
    pages: u32,
    depth: u32,
    page_tokens: u32,
    page_bytes: u64,
    priority: i32,
    sessions: u32,
    superseded: bool,
    returns_at: i64,
    identity: u64,
}

impl From<Facts> for PyFacts {
    fn from(f: Facts) -> Self {
        PyFacts {
            now: f.now,
            created: f.created,
            last_use: f.last_use,
            uses: f.uses,
            pages: f.pages,
            depth: f.depth,
            page_tokens: f.page_tokens,
            page_bytes: f.page_bytes,
            priority: f.priority,
            sessions: f.sessions,
            superseded: f.superseded,
            returns_at: f.returns_at,
            identity: f.identity,
        }
    }
}

/// Characters of what a policy raised or answered.
const MOST_SHOWN: usize = 200;

/// Calls a Python object. What it raises, or an answer that is no score, ends its say: from then on this policy
/// answers the last use, and `fault` says why.
pub struct PythonPolicy {
    path: String,
    object: Py<PyAny>,
    has_victim: bool,
    fault: Option<String>,
}

impl PythonPolicy {
    /// Imports `package.module:Class` and makes one. A second one is made for trial and asked once of
    /// everything, so that a policy that cannot answer is refused here and not in the middle of a request.
    pub fn new(path: &str) -> Answer<Self> {
        Python::attach(|py| Self::import(py, path))
    }

    fn import(py: Python<'_>, path: &str) -> Answer<Self> {
        let bad = |why: &dyn Display| Refusal::BadArgument(format!("policy is {path:?}; {why}"));
        let (module, class) = path
            .split_once(':')
            .filter(|(module, class)| !module.is_empty() && !class.is_empty())
            .ok_or_else(|| bad(&"it must be a known name, or package.module:Class"))?;
        let make = |class: &Bound<'_, PyAny>| {
            let object = class.call0()?;
            let has_victim = object.hasattr("on_victim")?;
            let made =
                PythonPolicy { path: path.to_string(), object: object.unbind(), has_victim, fault: None };
            PyResult::Ok(made)
        };
        let class = py
            .import(module)
            .and_then(|module| module.getattr(class))
            .map_err(|error| bad(&format!("it cannot be imported: {error}")))?;
        let made = make(&class).map_err(|error| bad(&format!("it cannot be made: {error}")))?;
        for method in ["on_insert", "on_hit", "on_remove"] {
            let is = made.object.bind(py).getattr(method).is_ok_and(|m| m.is_callable());
            if !is {
                return Err(bad(&format!("it has no method {method}")));
            }
        }
        let mut trial = make(&class).map_err(|error| bad(&format!("it cannot be made twice: {error}")))?;
        let facts = Facts { now: 1, uses: 1, pages: 1, page_tokens: 1, page_bytes: 1, ..Facts::default() };
        trial.on_insert(0, &facts);
        trial.on_hit(0, &facts);
        trial.on_victim(0, &facts);
        trial.on_remove(0, facts.identity, true);
        match trial.fault {
            Some(fault) => Err(bad(&format!("on trial, {fault}"))),
            None => Ok(made),
        }
    }

    /// None when it has no say any more, has just lost it, or was interrupted.
    fn ask<T>(
        &mut self,
        method: &str,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Result<T, String>>,
    ) -> Option<T> {
        if self.fault.is_some() {
            return None;
        }
        let answer = Python::attach(|py| match call(self.object.bind(py)) {
            Ok(answer) => Some(answer),
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                // Meant for whoever called the core: it comes again when the command has ended.
                unsafe { ffi::PyErr_SetInterrupt() };
                None
            }
            Err(error) => Some(Err(format!("raised {:.MOST_SHOWN$}", error.to_string()))),
        })?;
        answer.map_err(|why| self.fault = Some(format!("{method} {why}"))).ok()
    }

    fn score(&mut self, method: &str, item: u32, facts: &Facts) -> Score {
        let answer = self.ask(method, |object| {
            let answer = object.call_method1(method, (item, PyFacts::from(*facts)))?;
            Ok(score_of(&answer))
        });
        answer.unwrap_or(Score::of(facts.last_use))
    }
}

fn score_of(answer: &Bound<'_, PyAny>) -> Result<Score, String> {
    if answer.is_instance_of::<PyBool>() {
        return Err("answered a bool; it must be an int".to_string());
    }
    let shown = || answer.repr().map_or_else(|_| "something".to_string(), |text| text.to_string());
    let wrong = |_| format!("answered {:.MOST_SHOWN$}; it must be an int of 64 bits", shown());
    answer.extract::<i64>().map(Score::of).map_err(wrong)
}

impl Policy for PythonPolicy {
    fn name(&self) -> &str {
        &self.path
    }

    fn on_insert(&mut self, item: u32, facts: &Facts) -> Score {
        self.score("on_insert", item, facts)
    }

    fn on_hit(&mut self, item: u32, facts: &Facts) -> Score {
        self.score("on_hit", item, facts)
    }

    fn on_remove(&mut self, item: u32, identity: u64, evicted: bool) {
        self.ask("on_remove", |object| {
            object.call_method1("on_remove", (item, identity, evicted))?;
            Ok(Ok(()))
        });
    }

    fn on_victim(&mut self, item: u32, facts: &Facts) -> Verdict {
        if !self.has_victim {
            return Verdict::Take;
        }
        let answer = self.ask("on_victim", |object| {
            let answer = object.call_method1("on_victim", (item, PyFacts::from(*facts)))?;
            Ok(if answer.is_none() { Ok(Verdict::Take) } else { score_of(&answer).map(Verdict::Requeue) })
        });
        answer.unwrap_or(Verdict::Take)
    }

    fn can_fail(&self) -> bool {
        true
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    const SOURCE: &str = r#"
class Smallest:
    def on_insert(self, item, facts): return facts.pages
    def on_hit(self, item, facts): return facts.pages + 100
    def on_remove(self, item, identity, evicted): pass
    def on_victim(self, item, facts): return 1000 if item == 7 else None
class Late(Smallest):
    def on_insert(self, item, facts):
        if item == 9: raise KeyError("nine")
        return 5
class NoHit:
    def on_insert(self, item, facts): return 0
    def on_remove(self, item, identity, evicted): pass
class Float(Smallest):
    def on_hit(self, item, facts): return 0.5
class Bool(Smallest):
    def on_hit(self, item, facts): return True
class Wide(Smallest):
    def on_victim(self, item, facts): return 1 << 70
class Raises(Smallest):
    def on_remove(self, item, identity, evicted): raise ValueError("no")
class Unmade(Smallest):
    def __init__(self, size): pass
"#;

    fn made(class: &str) -> Answer<PythonPolicy> {
        Python::initialize();
        Python::attach(|py| {
            let [source, file, name] = [SOURCE, "p.py", "kvctl_policies"].map(|s| CString::new(s).unwrap());
            let module = PyModule::from_code(py, &source, &file, &name).unwrap();
            let modules = py.import("sys").unwrap().getattr("modules").unwrap();
            modules.set_item("kvctl_policies", module).unwrap();
        });
        PythonPolicy::new(class)
    }

    #[test]
    fn its_answers_are_the_scores() {
        let mut policy = made("kvctl_policies:Smallest").unwrap();
        let facts = Facts { pages: 3, ..Facts::default() };
        assert_eq!(policy.on_insert(1, &facts), Score::of(3));
        assert_eq!(policy.on_hit(1, &facts), Score::of(103));
        assert_eq!(policy.on_victim(1, &facts), Verdict::Take);
        assert_eq!(policy.on_victim(7, &facts), Verdict::Requeue(Score::of(1000)));
        policy.on_remove(1, 0, true);
        assert_eq!((policy.name(), policy.fault()), ("kvctl_policies:Smallest", None));
    }

    #[test]
    fn an_exception_ends_its_say_and_is_kept() {
        let mut policy = made("kvctl_policies:Late").unwrap();
        let facts = Facts { last_use: 42, ..Facts::default() };
        assert_eq!(policy.on_insert(1, &facts), Score::of(5));
        assert_eq!(policy.on_insert(9, &facts), Score::of(42));
        assert_eq!(policy.on_insert(1, &facts), Score::of(42), "it does not decide again");
        assert_eq!(policy.on_victim(7, &facts), Verdict::Take);
        assert_eq!(policy.fault(), Some("on_insert raised KeyError: 'nine'"));
    }

    #[test]
    fn what_cannot_decide_is_refused_with_the_reason() {
        for (path, why) in [
            ("fastest", "it must be a known name, or package.module:Class"),
            (":Smallest", "it must be a known name"),
            ("kvctl_no_such_module:A", "it cannot be imported: ModuleNotFoundError"),
            ("kvctl_policies:Missing", "it cannot be imported: AttributeError"),
            ("kvctl_policies:Unmade", "it cannot be made: TypeError"),
            ("kvctl_policies:NoHit", "it has no method on_hit"),
            ("kvctl_policies:Float", "on trial, on_hit answered 0.5; it must be an int"),
            ("kvctl_policies:Bool", "on trial, on_hit answered a bool"),
            ("kvctl_policies:Wide", "on trial, on_victim answered 1180591620717411303424;"),
            ("kvctl_policies:Raises", "on trial, on_remove raised ValueError: no"),
        ] {
            let Err(Refusal::BadArgument(text)) = made(path) else { panic!("{path} was taken") };
            assert!(text.starts_with(&format!("policy is {path:?}; {why}")), "{text}");
        }
    }
}
