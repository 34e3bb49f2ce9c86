//! A panic, a fault of ours or of a library's, ends as an error that says where; never as noise on a terminal.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics of this module are kept for `guard` and not printed.
pub fn quiet_panics() {
    set_hook(Box::new(|panic| LAST.set(panic.to_string())));
}

/// What the work gives, or where and why it panicked.
pub fn guard<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| LAST.take().replace('\n', " "))
}
