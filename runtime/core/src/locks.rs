//! Locks: a path is held for a request, or a hint, until its receipt comes back.

use std::sync::Arc;

use crate::core::{Core, For, Live};
use crate::names::{Kind, Phase, Reason};
use crate::records::Receipt;
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
        self.set_user(node, &session);
        (row.session, row.request) = (session, request);
        self.emit(row)?;
        if let Some(number) = self.state.receipts.number(&receipt) {
            *self.live.entry(number) = Some(live);
        }
        Ok(receipt)
    }

    /// One more lock on what a lock holds, with a receipt of its own.
    pub fn hold(&mut self, receipt: u64) -> Answer<u64> {
        let (record, live) = self.given(receipt)?;
        let (node, seq) = (record.node, live.seq);
        let (session, request) = (record.session.clone(), record.request.clone());
        let again = self.lock(node, session, request, Live { seq, ..Live::default() })?;
        self.settle()?;
        Ok(again)
    }

    pub fn release(&mut self, receipt: u64) -> Answer<()> {
        let open = self.given(receipt)?.1.reservations.clone();
        for op in open {
            self.free_reservation(op, Reason::Aborted)?;
        }
        self.unlock(receipt)?;
        self.settle()
    }

    pub(crate) fn unlock(&mut self, receipt: u64) -> Answer<()> {
        let number = self.state.receipts.number(&receipt);
        number.into_iter().for_each(|number| self.live.clear(number));
        let mut row = Row::new(Kind::Lock, Phase::Release);
        row.receipt = Some(receipt);
        self.emit(row).map(|_| ())
    }

    /// A lock that was given to a caller, and not one that a hint holds.
    pub(crate) fn given(&self, receipt: u64) -> Answer<(&Receipt, &Live)> {
        let found = self.held(receipt).filter(|(_, live)| !live.of_hint);
        found.ok_or_else(|| unknown_receipt(receipt))
    }

    fn held(&self, receipt: u64) -> Option<(&Receipt, &Live)> {
        let (number, record) = self.state.receipts.find(&receipt)?;
        Some((record, self.live.get(number)?.as_ref()?))
    }

    pub(crate) fn live_of(&self, receipt: u64) -> Answer<&Live> {
        self.held(receipt).map(|(_, live)| live).ok_or_else(|| unknown_receipt(receipt))
    }

    pub(crate) fn live_mut(&mut self, receipt: u64) -> Option<&mut Live> {
        self.live.get_mut(self.state.receipts.number(&receipt)?)?.as_mut()
    }

    pub(crate) fn receipt_node(&self, receipt: u64) -> Answer<u32> {
        self.held(receipt).map(|(record, _)| record.node).ok_or_else(|| unknown_receipt(receipt))
    }

    pub(crate) fn for_receipt(&self, receipt: u64) -> Answer<For> {
        let (record, live) = self.held(receipt).ok_or_else(|| unknown_receipt(receipt))?;
        let (session, request) = (record.session.clone(), record.request.clone());
        Ok(For { session, request, receipt: Some(receipt), cause: Some(live.seq) })
    }
}

fn unknown_receipt(receipt: u64) -> Refusal {
    Refusal::UnknownReceipt(format!("lock {receipt} is not held: never given, or released already"))
}
