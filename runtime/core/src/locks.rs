//! Locks: a path is held for a request, or a hint, until its receipt comes back.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::{Core, For, Live};
use crate::names::{Kind, Phase, Reason};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;

impl Core {
    /// Hold the path to `node`; counts as a use.
    pub(crate) fn lock(
        &mut self,
        node: u32,
        session: Option<Arc<str>>,
        request: Option<Arc<str>>,
        live: Live,
    ) -> Answer<u64> {
        let receipt = self.number();
        let mut row = Row::new(Kind::Lock, Phase::Acquire);
        (row.receipt, row.node, row.cause) = (Some(receipt), Some(node), Some(live.seq));
        row.end_page = Some(self.state.path_pages(node));
        (row.session, row.request) = (session.clone(), request);
        self.set_user(node, &session);
        self.emit(row)?;
        self.live.insert(receipt, live);
        Ok(receipt)
    }

    /// One more lock on what a lock holds, with a receipt of its own.
    pub fn hold(&mut self, receipt: u64) -> Answer<u64> {
        self.given(receipt)?;
        let (node, seq) = (self.receipt_node(receipt)?, self.live_of(receipt)?.seq);
        let record = self.state.receipts.get(&receipt);
        let (session, request) = record.map(|r| (r.session.clone(), r.request.clone())).unwrap_or_default();
        let live = Live { tail: Arc::default(), from: 0, branch: 0, seq, failed: BTreeSet::new() };
        let again = self.lock(node, session, request, live)?;
        self.settle()?;
        Ok(again)
    }

    pub fn release(&mut self, receipt: u64) -> Answer<()> {
        self.given(receipt)?;
        let mine =
            |(_, op): &(&u64, &crate::records::Op)| op.kind == Kind::Alloc && op.receipt == Some(receipt);
        let open: Vec<u64> = self.state.ops.iter().filter(mine).map(|(id, _)| *id).collect();
        for op in open {
            self.free_reservation(op, Reason::Aborted)?;
        }
        self.unlock(receipt)?;
        self.settle()
    }

    pub(crate) fn unlock(&mut self, receipt: u64) -> Answer<()> {
        self.live.remove(&receipt);
        let mut row = Row::new(Kind::Lock, Phase::Release);
        row.receipt = Some(receipt);
        self.emit(row).map(|_| ())
    }

    /// A lock that was given to a caller, and not one that a hint holds.
    pub(crate) fn given(&self, receipt: u64) -> Answer<()> {
        if self.is_of_hint(receipt) {
            Err(unknown_receipt(receipt))
        } else {
            self.live_of(receipt).map(|_| ())
        }
    }

    pub(crate) fn live_of(&self, receipt: u64) -> Answer<&Live> {
        self.live.get(&receipt).ok_or_else(|| unknown_receipt(receipt))
    }

    pub(crate) fn receipt_node(&self, receipt: u64) -> Answer<u32> {
        self.live_of(receipt)?;
        let node = self.state.receipts.get(&receipt).map(|r| r.node);
        node.ok_or_else(|| Refusal::Internal(format!("lock {receipt} has no record")))
    }

    pub(crate) fn for_receipt(&self, receipt: u64) -> Answer<For> {
        let seq = self.live_of(receipt)?.seq;
        let record = self.state.receipts.get(&receipt);
        let (session, request) = record.map(|r| (r.session.clone(), r.request.clone())).unwrap_or_default();
        Ok(For { session, request, receipt: Some(receipt), cause: Some(seq) })
    }
}

fn unknown_receipt(receipt: u64) -> Refusal {
    Refusal::UnknownReceipt(format!("lock {receipt} is not held: never given, or released already"))
}
