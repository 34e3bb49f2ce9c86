//! What each policy is for, and what a queue promises whatever the policy.

use _core::policy::{Facts, NAMES, Policy, Score, Tlru, Verdict, by_name};
use _core::queue::{Queue, Standing};

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
