//! Policies of the user's own that have failed. Eviction goes on by the last use; the log says so, once.

use crate::core::Core;
use crate::names::{Kind, Name, Phase, Reason, Tier};
use crate::refusal::Answer;
use crate::row::Row;

/// A policy that is not asked any more, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub component: Name,
    pub tier: Tier,
    pub policy: Name,
    pub why: String,
}

impl Core {
    /// After a command, which may have asked any of them.
    pub(crate) fn tell_faults(&mut self) -> Answer<()> {
        let failed = |(component, tier): &mut (usize, Tier)| {
            self.order.queue(*component, *tier).policy().fault().is_some()
        };
        let failed: Vec<(usize, Tier)> = self.may_fail.extract_if(.., failed).collect();
        for (component, tier) in failed {
            let fault = self.fault_of(component, tier);
            let mut row = Row::new(Kind::Config, Phase::Fail);
            (row.reason, row.detail) =
                (Reason::Raised, fault.as_ref().map(|fault| fault.why.as_str().into()));
            (row.component, row.tier_to) = (Some(self.state.name_of(component)), Some(tier));
            row.policy = Some(self.policy_names[tier as usize]);
            self.emit(row)?;
        }
        Ok(())
    }

    pub fn policy_faults(&self) -> Vec<Fault> {
        let places = self.state.slotted().flat_map(|c| Tier::ALL.iter().map(move |tier| (c, *tier)));
        places.filter_map(|(component, tier)| self.fault_of(component, tier)).collect()
    }

    fn fault_of(&self, component: usize, tier: Tier) -> Option<Fault> {
        let why = self.order.queue(component, tier).policy().fault()?.to_string();
        let policy = self.policy_names[tier as usize];
        Some(Fault { component: self.state.name_of(component), tier, policy, why })
    }
}
