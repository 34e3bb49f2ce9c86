//! What an engine is: fixed when its core is made, and the first thing in its journal.

use crate::apply::MOST_COMPONENTS;
use crate::families::{self, Shape};
use crate::names::{FamilyName, KeyKind, Tier};
use crate::refusal::{Answer, Refusal};
use crate::state::MAX_TIER_PAGES;

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub engine: String,
    pub epoch: String,
    /// Name of the first namespace.
    pub namespace: String,
    pub key: KeyKind,
    pub page_size: u32,
    /// `full` first.
    pub components: Vec<ComponentConfig>,
    /// The engine owns its device pages, and tells what is in them.
    pub observed_device: bool,
    pub secret: Vec<u8>,
    pub wall_offset: i64,
    pub now: i64,
    pub write_through: bool,
    /// Eviction policy by tier.
    pub policies: [String; 3],
    /// Uses from which a page is written down to the host, and to storage.
    pub admit: [u32; 2],
    /// How long a move may take, ns; 0 for ever.
    pub move_timeout: i64,
    /// Digests are made when somebody asks for them.
    pub defer_digests: bool,
    /// Largest share of a tier that leases may hold, in thousandths.
    pub pin_permille: u32,
    pub ghosts: u32,
    pub log_rows: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ComponentConfig {
    pub name: String,
    pub family: FamilyName,
    /// Name of the component that it goes with; empty for none.
    pub follows: String,
    /// See `families::make`.
    pub number: u32,
    /// Capacity by tier.
    pub pages: [u32; 3],
    pub page_bytes: u64,
}

impl Config {
    pub fn validate(&self) -> Answer<()> {
        if self.page_size == 0 || self.page_size > 1 << 16 {
            return bad(format!("page_size is {}; it must be between 1 and 65536 tokens", self.page_size));
        }
        if self.components.len() > MOST_COMPONENTS {
            return bad(format!("{} components; at most {MOST_COMPONENTS}", self.components.len()));
        }
        let mut made = Vec::new();
        for component in &self.components {
            let follows = made.iter().find(|(name, _)| *name == component.follows);
            if made.iter().any(|(name, _)| *name == component.name) || component.name.is_empty() {
                return bad(format!("component {:?} has no name, or one that is taken", component.name));
            }
            if follows.is_none() && !component.follows.is_empty() {
                return bad(format!(
                    "component {:?} follows {:?}, which must come before it",
                    component.name, component.follows
                ));
            }
            let family =
                families::make(component.family, component.number, self.page_size, follows.map(|(_, f)| f));
            let family = family
                .map_err(|why| Refusal::BadArgument(format!("component {:?}: {why}", component.name)))?;
            if family.shape() != Shape::Shadow {
                self.validate_pages(component)?;
                self.validate_tiers(component)?;
            }
            made.push((component.name.clone(), family));
        }
        for (tier, admit) in [Tier::Host, Tier::Storage].into_iter().zip(self.admit) {
            if admit > 1 && !self.has(tier) {
                return bad(format!(
                    "admit_{0} is {admit}, but {0} is 0 pages: there is no such tier",
                    tier.name()
                ));
            }
        }
        if self.pin_permille > 1000 {
            let share = self.pin_permille as f64 / 1000.0;
            return bad(format!("pin_share is {share}; it must be between 0 and 1"));
        }
        if self.engine.is_empty() || self.namespace.is_empty() || self.epoch.is_empty() {
            return bad("engine, epoch and namespace need names that are not empty".into());
        }
        Ok(())
    }

    fn validate_pages(&self, component: &ComponentConfig) -> Answer<()> {
        let device = component.pages[Tier::Device as usize];
        if device == 0 && !self.observed_device {
            return bad(format!(
                "device is 0 pages for {:?}; a runtime that owns its device pages needs at least 1, \
                 and one that does not says observed_device",
                component.name
            ));
        }
        if device > 0 && self.observed_device {
            return bad(format!(
                "device is {device} pages, but the engine owns its device (observed_device)"
            ));
        }
        match component.pages.iter().find(|pages| **pages > MAX_TIER_PAGES) {
            Some(pages) => bad(format!("a tier of {pages} pages is too large; at most {MAX_TIER_PAGES}")),
            None => Ok(()),
        }
    }

    /// Whether there is a tier, and it is ours.
    pub fn has(&self, tier: Tier) -> bool {
        self.components.first().is_some_and(|full| full.pages[tier as usize] > 0)
    }

    /// Nothing is worth keeping where `full` is not.
    fn validate_tiers(&self, component: &ComponentConfig) -> Answer<()> {
        let lacking = |tier: &&Tier| component.pages[**tier as usize] > 0 && !self.has(**tier);
        match Tier::ALL.iter().find(lacking) {
            Some(tier) => bad(format!(
                "component {0:?} asks for {1} pages of {2}, but {2} is 0 pages for \"full\": there is no such tier",
                component.name,
                component.pages[*tier as usize],
                tier.name()
            )),
            None => Ok(()),
        }
    }
}

fn bad(text: String) -> Answer<()> {
    Err(Refusal::BadArgument(text))
}
