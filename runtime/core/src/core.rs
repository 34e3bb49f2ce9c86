//! The live core: decides, writes rows, and keeps the indexes beside the state. The commands themselves are
//! in sessions, find, locks, compute, moves, leases and hints; this file has what they share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::digest::{Digest, root_digest};
use crate::ghosts::Ghosts;
use crate::hints::Hint;
use crate::keys::Keys;
use crate::log::{Log, Origin};
use crate::moves::Action;
use crate::names::{Kind, Phase, Reason, Tier};
use crate::order::Order;
use crate::records::NONE;
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::runs::Run;
use crate::state::{MAX_TIER_PAGES, State};

pub const ROOT: u32 = 0;
/// Evictions name at most this many of the candidates they passed over; counting stops there too.
const PASSED_OVER_NAMED: usize = 3;
const PASSED_OVER_COUNTED: usize = 1024;

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub engine: String,
    pub epoch: String,
    pub namespace: String,
    pub page_size: u32,
    pub pages: [u32; 3],
    pub page_bytes: u64,
    pub secret: Vec<u8>,
    pub wall_offset: i64,
    pub now: i64,
    pub write_through: bool,
    /// Largest share of a tier that leases may hold, in thousandths.
    pub pin_permille: u32,
    pub ghosts: u32,
    pub log_rows: u32,
}

/// What the core remembers of a lock while it is held.
#[derive(Clone, Debug)]
pub struct Live {
    pub tokens: Arc<[u32]>,
    /// The match that led to it.
    pub seq: u64,
    /// Slots whose move up failed; they are not tried again under this lock.
    pub failed: BTreeSet<u32>,
}

/// Whom a decision is for.
#[derive(Clone, Debug, Default)]
pub struct For {
    pub session: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
    pub receipt: Option<u64>,
    pub cause: Option<u64>,
}

pub struct Core {
    pub state: State,
    pub log: Log,
    pub(crate) config: Config,
    pub(crate) now: i64,
    pub(crate) keys: Keys,
    pub(crate) order: Order,
    pub(crate) ghosts: Ghosts,
    pub(crate) root_digest: Digest,
    pub(crate) live: BTreeMap<u64, Live>,
    pub(crate) hints: BTreeMap<u64, Hint>,
    /// Each open session's last prompt, to tell "diverged" from "never stored".
    pub(crate) prompts: HashMap<Arc<str>, Arc<[u32]>>,
    /// Last session that used each node, by node number.
    users: Vec<Option<Arc<str>>>,
    /// Moves wanted and not yet handed out.
    pub actions: Vec<Action>,
    next_number: u64,
    dirty: Vec<u32>,
}

impl Core {
    pub fn new(config: Config) -> Answer<Self> {
        config.validate()?;
        let origin = Origin {
            engine: config.engine.clone(),
            epoch: config.epoch.clone(),
            wall_offset: config.wall_offset,
            capacity: config.log_rows.max(1) as usize,
        };
        let mut core = Core {
            state: State::default(),
            log: Log::new(origin),
            now: config.now,
            keys: Keys::default(),
            order: Order::default(),
            ghosts: Ghosts::new(config.ghosts as usize),
            root_digest: root_digest(&config.namespace, &config.secret),
            live: BTreeMap::new(),
            hints: BTreeMap::new(),
            prompts: HashMap::new(),
            users: Vec::new(),
            actions: Vec::new(),
            next_number: 1,
            dirty: Vec::new(),
            config,
        };
        core.introduce()?;
        Ok(core)
    }

    fn introduce(&mut self) -> Answer<()> {
        let mut engine = Row::new(Kind::Config, Phase::Engine);
        engine.tokens = Some(self.config.page_size as i64);
        engine.bytes = Some(self.config.page_bytes);
        engine.detail = Some(env!("CARGO_PKG_VERSION").into());
        self.emit(engine)?;
        for tier in Tier::ALL {
            let mut pool = Row::new(Kind::Config, Phase::Pool);
            pool.tier_to = Some(*tier);
            pool.pages = Some(self.config.pages[*tier as usize]);
            self.emit(pool)?;
        }
        let mut namespace = Row::new(Kind::Config, Phase::Namespace);
        (namespace.namespace, namespace.node) = (Some(0), Some(ROOT));
        namespace.detail = Some(self.config.namespace.as_str().into());
        self.emit(namespace)?;
        self.settle()
    }

    /// Write a row: the one way in which the state changes. Returns its number.
    pub(crate) fn emit(&mut self, mut row: Row) -> Answer<u64> {
        row.seq = self.state.seq + 1;
        row.clock = self.now;
        self.state.apply(&row).map_err(Refusal::Internal)?;
        for node in std::mem::take(&mut self.state.touched) {
            self.order.refresh(&self.state, node);
            self.dirty.push(node);
        }
        let seq = row.seq;
        self.log.append(row, self.state.hash());
        Ok(seq)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    pub(crate) fn page(&self) -> usize {
        self.state.page_size as usize
    }

    pub(crate) fn user(&self, node: u32) -> Option<Arc<str>> {
        self.users.get(node as usize).cloned().flatten()
    }

    /// Last session that used a page.
    pub fn slot_user(&self, slot: u32) -> Option<Arc<str>> {
        self.state.slots.get(slot).and_then(|s| self.user(s.node))
    }

    pub(crate) fn set_user(&mut self, nodes: &[u32], session: &Option<Arc<str>>) {
        for node in nodes {
            if self.users.len() <= *node as usize {
                self.users.resize(*node as usize + 1, None);
            }
            self.users[*node as usize] = session.clone();
        }
    }

    /// The node on the path `nodes` that ends exactly after `pages` pages, made by a split if need be.
    pub(crate) fn cut(&mut self, nodes: &[u32], pages: u32) -> Answer<u32> {
        if pages == 0 {
            return Ok(ROOT);
        }
        for id in nodes {
            let node = self.state.node(*id).map_err(Refusal::Internal)?;
            let (start, end, parent) = (node.start, node.end(), node.parent);
            if end == pages {
                return Ok(*id);
            }
            if end > pages {
                let head = self.state.nodes.choose(1)[0].first;
                let mut row = Row::new(Kind::Split, Phase::None);
                (row.node, row.parent, row.pages) = (Some(*id), Some(head), Some(pages - start));
                row.end_page = Some(pages);
                self.emit(row)?;
                self.keys.split(&self.state, *id, head, parent, pages - start);
                self.set_user(&[head], &self.user(*id));
                return Ok(head);
            }
        }
        Err(Refusal::Internal(format!("the path is shorter than {pages} pages")))
    }

    /// Make `want` pages of a tier free, if that can be done; says how many of them are. With `older_than`,
    /// only pages last used before that moment have to go.
    pub(crate) fn make_room(
        &mut self,
        tier: Tier,
        want: u32,
        older_than: Option<i64>,
        cause: u64,
    ) -> Answer<u32> {
        loop {
            let free = self.state.pools[tier as usize].pages.free();
            if free >= want || !self.evict_next(tier, want - free, older_than, cause)? {
                return Ok(free.min(want));
            }
        }
    }

    /// Evict up to `want` pages from the end of the first node that has any to give.
    fn evict_next(&mut self, tier: Tier, want: u32, older_than: Option<i64>, cause: u64) -> Answer<bool> {
        let candidates =
            self.order.open(tier).take_while(|rank| older_than.is_none_or(|limit| rank.0 < limit));
        let found = candidates.into_iter().find_map(|rank| {
            let slots = self.last_copies(rank.2, tier, want);
            (!slots.is_empty()).then_some((rank, slots))
        });
        let Some((rank, slots)) = found else { return Ok(false) };
        let held: Vec<u32> =
            self.order.passed_over(tier, rank).take(PASSED_OVER_COUNTED).map(|r| r.2).collect();
        let mut row = Row::new(Kind::Evict, Phase::None);
        row.reason = Reason::Pressure;
        row.policy = Some("lru");
        row.score = Some(rank.0);
        row.cause = Some(cause);
        row.skipped = Some(held.len() as u32);
        if !held.is_empty() {
            let names = held.iter().take(PASSED_OVER_NAMED).filter_map(|node| self.user(*node));
            let names: Vec<String> = names.map(|name| name.to_string()).collect();
            row.detail = Some(format!("held: {}", names.join(", ")).into());
        }
        self.drop_copies(&slots, tier, row)?;
        Ok(true)
    }

    /// Up to `want` slots with a copy in the tier, from the node's end, in order; none when the last is read.
    fn last_copies(&self, node: u32, tier: Tier, want: u32) -> Vec<u32> {
        let Some(record) = self.state.nodes.get(node) else { return Vec::new() };
        let slots = record.slots.iter().rev().filter_map(|s| Some((s, self.state.slots.get(s)?)));
        let copies = slots.filter(|(_, slot)| slot.has(tier));
        let idle = copies.take_while(|(_, slot)| slot.readers[tier as usize] == 0);
        let mut found: Vec<u32> = idle.take(want as usize).map(|(s, _)| s).collect();
        found.reverse();
        found
    }

    /// Drop one tier's copies of slots in path order, in as few rows as say it. `like` has what the rows share.
    pub(crate) fn drop_copies(&mut self, slots: &[u32], tier: Tier, like: Row) -> Answer<()> {
        let state = &self.state;
        let fate = |s: &u32| {
            let slot = state.slots.get(*s)?;
            let lost = slot.here == tier.bit() && slot.coming == 0;
            Some((slot.node, if lost { Phase::Lost } else { Phase::Kept }))
        };
        let mut rows = Vec::new();
        for (run, fate) in group(slots, fate) {
            let Some((node, phase)) = fate else { continue };
            let last = state.slots.get(run.first + run.count - 1);
            rows.push(Row {
                phase,
                node: Some(node),
                session: self.user(node),
                slot_from: Some(run.first),
                pages: Some(run.count),
                end_page: last.map(|s| s.position + 1),
                tier_from: Some(tier),
                tokens: Some((run.count * state.page_size) as i64),
                ..like.clone()
            });
        }
        rows.into_iter().try_for_each(|row| self.emit(row).map(|_| ()))
    }

    /// After a command: damaged copies that nobody holds any more go, and nodes that nobody names and that
    /// have nothing left.
    pub(crate) fn settle(&mut self) -> Answer<()> {
        while let Some(node) = self.dirty.pop() {
            self.drop_damaged(node)?;
            self.trim(node)?;
        }
        Ok(())
    }

    fn drop_damaged(&mut self, node: u32) -> Answer<()> {
        let Some(record) = self.state.nodes.get(node).filter(|n| n.bad > 0) else { return Ok(()) };
        let locked = record.locks > 0;
        let slots: Vec<u32> = record.slots.iter().collect();
        for tier in Tier::ALL.iter().copied().filter(|t| *t != Tier::Device || !locked) {
            let state = &self.state;
            let free = |s: &&u32| {
                let slot = state.slots.get(**s);
                slot.is_some_and(|s| s.bad & tier.bit() != 0 && s.readers[tier as usize] == 0)
            };
            let damaged: Vec<u32> = slots.iter().filter(free).copied().collect();
            let like = Row { reason: Reason::Damaged, ..Row::new(Kind::Evict, Phase::None) };
            self.drop_copies(&damaged, tier, like)?;
        }
        Ok(())
    }

    fn trim(&mut self, node: u32) -> Answer<()> {
        let Some(record) = self.state.nodes.get(node) else { return Ok(()) };
        if record.parent == NONE || !record.is_unnamed() {
            return Ok(());
        }
        let (parent, mut left) = (record.parent, record.slots.len());
        let gone = |s: &u32| self.state.slots.get(*s).is_some_and(|slot| slot.is_gone());
        let empty = record.slots.iter().rev().take_while(gone).count() as u32;
        let tail = record.slots.slice(left - empty, left);
        for run in tail.as_runs().iter().rev() {
            for slot in run.iter().filter_map(|s| self.state.slots.get(s)) {
                self.ghosts.remember(slot.digest, slot.lost, slot.lost_why);
            }
            let mut row = Row::new(Kind::Free, Phase::None);
            row.reason = Reason::Empty;
            (row.node, row.end_page) = (Some(node), Some(self.state.path_pages(node)));
            (row.slot_from, row.pages) = (Some(run.first), Some(run.count));
            left -= run.count;
            self.keys.shorten(&self.state, node, parent, left);
            self.emit(row)?;
        }
        Ok(())
    }
}

impl Config {
    fn validate(&self) -> Answer<()> {
        let bad = |text: String| Err(Refusal::BadArgument(text));
        if self.page_size == 0 || self.page_size > 1 << 16 {
            return bad(format!("page_size is {}; it must be between 1 and 65536 tokens", self.page_size));
        }
        if self.pages[0] == 0 {
            return bad("device is 0 pages; this runtime owns its device pages, give at least 1".into());
        }
        if self.pages[2] > 0 && self.pages[1] == 0 {
            return bad(format!(
                "storage is {} pages but host is 0; storage is reached through the host",
                self.pages[2]
            ));
        }
        if let Some(pages) = self.pages.iter().find(|p| **p > MAX_TIER_PAGES) {
            return bad(format!("a tier of {pages} pages is too large; at most {MAX_TIER_PAGES}"));
        }
        if self.pin_permille > 1000 {
            return bad(format!(
                "pin_share is {}; it must be between 0 and 1",
                self.pin_permille as f64 / 1000.0
            ));
        }
        if self.engine.is_empty() || self.namespace.is_empty() || self.epoch.is_empty() {
            return bad("engine, epoch and namespace need names that are not empty".into());
        }
        Ok(())
    }
}

/// Split a list into runs of consecutive numbers with the same label.
pub(crate) fn group<L: PartialEq>(numbers: &[u32], label: impl Fn(&u32) -> L) -> Vec<(Run, L)> {
    let mut groups: Vec<(Run, L)> = Vec::new();
    for number in numbers {
        let l = label(number);
        match groups.last_mut() {
            Some((run, last)) if run.first + run.count == *number && *last == l => run.count += 1,
            _ => groups.push((Run { first: *number, count: 1 }, l)),
        }
    }
    groups
}
