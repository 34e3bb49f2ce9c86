//! The live core: decides, writes rows, and keeps the indexes beside the state. The commands themselves are
//! in namespaces, sessions, find, held, locks, reserve, commit, observe, moves, restore, complete, leases and hints;
//! this file has what they share, and evict what makes room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::blocks::Blocks;
use crate::chunks::Chunks;
use crate::config::Config;
use crate::digest::{Digest, page_digests};
use crate::ghosts::Ghosts;
use crate::hints::Hint;
use crate::keys::Keys;
use crate::log::{Log, Origin};
use crate::moves::Action;
use crate::names::{KeyKind, Kind, Name, Phase, Reason, Tier, name};
use crate::order::{Change, Order};
use crate::policy::{Lru, Policy};
use crate::records::{FULL, NONE};
use crate::refusal::{Answer, Refusal};
use crate::row::Row;
use crate::runs::Run;
use crate::state::State;
use crate::users::Users;

/// Who makes the eviction policies that a configuration names.
pub type PolicyMaker<'a> = &'a mut dyn FnMut(&str) -> Answer<Box<dyn Policy>>;

/// What the core remembers of a lock while it is held.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// What the request asked for beyond the pages it found: page `from` on.
    pub tail: Arc<[u8]>,
    pub from: u32,
    /// A length at which others leave this path; worth a checkpoint. 0 for none.
    pub branch: u32,
    /// The match that led to it.
    pub seq: u64,
    /// Slots whose move up failed; they are not tried again under this lock.
    pub failed: BTreeSet<u32>,
    /// Reservations that are open.
    pub reservations: Vec<u64>,
    /// A hint holds it: it is nobody else's to use or to give back.
    pub of_hint: bool,
}

/// What a session asked for last, beyond what the tree had: page `from` on.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub namespace: u32,
    pub tail: Arc<[u8]>,
    pub from: u32,
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
    /// By namespace.
    pub(crate) root_digests: Vec<Digest>,
    /// By their receipts' numbers in the state.
    pub(crate) live: Chunks<Option<Live>>,
    pub(crate) hints: BTreeMap<u64, Hint>,
    /// By their sessions' numbers in the state.
    pub(crate) prompts: Chunks<Option<Prompt>>,
    /// Of a device that the engine owns.
    pub(crate) blocks: Blocks,
    /// Copies that an engine took away from its own device while a move read them.
    pub(crate) torn: BTreeSet<(u64, u32)>,
    users: Users,
    pub(crate) policy_names: [Name; 3],
    /// Policies of the user's own that have not failed, by component and tier.
    pub(crate) may_fail: Vec<(usize, Tier)>,
    /// Moves wanted and not yet handed out.
    pub actions: Vec<Action>,
    next_number: u64,
    pub(crate) dirty: Vec<u32>,
    pub(crate) dirty_spots: Vec<u32>,
}

impl Core {
    pub fn new(config: Config, make: PolicyMaker) -> Answer<Self> {
        config.validate()?;
        let origin = Origin {
            engine: config.engine.clone(),
            epoch: config.epoch.clone(),
            wall_offset: config.wall_offset,
            capacity: config.log_rows as usize,
        };
        let mut policies = Vec::new();
        for _ in 0..config.components.len() {
            for policy in &config.policies {
                policies.push(make(policy)?);
            }
        }
        let too_many =
            || Refusal::BadArgument("more names of components and policies than can be kept".into());
        let mut names = [""; 3];
        for (i, policy) in policies.iter().take(3).enumerate() {
            names[i] = name(policy.name()).ok_or_else(too_many)?;
        }
        let places = (0..config.components.len()).flat_map(|c| Tier::ALL.iter().map(move |tier| (c, *tier)));
        let of_users = places.zip(&policies).filter(|(_, policy)| policy.can_fail());
        let may_fail = of_users.map(|(place, _)| place).collect();
        policies.reverse();
        let mut next = |_| policies.pop().unwrap_or_else(|| Box::new(Lru));
        let mut core = Core {
            state: State::default(),
            log: Log::new(origin),
            now: config.now,
            keys: Keys::new(config.key, config.page_size),
            order: Order::new(config.components.len(), &mut next),
            ghosts: Ghosts::new(config.ghosts as usize),
            root_digests: Vec::new(),
            live: Chunks::default(),
            hints: BTreeMap::new(),
            prompts: Chunks::default(),
            blocks: Blocks::default(),
            torn: BTreeSet::new(),
            users: Users::default(),
            policy_names: names,
            may_fail,
            actions: Vec::new(),
            next_number: 1,
            dirty: Vec::new(),
            dirty_spots: Vec::new(),
            config,
        };
        core.introduce()?;
        Ok(core)
    }

    fn introduce(&mut self) -> Answer<()> {
        let config = self.config.clone();
        let mut engine = Row::new(Kind::Config, Phase::Engine);
        engine.tokens = Some(config.page_size as i64);
        engine.bytes = config.components.first().map(|full| full.page_bytes);
        engine.detail = Some(env!("CARGO_PKG_VERSION").into());
        self.emit(engine)?;
        let too_many =
            || Refusal::BadArgument("more names of components and policies than can be kept".into());
        for component in &config.components {
            let component_name = name(&component.name).ok_or_else(too_many)?;
            let mut row = Row::new(Kind::Config, Phase::Component);
            (row.component, row.policy) = (Some(component_name), Some(component.family.name()));
            (row.tokens, row.bytes) = (Some(component.number as i64), Some(component.page_bytes));
            row.detail = (!component.follows.is_empty()).then(|| component.follows.as_str().into());
            self.emit(row)?;
            for tier in Tier::ALL {
                let mut pool = Row::new(Kind::Config, Phase::Pool);
                (pool.component, pool.tier_to) = (Some(component_name), Some(*tier));
                pool.pages = Some(component.pages[*tier as usize]);
                if *tier == Tier::Device && config.observed_device {
                    pool.reason = Reason::Observed;
                }
                self.emit(pool)?;
            }
        }
        self.add_namespace(&config.namespace)?;
        self.settle()
    }

    /// Write a row: the one way in which the state changes. Returns its number.
    pub(crate) fn emit(&mut self, mut row: Row) -> Answer<u64> {
        row.seq = self.state.seq + 1;
        row.clock = self.now;
        self.state.apply(&row).map_err(Refusal::Internal)?;
        if self.config.observed_device {
            self.blocks.follow(&self.state, &row);
        }
        let change = match (row.kind, row.phase) {
            (Kind::Lock, Phase::Acquire | Phase::Extend) => Change::Used,
            (Kind::Evict, Phase::Kept | Phase::Lost | Phase::Gone) => Change::Evicted,
            _ => Change::Other,
        };
        let state = &mut self.state;
        let (nodes, spots) = (std::mem::take(&mut state.touched), std::mem::take(&mut state.touched_spots));
        for node in &nodes {
            self.order.refresh_node(state, self.now, *node, change);
            if state.nodes.get(*node).is_none() {
                self.users.forget(*node);
            }
        }
        let used = row.receipt.filter(|_| !spots.is_empty()).and_then(|id| state.receipts.get(&id));
        for slot in &spots {
            let idle = change == Change::Used && !used.is_some_and(|receipt| receipt.spots.contains(slot));
            self.order.refresh_spot(state, self.now, *slot, if idle { Change::Other } else { change });
        }
        self.dirty.extend(&nodes);
        self.dirty_spots.extend(&spots);
        (state.touched, state.touched_spots) = (cleared(nodes), cleared(spots));
        let seq = row.seq;
        if self.config.log_rows > 0 {
            self.log.push(row, self.state.hash());
        }
        Ok(seq)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    pub(crate) fn key_kind(&self) -> KeyKind {
        self.config.key
    }

    pub(crate) fn page(&self) -> usize {
        self.state.page_size as usize
    }

    pub(crate) fn user(&self, node: u32) -> Option<Arc<str>> {
        self.users.get(node).cloned()
    }

    /// Last session that used a page.
    pub fn slot_user(&self, slot: u32) -> Option<Arc<str>> {
        self.state.slots.get(slot).and_then(|s| self.user(s.node))
    }

    /// The path to `node` has been used by `session`.
    pub(crate) fn set_user(&mut self, node: u32, session: &Option<Arc<str>>) {
        let path = self.state.upward(node).map(|(id, _)| id);
        let open = || self.state.sessions.number(&**session.as_ref()?);
        self.users.set(path, session.as_ref(), open);
    }

    pub(crate) fn root(&self, namespace: u32) -> Answer<u32> {
        match self.state.namespaces.get(namespace) {
            Some(found) if !found.retired => Ok(found.root),
            Some(found) => {
                Err(Refusal::BadArgument(format!("namespace {namespace} ({}) is retired", found.name)))
            }
            None => Err(Refusal::BadArgument(format!("namespace {namespace} does not exist"))),
        }
    }

    /// The node on the path `nodes` that ends exactly after `pages` pages, made by a split if need be.
    pub(crate) fn cut(&mut self, root: u32, nodes: &[u32], pages: u32) -> Answer<u32> {
        if pages == 0 {
            return Ok(root);
        }
        let ends = |id: &u32| self.state.path_pages(*id) < pages;
        let Some(id) = nodes.get(nodes.partition_point(ends)).copied() else {
            return Err(Refusal::Internal(format!("the path is shorter than {pages} pages")));
        };
        let node = self.state.node(id).map_err(Refusal::Internal)?;
        let (start, end) = (node.start, node.end());
        if end == pages {
            return Ok(id);
        }
        let head = self.state.nodes.choose(1)[0].first;
        // Before the row: the head's place in the eviction order follows from its user.
        self.users.split(id, head);
        self.order.split(id, head);
        let mut row = Row::new(Kind::Split, Phase::None);
        (row.node, row.parent, row.pages) = (Some(id), Some(head), Some(pages - start));
        row.end_page = Some(pages);
        self.emit(row)?;
        self.keys.split(id, head, pages - start);
        Ok(head)
    }

    /// After a command: damaged copies that nobody holds any more go, what is of no use without the rest goes, and
    /// nodes that nobody names and that have nothing left.
    pub(crate) fn settle(&mut self) -> Answer<()> {
        loop {
            while let Some(slot) = self.dirty_spots.pop() {
                self.settle_spot(slot)?;
            }
            let Some(node) = self.dirty.pop() else { return Ok(()) };
            if self.is_settled(node) {
                continue;
            }
            self.drop_damaged(node)?;
            if self.state.components.len() > 1 {
                self.drop_orphans(node)?;
            }
            self.drop_retired(node)?;
            self.trim(node)?;
        }
    }

    /// Told at a glance, of most nodes: there is nothing to see to.
    fn is_settled(&self, node: u32) -> bool {
        let Some(record) = self.state.nodes.get(node) else { return true };
        let [full] = &*record.parts else { return false };
        let retired = || self.state.namespaces.get(record.namespace).is_none_or(|n| n.retired);
        full.bad == 0 && !record.is_unnamed() && !retired()
    }

    pub(crate) fn digest_of(&self, slot: u32) -> Digest {
        let Some(record) = self.state.slots.get(slot) else { return [0; 32] };
        if !self.config.defer_digests || record.node == NONE {
            return record.digest;
        }
        self.digest_at(record.node, record.position + 1)
    }

    /// Digest of the last page of the path to `node` that ends before page `end`.
    pub(crate) fn digest_at(&self, node: u32, end: u32) -> Digest {
        let root = || {
            let namespace = self.state.nodes.get(node).map_or(0, |n| n.namespace);
            self.root_digests.get(namespace as usize).copied().unwrap_or_default()
        };
        let Some(last) = end.checked_sub(1) else { return root() };
        if !self.config.defer_digests {
            let slot = self.state.slot_at(node, FULL, last);
            return slot.and_then(|s| self.state.slots.get(s)).map_or_else(root, |s| s.digest);
        }
        let mut digest = root();
        for id in self.state.path(node) {
            let Some(record) = self.state.nodes.get(id).filter(|n| n.start < end) else { continue };
            let pages = (end - record.start).min(record.pages) as usize;
            let key: Vec<u8> = self.keys.of(id, 0).flatten().copied().collect();
            let mut digests = Vec::new();
            page_digests(
                self.keys.kind(),
                &digest,
                &key[..pages * self.keys.width()],
                self.keys.width(),
                &mut digests,
            );
            digest = digests.last().copied().unwrap_or(digest);
        }
        digest
    }

    pub fn check(&self) -> Result<(), String> {
        self.state.check()?;
        let nodes = self.state.nodes.iter().map(|(id, node)| (id, node.parent, node.pages));
        self.keys.check(nodes)?;
        self.order.check(&self.state, self.now)?;
        self.blocks.check(&self.state)?;
        self.users.check()?;
        self.check_settled()
    }
}

fn cleared<T>(mut list: Vec<T>) -> Vec<T> {
    list.clear();
    list
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
