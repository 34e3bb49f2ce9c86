//! What each row does to the state. The live core and a replica both change by this and nothing else.

mod copies;
mod holds;
mod tree;

use crate::bitmap::Bitmap;
use crate::names::{Kind, Phase};
use crate::records::{NONE, Namespace, Node};
use crate::row::Row;
use crate::state::{Applied, MAX_TIER_PAGES, State};
use tree::fresh_node;

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
            Phase::Engine => {
                self.page_size = need(&row.tokens, "tokens", row)? as u32;
                self.page_bytes = need(&row.bytes, "bytes", row)?;
            }
            Phase::Pool => {
                let tier = need(&row.tier_to, "tier_to", row)?;
                let pages = need(&row.pages, "pages", row)?;
                if pages > MAX_TIER_PAGES {
                    return Err(format!("a tier of {pages} pages is too large"));
                }
                self.pools[tier as usize].pages = Bitmap::new(pages);
            }
            Phase::Namespace => {
                let (id, root) = (need(&row.namespace, "namespace", row)?, need(&row.node, "node", row)?);
                let name = need(&row.detail, "detail", row)?;
                self.new_node(root, Node { namespace: id, ..fresh_node(NONE, 0, row.clock) })?;
                if !self.namespaces.insert(id, Namespace { name, root }) {
                    return Err(format!("namespace {id} exists"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
