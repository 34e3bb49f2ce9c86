//! Namespaces: the roots under which pages can meet, and their end.

use crate::core::Core;
use crate::digest::root_digest;
use crate::evict::idle;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;

impl Core {
    pub fn open_namespace(&mut self, name: &str) -> Answer<u32> {
        if name.is_empty() {
            return Err(Refusal::BadArgument("a namespace needs a name".into()));
        }
        let same = self.state.namespaces.iter().find(|(_, n)| &*n.name == name && !n.retired);
        if let Some((id, _)) = same {
            return Ok(id);
        }
        let id = self.add_namespace(name)?;
        self.settle()?;
        Ok(id)
    }

    pub(crate) fn add_namespace(&mut self, name: &str) -> Answer<u32> {
        let id = self.state.namespaces.choose(1)[0].first;
        let mut row = Row::new(Kind::Config, Phase::Namespace);
        (row.namespace, row.node) = (Some(id), Some(self.state.nodes.choose(1)[0].first));
        row.detail = Some(name.into());
        self.root_digests.resize(self.root_digests.len().max(id as usize + 1), [0; 32]);
        self.root_digests[id as usize] = root_digest(name, &self.config.secret);
        self.emit(row)?;
        Ok(id)
    }

    /// Nothing matches under a namespace any more, in any tier: at once, by one flag. Its pages go as far as nobody
    /// holds them, the rest when it is let go. Returns the pages that went now.
    pub fn retire(&mut self, id: u32) -> Answer<u64> {
        self.root(id)?;
        let mut row = Row::new(Kind::Config, Phase::Retire);
        row.namespace = Some(id);
        self.emit(row)?;
        let count =
            |core: &Core| core.state.slots.iter().filter(|(_, s)| s.here != 0 && s.component == 0).count();
        let before = count(self);
        let mut nodes: Vec<u32> =
            self.state.nodes.iter().filter(|(_, n)| n.namespace == id).map(|(i, _)| i).collect();
        nodes.sort_by_key(|node| self.state.path_pages(*node));
        self.dirty.extend(nodes);
        self.settle()?;
        Ok(before.saturating_sub(count(self)) as u64)
    }

    pub(crate) fn drop_retired(&mut self, node: u32) -> Answer<()> {
        let retired =
            |n: &crate::records::Node| self.state.namespaces.get(n.namespace).is_some_and(|n| n.retired);
        let Some(record) = self.state.nodes.get(node).filter(|n| retired(n)) else { return Ok(()) };
        if record.locks > 0 {
            return Ok(());
        }
        let slots: Vec<u32> = record.slots().iter().map(|(_, slot)| slot).collect();
        for tier in Tier::ALL {
            let free = |s: &u32| self.state.slots.get(*s).is_some_and(|slot| idle(slot, *tier));
            let copies: Vec<u32> = slots.iter().copied().filter(free).collect();
            let like = Row { reason: Reason::Retired, ..Row::new(Kind::Evict, Phase::None) };
            self.drop_copies(&copies, *tier, like)?;
        }
        Ok(())
    }
}
