//! What each row does to the state. The live core and a replica both change by this and nothing else.

mod copies;
mod holds;
mod tree;

use crate::bitmap::Bitmap;
use crate::families;
use crate::names::{FamilyName, Kind, Name, Phase, Reason};
use crate::records::{Component, NONE, Namespace, Node};
use crate::row::Row;
use crate::state::{Applied, MAX_TIER_PAGES, State};

/// Most components of an engine.
pub const MOST_COMPONENTS: usize = 16;

fn need<T: Clone>(field: &Option<T>, name: &str, row: &Row) -> Result<T, String> {
    let missing = || format!("{}/{} row {} lacks {name}", row.kind.name(), row.phase.name(), row.seq);
    field.clone().ok_or_else(missing)
}

impl State {
    pub fn apply(&mut self, row: &Row) -> Applied {
        if row.seq != self.seq + 1 {
            return Err(format!("row {} does not follow row {}", row.seq, self.seq));
        }
        match row.kind {
            Kind::Config => self.apply_config(row)?,
            Kind::Session => self.apply_session(row)?,
            Kind::Lock => self.apply_lock(row)?,
            Kind::Lease => self.apply_lease(row)?,
            Kind::Split => self.apply_split(row)?,
            Kind::Alloc => self.apply_alloc(row)?,
            Kind::Insert => self.apply_insert(row)?,
            Kind::Free => self.apply_free(row)?,
            Kind::Evict => self.apply_evict(row)?,
            Kind::Backup | Kind::Load | Kind::Prefetch | Kind::Offload => self.apply_move(row)?,
            // These tell; they change nothing.
            Kind::Request | Kind::Match | Kind::Tool | Kind::Hint | Kind::Canary => {}
            Kind::Pd | Kind::Rank | Kind::Keyframe | Kind::Gap => {}
        }
        self.seq = row.seq;
        self.clock = row.clock;
        Ok(())
    }

    fn apply_config(&mut self, row: &Row) -> Applied {
        match row.phase {
            Phase::Engine => self.page_size = need(&row.tokens, "tokens", row)? as u32,
            Phase::Component => self.add_component(row)?,
            Phase::Pool => {
                let tier = need(&row.tier_to, "tier_to", row)?;
                let pages = need(&row.pages, "pages", row)?;
                if pages > MAX_TIER_PAGES {
                    return Err(format!("a tier of {pages} pages is too large"));
                }
                let observed = row.reason == Reason::Observed;
                let component = self.component_of(row)?;
                let pool = self.pool(component, tier)?;
                (pool.pages, pool.observed) = (Bitmap::new(pages), observed);
                if observed {
                    self.slots.observe(tier);
                }
            }
            Phase::Namespace => {
                let (id, root) = (need(&row.namespace, "namespace", row)?, need(&row.node, "node", row)?);
                let name = need(&row.detail, "detail", row)?;
                self.new_node(root, Node::new(id, NONE, 0, row.clock, self.components.len()))?;
                if !self.namespaces.insert(id, Namespace { name, root, retired: false }) {
                    return Err(format!("namespace {id} exists"));
                }
            }
            Phase::Retire => {
                let id = need(&row.namespace, "namespace", row)?;
                let found = self.namespaces.update(id, |namespace| namespace.retired = true);
                found.ok_or_else(|| format!("namespace {id} does not exist"))?;
            }
            _ => {}
        }
        self.config = self.config_hash();
        Ok(())
    }

    /// `policy` has the family, `detail` what it follows, `tokens` the family's number.
    fn add_component(&mut self, row: &Row) -> Applied {
        let name = need(&row.component, "component", row)?;
        let kind = need(&row.policy, "policy", row)?;
        let kind = FamilyName::parse(kind).ok_or_else(|| format!("unknown family {kind:?}"))?;
        if self.component(name).is_some()
            || self.components.len() >= MOST_COMPONENTS
            || self.nodes.count() > 0
        {
            return Err(format!("component {name:?} exists, or comes too late"));
        }
        let follows = match &row.detail {
            Some(other) => Some(self.component(other).ok_or_else(|| format!("no component {other:?}"))?),
            None => None,
        };
        let number = row.tokens.unwrap_or(0) as u32;
        let followed = follows.map(|c| &self.components[c].family);
        let family = families::make(kind, number, self.page_size, followed)?;
        let page_bytes = row.bytes.unwrap_or(0);
        self.components.push(Component { name, kind, family, follows, number, page_bytes });
        self.pools.push(Default::default());
        Ok(())
    }

    /// The component that a row is about; `full` when it does not say.
    fn component_of(&self, row: &Row) -> Result<u8, String> {
        let Some(name) = row.component else { return Ok(0) };
        let known = |known: &Name| std::ptr::eq(*known, name) || *known == name;
        let found = self.components.iter().position(|c| known(&c.name));
        found
            .map(|c| c as u8)
            .ok_or_else(|| format!("row {} is about {name:?}, no component of this engine", row.seq))
    }
}
