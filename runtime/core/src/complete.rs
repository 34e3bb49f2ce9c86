//! What became of a move: the shell's answer, a copy that was found damaged, and moves that take too long.

use std::collections::HashMap;

use crate::core::{Core, For, group};
use crate::moves::OFFLOAD;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::records::{NONE, Op};
use crate::refusal::{Answer, Refusal};
use crate::reserve::unknown_operation;
use crate::row::Row;

/// Result of one page in a completion.
pub const ARRIVED: u8 = 1;
pub const SOURCE_DAMAGED: u8 = 2;

impl Core {
    pub fn complete(
        &mut self,
        id: u64,
        results: &[u8],
        bytes: u64,
        duration: i64,
        detail: &str,
    ) -> Answer<()> {
        let op = self.state.ops.get(&id).filter(|op| op.kind != Kind::Alloc).cloned();
        let op = op.ok_or_else(|| unknown_operation(id))?;
        if results.len() != op.slots.len() {
            return Err(Refusal::BadArgument(format!(
                "{} results for {} pages",
                results.len(),
                op.slots.len()
            )));
        }
        if let Some(result) = results.iter().find(|r| **r > SOURCE_DAMAGED) {
            return Err(Refusal::BadArgument(format!("a page's result is {result}; it must be 0, 1 or 2")));
        }
        let from = op.tier_from.ok_or_else(|| Refusal::Internal("a move from nowhere".into()))?;
        let mut result_of: HashMap<u32, u8> = op.slots.iter().copied().zip(results.iter().copied()).collect();
        for slot in op.slots.iter().filter(|slot| self.torn.remove(&(id, **slot))) {
            result_of.insert(*slot, 0);
        }
        // What was read from a copy that is known to be damaged is no copy.
        let bad = |slot: &&u32| self.state.slots.get(**slot).is_some_and(|s| s.bad & from.bit() != 0);
        for slot in op.slots.iter().filter(bad) {
            result_of
                .entry(*slot)
                .and_modify(|result| *result = if *result == ARRIVED { 0 } else { *result });
        }
        let mut row = Row::new(op.kind, Phase::Commit);
        row.detail = (!detail.is_empty()).then(|| detail.into());
        (row.op, row.receipt) = (Some(id), op.receipt);
        (row.session, row.request) = (op.session.clone(), op.request.clone());
        (row.tier_from, row.tier_to) = (Some(from), Some(op.tier_to));
        row.component = Some(self.state.name_of(op.component as usize));
        for (run, result) in group(&op.slots, |slot| result_of[slot]) {
            let mut row = Row { slot_from: Some(run.first), pages: Some(run.count), ..row.clone() };
            row.reason = match result {
                _ if op.draining => Reason::Aborted,
                ARRIVED => Reason::None,
                SOURCE_DAMAGED => Reason::Damaged,
                _ => Reason::Failed,
            };
            if row.reason != Reason::None {
                row.phase = Phase::Fail;
            }
            self.emit(row)?;
        }
        let arrived: Vec<u32> = if op.draining {
            Vec::new()
        } else {
            op.slots.iter().copied().filter(|s| result_of[s] == ARRIVED).collect()
        };
        let done = Row {
            phase: Phase::Done,
            pages: Some(arrived.len() as u32),
            bytes: Some(bytes),
            duration: Some(duration),
            ..row
        };
        let done = self.emit(done)?;
        for slot in op.slots.iter().filter(|s| result_of[s] == SOURCE_DAMAGED) {
            self.mark_damaged(*slot, from, done)?;
        }
        if let Some(live) = op.receipt.and_then(|receipt| self.live_mut(receipt)) {
            live.failed.extend(op.slots.iter().filter(|s| result_of[s] != ARRIVED));
        }
        if op.kind == Kind::Backup && self.config.write_through {
            let admit = self.config.admit[Tier::Storage as usize - 1];
            let wanted = |s: &u32| {
                self.state.slots.get(*s).is_some_and(|s| s.lacks(Tier::Storage) && self.uses(s) >= admit)
            };
            let slots: Vec<u32> = arrived.into_iter().filter(wanted).collect();
            let asker = For { session: op.session, request: op.request, receipt: None, cause: Some(done) };
            self.start_move(OFFLOAD, op.component as usize, &slots, &asker)?;
        }
        self.hints_after(id)?;
        self.settle()
    }

    /// Take a damaged copy out of use. It goes when nobody holds it any more, often at once.
    fn mark_damaged(&mut self, slot: u32, tier: Tier, cause: u64) -> Answer<bool> {
        let Some(record) = self.state.slots.get(slot).filter(|s| s.usable(tier)) else { return Ok(false) };
        let mut row = Row::new(Kind::Evict, Phase::Marked);
        (row.node, row.slot_from, row.pages) = (Some(record.node), Some(slot), Some(1));
        (row.tier_from, row.end_page, row.cause) = (Some(tier), Some(record.position + 1), Some(cause));
        (row.session, row.reason) = (self.user(record.node), Reason::Damaged);
        row.component = Some(self.state.name_of(record.component as usize));
        self.emit(row)?;
        Ok(true)
    }

    pub fn damaged(&mut self, tier: Tier, slot: u32, generation: u32) -> Answer<bool> {
        if self.state.slots.get(slot).is_none_or(|s| s.node == NONE)
            || self.state.slots.generation(slot) != generation
        {
            return Ok(false);
        }
        let marked = self.mark_damaged(slot, tier, self.state.seq)?;
        self.settle()?;
        Ok(marked)
    }

    /// Give up moves that have taken too long. Their pages stay fenced until the shell's completion arrives.
    pub(crate) fn abort_late(&mut self) -> Answer<()> {
        if self.config.move_timeout == 0 {
            return Ok(());
        }
        let late = |op: &Op| op.deadline > 0 && op.deadline <= self.now && !op.draining;
        for id in self.state.ops.wanted(late) {
            let Some(kind) = self.state.ops.get(&id).map(|op| op.kind) else { continue };
            let mut row = Row::new(kind, Phase::Abort);
            (row.op, row.reason) = (Some(id), Reason::Timeout);
            self.emit(row)?;
        }
        Ok(())
    }
}
