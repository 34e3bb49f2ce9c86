//! What the core refuses. The state is as it was before the call.

#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    BadArgument(String),
    UnknownSession(String),
    UnknownOperation(String),
    UnknownLease(String),
    UnknownReceipt(String),
    Log(String),
    /// A row that did not fit the state: a fault of ours, never of the caller.
    Internal(String),
}

pub type Answer<T> = Result<T, Refusal>;
