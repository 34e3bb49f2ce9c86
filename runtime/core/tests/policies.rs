//! Every policy against an obvious model: a list that is sorted each time somebody has to go.

use std::collections::{BTreeMap, VecDeque};

use _core::policy::{Facts, NAMES, Policy, Tlru, by_name};
use _core::queue::{Queue, Standing, Victim};
use proptest::prelude::*;

const ITEMS: u32 = 12;
const THRESHOLD: u64 = 40;
/// With it and pages of 8 tokens, some turns need exactly the threshold.
const NEXT_PROMPT: u64 = 8;

fn policy(name: &str) -> Box<dyn Policy> {
    match name {
        "tlru" => Box::new(Tlru::new(THRESHOLD, NEXT_PROMPT)),
        _ => by_name(name).unwrap(),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Enter { item: u32, pages: u32, depth: u32, sessions: u32, identity: u64 },
    Hit { item: u32 },
    Change { item: u32, priority: i32, sessions: u32, superseded: bool, returns_in: i64 },
    Side { item: u32, class: u8, held: bool },
    Interior { item: u32 },
    Gone { item: u32 },
    Split { tail: u32, head: u32 },
    Wait { by: i64 },
    Evict { older_by: Option<i64>, refused: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let item = 0..ITEMS;
    let step = prop_oneof![
        6 => (item.clone(), 1..5u32, 0..6u32, 0..3u32, 0..30u64).prop_map(
            |(item, pages, depth, sessions, identity)| Step::Enter { item, pages, depth, sessions, identity }
        ),
        6 => item.clone().prop_map(|item| Step::Hit { item }),
        2 => (item.clone(), -1..2i32, 0..3u32, any::<bool>(), -5..40i64).prop_map(
            |(item, priority, sessions, superseded, returns_in)| Step::Change {
                item, priority, sessions, superseded: superseded && sessions == 1, returns_in
            }
        ),
        2 => (item.clone(), prop_oneof![4 => Just(0u8), 1 => Just(1)], prop::bool::weighted(0.3))
            .prop_map(|(item, class, held)| Step::Side { item, class, held }),
        1 => item.clone().prop_map(|item| Step::Interior { item }),
        1 => item.clone().prop_map(|item| Step::Gone { item }),
        2 => (item.clone(), item).prop_map(|(tail, head)| Step::Split { tail, head }),
        2 => (1..20i64).prop_map(|by| Step::Wait { by }),
        8 => (prop::option::weighted(0.2, 0..30i64), 0..ITEMS * 3)
            .prop_map(|(older_by, refused)| Step::Evict { older_by, refused }),
    ];
    prop::collection::vec(step, 1..120)
}

/// What a policy remembers, told in the plainest way.
#[derive(Default)]
struct Memory {
    ends: BTreeMap<u32, u32>,
    clock: i64,
    since: BTreeMap<u32, i64>,
    s3: PlainS3,
}

#[derive(Default)]
struct PlainS3 {
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    uses: BTreeMap<u32, u32>,
    /// Heads of splits: whether the tail was in main.
    heirs: BTreeMap<u32, bool>,
    ghosts: VecDeque<u64>,
}

struct World {
    name: &'static str,
    now: i64,
    items: BTreeMap<u32, Standing>,
    memory: Memory,
}

fn density(f: &Facts) -> i64 {
    let (tokens, before) = ((f.pages * f.page_tokens) as i128, (f.depth * f.page_tokens) as i128);
    let cost = (tokens * (16384 + before + tokens / 2)) << 32;
    (cost / 16384 / (f.pages as u64 * f.page_bytes) as i128) as i64
}

impl World {
    /// The whole key by which the model sorts; what policies with a memory remember is in `memory`.
    fn key(&self, item: u32, s: &Standing) -> (u8, i64, i64, i64, u32, u32) {
        let f = &s.facts;
        let (a, b, c) = match self.name {
            "lru" => (f.last_use, 0, 0),
            "fifo" => (f.created, 0, 0),
            "lfu" => (f.uses as i64, f.last_use, 0),
            "slru" => (if f.uses >= 2 { 1 } else { 0 }, f.last_use, 0),
            "priority" => (f.priority as i64, f.last_use, 0),
            "session" if f.superseded => (0, f.last_use, 0),
            "session" if f.sessions == 0 => (1, f.last_use, 0),
            "session" => (2, -f.returns_at.max(self.now), f.last_use),
            "cost" => (self.memory.since[&item] + density(f), f.last_use, 0),
            "tlru" => {
                let history = (self.memory.ends[&item] * f.page_tokens) as u64;
                let kept_at_least = (history + NEXT_PROMPT).saturating_sub(THRESHOLD);
                let without_its_last_page = ((f.depth + f.pages - 1) * f.page_tokens) as u64;
                ((without_its_last_page < kept_at_least) as i64, f.last_use, 0)
            }
            other => panic!("{other}"),
        };
        (s.class, a, b, c, s.tie, item)
    }

    fn sorted(&self) -> Vec<(u32, Standing)> {
        let mut all: Vec<_> = self.items.iter().map(|(i, s)| (*i, *s)).collect();
        all.sort_by_key(|(i, s)| self.key(*i, s));
        all
    }

    fn changed(&mut self, item: u32, hit: bool) {
        let facts = self.items[&item].facts;
        let end = self.memory.ends.entry(item).or_default();
        *end = (*end).max(facts.depth + facts.pages);
        if hit {
            self.memory.since.insert(item, self.memory.clock);
            let uses = self.memory.s3.uses.entry(item).or_default();
            *uses = (*uses + 1).min(3);
        }
        self.memory.since.entry(item).or_insert(self.memory.clock);
        let s3 = &mut self.memory.s3;
        if !s3.small.contains(&item) && !s3.main.contains(&item) {
            let known = s3.ghosts.iter().position(|g| *g == facts.identity);
            known.map(|at| s3.ghosts.remove(at));
            let heir = s3.heirs.remove(&item);
            if heir.is_none() {
                s3.uses.insert(item, 0);
            }
            if known.is_some() || heir == Some(true) {
                s3.main.push_back(item)
            } else {
                s3.small.push_back(item)
            }
        }
    }

    fn split(&mut self, tail: u32, head: u32) {
        let memory = &mut self.memory;
        memory.ends.insert(head, memory.ends[&tail]);
        memory.since.insert(head, memory.since[&tail]);
        memory.s3.uses.insert(head, memory.s3.uses[&tail]);
        memory.s3.heirs.insert(head, memory.s3.main.contains(&tail));
    }

    fn left(&mut self, item: u32, evicted: bool) {
        self.memory.ends.remove(&item);
        self.memory.since.remove(&item);
        let s3 = &mut self.memory.s3;
        s3.heirs.remove(&item);
        let Some(standing) = self.items.remove(&item) else { return };
        if !evicted || s3.small.contains(&item) {
            s3.ghosts.retain(|g| *g != standing.facts.identity);
            s3.ghosts.push_back(standing.facts.identity);
        }
        s3.small.retain(|i| *i != item);
        s3.main.retain(|i| *i != item);
        assert!(s3.ghosts.len() <= 64, "identities are few enough that no ghost is forgotten");
    }

    fn victim(&mut self, may: &dyn Fn(u32, &Standing) -> bool) -> Option<u32> {
        if self.name == "s3fifo" {
            return self.s3_victim(may);
        }
        let (item, s) = self.sorted().into_iter().find(|(i, s)| may(*i, s))?;
        if self.name == "cost" {
            self.memory.clock = self.memory.clock.max(self.memory.since[&item] + density(&s.facts));
        }
        Some(item)
    }

    fn s3_victim(&mut self, may: &dyn Fn(u32, &Standing) -> bool) -> Option<u32> {
        loop {
            let s3 = &self.memory.s3;
            let pages =
                |lane: &VecDeque<u32>| lane.iter().map(|i| self.items[i].facts.pages as u64).sum::<u64>();
            let small_first = pages(&s3.small) * 10 > pages(&s3.small) + pages(&s3.main);
            let order: Vec<u32> = match small_first {
                true => s3.small.iter().chain(&s3.main).copied().collect(),
                false => s3.main.iter().chain(&s3.small).copied().collect(),
            };
            let classes: [Vec<u32>; 2] =
                [0, 1].map(|class| order.iter().copied().filter(|i| self.items[i].class == class).collect());
            let item = classes.concat().into_iter().find(|i| may(*i, &self.items[i]))?;
            let s3 = &mut self.memory.s3;
            let uses = s3.uses.get_mut(&item).unwrap();
            if s3.small.contains(&item) && *uses >= 2 {
                *uses = 0;
                s3.small.retain(|i| *i != item);
            } else if s3.main.contains(&item) && *uses > 0 {
                *uses -= 1;
                s3.main.retain(|i| *i != item);
            } else {
                return Some(item);
            }
            s3.main.push_back(item);
        }
    }
}

/// Runs the steps on a queue and on the model, which must agree throughout. The victims, in order.
fn run(name: &'static str, steps: &[Step]) -> Vec<Option<Victim>> {
    let mut queue = Queue::new(policy(name));
    let mut world = World { name, now: 1, items: BTreeMap::new(), memory: Memory::default() };
    let mut victims = Vec::new();
    for step in steps {
        let mut touched = None;
        let now = world.now;
        let of = |item: &u32| world.items.get(item).copied();
        match step {
            Step::Enter { item, pages, depth, sessions, identity } if !world.items.contains_key(item) => {
                let facts = Facts {
                    created: now,
                    last_use: now,
                    uses: 1,
                    pages: *pages,
                    depth: *depth,
                    page_tokens: 8,
                    page_bytes: 3,
                    sessions: *sessions,
                    identity: *identity,
                    ..Facts::default()
                };
                let tie = u32::MAX - *depth;
                touched = Some((*item, Standing { facts, class: 0, held: false, tie }, false));
            }
            Step::Hit { item } => {
                touched = of(item).map(|mut s| {
                    s.facts.last_use = now;
                    s.facts.uses += 1;
                    (*item, s, true)
                })
            }
            Step::Change { item, priority, sessions, superseded, returns_in } => {
                touched = of(item).map(|mut s| {
                    s.facts.priority = *priority;
                    s.facts.sessions = *sessions;
                    s.facts.superseded = *superseded;
                    s.facts.returns_at = if *returns_in < 0 { 0 } else { now + returns_in };
                    (*item, s, false)
                })
            }
            Step::Side { item, class, held } => {
                touched = of(item).map(|s| (*item, Standing { class: *class, held: *held, ..s }, false))
            }
            Step::Interior { item } => {
                queue.place(*item, None, true);
                if world.items.contains_key(item) {
                    world.left(*item, false);
                }
            }
            Step::Split { tail, head } if !world.items.contains_key(head) => {
                touched = of(tail).filter(|s| s.facts.pages > 1).map(|mut s| {
                    queue.split(*tail, *head);
                    world.split(*tail, *head);
                    s.facts.depth += 1;
                    s.facts.pages -= 1;
                    (*tail, s, false)
                })
            }
            Step::Gone { item } => {
                queue.remove(*item, false);
                world.left(*item, false);
            }
            Step::Wait { by } => world.now += by,
            Step::Evict { older_by, refused } => {
                let limit = older_by.map(|by| now - by);
                let accept = |item: u32| item != *refused;
                let got = queue.next(limit, now, &mut |item| accept(item));
                let may = |item: u32, s: &Standing| {
                    !s.held && accept(item) && limit.is_none_or(|limit| s.facts.last_use < limit)
                };
                let expected = world.victim(&may);
                assert_eq!(got.map(|v| v.item), expected, "{name}: {:?}", world.items);
                victims.push(got);
                let Some(victim) = got else { continue };
                assert_eq!(queue.next(limit, now, &mut |item| accept(item)), got, "it stays until it leaves");
                check_passed_over(&mut queue, &world, &victim);
                let mut standing = world.items[&victim.item];
                standing.facts.pages -= 1;
                if standing.facts.pages == 0 {
                    queue.remove(victim.item, true);
                    world.left(victim.item, true);
                } else {
                    touched = Some((victim.item, standing, false));
                }
            }
            _ => {}
        }
        if let Some((item, mut standing, hit)) = touched {
            world.items.insert(item, standing);
            world.changed(item, hit);
            standing.facts.now = now;
            queue.place(item, Some(standing), hit);
        }
        queue.check(&mut world.items.iter().map(|(i, s)| (*i, *s))).unwrap();
        assert_eq!(queue.len(), world.items.len());
    }
    victims
}

/// The held ones that the model has before the victim, in its order.
fn check_passed_over(queue: &mut Queue, world: &World, victim: &Victim) {
    // By S3-FIFO's own order, and by a time that has come since, somebody else may be meant.
    if ["s3fifo", "session"].contains(&world.name) {
        return;
    }
    let before = world.sorted().into_iter().take_while(|(i, _)| *i != victim.item);
    let held: Vec<u32> = before.filter(|(_, s)| s.held).map(|(i, _)| i).collect();
    assert_eq!(queue.passed_over(&victim.rank).collect::<Vec<_>>(), held, "{}", world.name);
}

proptest! {
    #[test]
    fn every_policy_agrees_with_a_sorted_list(steps in steps()) {
        for name in NAMES {
            let victims = run(name, &steps);
            prop_assert_eq!(victims, run(name, &steps), "the same calls, the same victims");
        }
    }
}
