//! Engines of many kinds.

use _core::config::{ComponentConfig, Config};
use _core::names::{FamilyName, KeyKind};
use _core::policy;
use proptest::prelude::*;

use super::PAGE;

fn component(name: &str, family: FamilyName, follows: &str, number: u32, pages: [u32; 3]) -> ComponentConfig {
    ComponentConfig { name: name.into(), family, follows: follows.into(), number, pages, page_bytes: 1 }
}

/// One engine of many kinds.
#[derive(Clone, Debug)]
pub struct Kind {
    pub pages: [u32; 3],
    pub beside: u8,
    pub observed: bool,
    pub write_through: bool,
    pub policies: [u8; 3],
    pub admit: [u32; 2],
    pub move_timeout: i64,
    pub defer_digests: bool,
}

pub fn config(kind: &Kind) -> Config {
    let [d, h, s] = kind.pages;
    let some = |n: u32| if n == 0 { 0 } else { n.div_ceil(2) + 1 };
    let fewer = [some(d), some(h), some(s)];
    let mut components = vec![component("full", FamilyName::Full, "", 0, kind.pages)];
    if kind.beside & 1 != 0 {
        components.push(component("swa", FamilyName::Swa, "", 2 * PAGE as u32, fewer));
    }
    if kind.beside & 2 != 0 {
        components.push(component("mamba", FamilyName::Mamba, "", 2, fewer));
    }
    if kind.beside & 4 != 0 {
        components.push(component("indexer", FamilyName::Sidecar, "full", 0, kind.pages));
        components.push(component("c2", FamilyName::Spans, "", 2, [0; 3]));
    }
    if kind.beside & 9 == 9 {
        components.push(component("draft", FamilyName::Sidecar, "swa", 0, fewer));
    }
    if kind.observed {
        components.iter_mut().for_each(|c| c.pages[0] = 0);
    }
    Config {
        engine: "e".into(),
        epoch: "1".into(),
        namespace: "m".into(),
        key: KeyKind::Tokens,
        page_size: PAGE as u32,
        components,
        observed_device: kind.observed,
        secret: vec![1],
        wall_offset: 0,
        now: 0,
        write_through: kind.write_through,
        policies: kind.policies.map(|p| policy::NAMES[p as usize % policy::NAMES.len()].to_string()),
        // A tier that is not there admits nothing.
        admit: [0, 1].map(|below| if kind.pages[below + 1] == 0 { 1 } else { kind.admit[below] }),
        move_timeout: kind.move_timeout,
        defer_digests: kind.defer_digests,
        pin_permille: 600,
        ghosts: 8,
        log_rows: 1 << 20,
    }
}

pub fn kinds(
    beside: impl Strategy<Value = u8>,
    observed: impl Strategy<Value = bool>,
) -> impl Strategy<Value = Kind> {
    let pages = (1u32..14, 0u32..14, 0u32..14).prop_map(|(d, h, s)| [d, h, s]);
    let some = (any::<bool>(), any::<[u8; 3]>(), 1u32..3, 1u32..3, 0i64..40, prop::bool::weighted(0.2));
    (pages, beside, observed, some).prop_map(
        |(pages, beside, observed, (write_through, policies, a, b, t, defer))| {
            let move_timeout = if t < 20 { 0 } else { t };
            Kind {
                pages,
                beside,
                observed,
                write_through,
                policies,
                admit: [a, b],
                move_timeout,
                defer_digests: defer,
            }
        },
    )
}
