//! Every policy against an obvious model: a list that is sorted each time somebody has to go.

use std::collections::{BTreeMap, VecDeque};

use _core::policy::{Facts, NAMES, Policy, Score, Tlru, Verdict, by_name};
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

fn facts(last_use: i64) -> Facts {
    Facts { last_use, pages: 1, page_tokens: 8, page_bytes: 1, uses: 1, ..Facts::default() }
}

fn at(facts: Facts) -> Option<Standing> {
    Some(Standing { facts, class: 0, held: false, tie: 0 })
}

fn anybody(_: u32) -> bool {
    true
}

fn order(queue: &mut Queue, now: i64) -> Vec<u32> {
    let next = |queue: &mut Queue| {
        let victim = queue.next(None, now, &mut anybody)?.item;
        queue.remove(victim, true);
        Some(victim)
    };
    std::iter::from_fn(|| next(queue)).collect()
}

#[test]
fn every_name_is_a_policy_of_that_name() {
    for name in NAMES {
        assert_eq!(by_name(name).unwrap().name(), *name);
        assert!(by_name(name).unwrap().fault().is_none());
    }
    for name in
        ["", "LRU", "lru ", "tlru()", "tlru(threshold=-1)", "tlru(size=1)", "tlru(threshold=1", "a.b:C"]
    {
        assert!(by_name(name).is_none(), "{name:?}");
    }
    assert!(by_name("tlru(threshold=1, next_prompt_estimate=2)").is_some());
}

#[test]
fn a_class_outweighs_every_score_and_the_held_never_go() {
    let mut queue = Queue::new(by_name("lru").unwrap());
    queue.place(1, Some(Standing { class: 1, ..at(facts(1)).unwrap() }), false);
    queue.place(2, at(facts(9)), false);
    queue.place(3, Some(Standing { held: true, ..at(facts(2)).unwrap() }), false);
    let victim = queue.next(None, 10, &mut anybody).unwrap();
    assert_eq!((victim.item, victim.score_shown), (2, 9));
    assert_eq!(queue.passed_over(&victim.rank).collect::<Vec<_>>(), [3]);
    queue.remove(2, true);
    assert_eq!(queue.next(None, 10, &mut anybody).unwrap().item, 1, "better than none");
    queue.remove(1, true);
    assert_eq!(queue.next(None, 10, &mut anybody), None);
    queue.place(3, at(facts(2)), false);
    assert_eq!(queue.next(None, 10, &mut anybody).unwrap().item, 3);
}

#[test]
fn a_tie_goes_to_the_lower_tie_and_then_the_lower_number() {
    let mut queue = Queue::new(by_name("lru").unwrap());
    for (item, tie) in [(1, 5), (2, 3), (3, 5)] {
        queue.place(item, Some(Standing { tie, ..at(facts(1)).unwrap() }), false);
    }
    assert_eq!(order(&mut queue, 2), [2, 1, 3]);
}

#[test]
fn a_search_for_the_old_gives_up_among_the_new_but_never_refuses_room() {
    for name in NAMES {
        let mut queue = Queue::new(by_name(name).unwrap());
        for item in 0..5000 {
            queue.place(item, at(Facts { created: 1, ..facts(100 + item as i64) }), false);
        }
        assert_eq!(queue.next(Some(100), 9999, &mut anybody), None, "{name}");
        let last = queue.next(None, 9999, &mut |item| item == 4999);
        assert_eq!(last.unwrap().item, 4999, "{name}");
    }
}

#[test]
fn a_trimmed_conversation_is_not_trimmed_again() {
    let mut queue = Queue::new(Box::new(Tlru::new(40, 10)));
    let long = Facts { pages: 20, ..facts(9) };
    queue.place(1, at(long), false);
    queue.place(2, at(Facts { pages: 20, ..facts(1) }), true);
    queue.place(2, at(Facts { pages: 16, ..facts(1) }), false);
    for pages in (18..=20).rev() {
        queue.place(1, at(Facts { pages, ..long }), false);
        assert_eq!(
            queue.next(None, 10, &mut anybody).unwrap().item,
            1,
            "the next turn can do without page {pages}"
        );
    }
    queue.place(1, at(Facts { pages: 17, ..long }), false);
    assert_eq!(queue.next(None, 10, &mut anybody).unwrap().item, 2, "nothing is spare: the older goes");
    queue.split(1, 3);
    queue.remove(1, true);
    queue.place(3, at(Facts { pages: 10, ..facts(9) }), false);
    assert_eq!(
        queue.next(None, 10, &mut anybody).unwrap().item,
        2,
        "the front of a split remembers the whole"
    );
}

#[test]
fn s3fifo_keeps_what_is_used_again_through_a_scan() {
    let mut queue = Queue::new(by_name("s3fifo").unwrap());
    let page = |item: u32| Facts { identity: item as u64, ..facts(0) };
    for item in 0..5 {
        queue.place(item, at(page(item)), false);
        queue.place(item, at(page(item)), true);
        queue.place(item, at(page(item)), true);
    }
    for item in 100..200 {
        queue.place(item, at(page(item)), false);
        let victim = queue.next(None, 0, &mut anybody).unwrap().item;
        assert!(victim >= 100, "{victim} was used and goes before the scan");
        queue.remove(victim, true);
    }
    queue.place(300, at(page(150)), false);
    queue.place(301, at(page(777)), false);
    queue.place(302, at(page(778)), false);
    assert_eq!(queue.next(None, 0, &mut anybody).unwrap().item, 301, "the ghost of 150 takes 300 to main");
}

#[test]
fn s3fifo_counts_three_uses_and_gives_a_round_for_each() {
    let mut queue = Queue::new(by_name("s3fifo").unwrap());
    let uses = [(1, 9), (2, 3), (3, 1)];
    for (item, _) in uses {
        queue.place(item, at(Facts { identity: item as u64, ..facts(0) }), false);
        queue.remove(item, true);
        queue.place(item, at(Facts { identity: item as u64, ..facts(0) }), false);
    }
    for (item, times) in uses {
        for _ in 0..times {
            queue.place(item, at(Facts { identity: item as u64, ..facts(0) }), true);
        }
    }
    assert_eq!(order(&mut queue, 0), [3, 1, 2], "9 uses are 3, and 1 stands before 2");
}

#[test]
fn s3fifo_forgets_old_ghosts() {
    let mut queue = Queue::new(by_name("s3fifo").unwrap());
    for identity in 0..1000u64 {
        queue.place(1, at(Facts { identity, ..facts(0) }), false);
        queue.remove(1, true);
    }
    let score = |queue: &mut Queue, identity| {
        queue.place(1, at(Facts { identity, ..facts(0) }), false);
        let score = queue.next(None, 0, &mut anybody).unwrap().score_shown;
        queue.remove(1, true);
        score
    };
    assert_eq!(score(&mut queue, 5), 0, "forgotten: as if it were new");
    assert_eq!(score(&mut queue, 999), 1);
}

#[test]
fn what_is_dear_and_never_used_again_leaves_in_the_end() {
    let mut queue = Queue::new(by_name("cost").unwrap());
    queue.place(0, at(Facts { page_tokens: 64, ..facts(0) }), false);
    let mut evicted = Vec::new();
    for item in 1..100 {
        queue.place(item, at(facts(item as i64)), false);
        let victim = queue.next(None, 0, &mut anybody).unwrap().item;
        queue.remove(victim, true);
        evicted.push(victim);
    }
    let when = evicted.iter().position(|item| *item == 0).expect("it ages");
    assert!(when > 4, "and not before what is cheap: {when}");
}

#[test]
fn a_return_that_is_due_no_longer_sends_anybody_off() {
    let mut queue = Queue::new(by_name("session").unwrap());
    let used = Facts { sessions: 1, ..facts(5) };
    queue.place(1, at(Facts { returns_at: 100, ..used }), false);
    queue.place(2, at(Facts { last_use: 1, ..used }), false);
    assert_eq!(queue.next(None, 10, &mut anybody).unwrap().item, 1, "back only later");
    assert_eq!(queue.next(None, 100, &mut anybody).unwrap().item, 2, "both may come now, and 2 is older");
}

/// Grants everybody another chance, always.
struct Endless(i64);

impl Policy for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn on_insert(&mut self, _item: u32, _facts: &Facts) -> Score {
        Score::of(0)
    }

    fn on_hit(&mut self, _item: u32, _facts: &Facts) -> Score {
        Score::of(0)
    }

    fn on_remove(&mut self, _item: u32, _identity: u64, _evicted: bool) {}

    fn on_victim(&mut self, item: u32, _facts: &Facts) -> Verdict {
        self.0 += 1;
        Verdict::Requeue(Score::of(if item == 7 { -1 } else { self.0 }))
    }
}

#[test]
fn second_chances_end() {
    let mut queue = Queue::new(Box::new(Endless(0)));
    for item in 0..3 {
        queue.place(item, at(facts(1)), false);
    }
    assert_eq!(order(&mut queue, 0).len(), 3);
    queue.place(7, at(facts(1)), false);
    let victim = queue.next(None, 0, &mut anybody).unwrap();
    assert_eq!((victim.item, victim.score_shown), (7, 0), "a chance to go earlier is none");
}
