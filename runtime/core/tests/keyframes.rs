//! Keyframes cut while random commands go on: each is the state at its number, exactly, and what comes after can be
//! folded onto it. Bytes that are no keyframe are refused.

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use _core::columns::decode;
use _core::core::Core;
use _core::refusal::Refusal;
use _core::replica::Replica;
use _core::state::State;
use proptest::prelude::*;
use world::{Kind, Step, World, kinds, open, steps};

/// A keyframe, and what it must be equal to.
struct Cut {
    seq: u64,
    then: State,
    parts: Vec<Vec<u8>>,
}

/// How records are cut: so many in a slice, a slice each so many steps.
#[derive(Clone, Debug)]
struct Pace {
    records: usize,
    steps: usize,
}

fn paces() -> impl Strategy<Value = Pace> {
    (1usize..60, 1usize..4).prop_map(|(records, steps)| Pace { records, steps })
}

fn whole(replica: &mut Replica) -> Vec<Vec<u8>> {
    replica.keyframe_begin().unwrap();
    std::iter::from_fn(|| replica.keyframe_slice(usize::MAX)).collect()
}

fn of(state: &State, engine: &Replica) -> Replica {
    let mut replica = Replica::default();
    replica.state = state.clone();
    (replica.engine, replica.epoch) = (engine.engine.clone(), engine.epoch.clone());
    replica
}

fn same(mut rebuilt: Replica, then: &State) {
    assert_eq!(rebuilt.state.seq, then.seq);
    assert_eq!((rebuilt.state.hash(), rebuilt.state.observed_hash()), (then.hash(), then.observed_hash()));
    rebuilt.state.check().unwrap();
    for (pools, expected) in rebuilt.state.pools.iter().zip(&then.pools) {
        for (pool, expected) in pools.iter().zip(expected) {
            let counts = |p: &_core::state::Pool| {
                (p.pages.capacity(), p.pages.taken(), p.fenced, p.leased, p.observed)
            };
            assert_eq!(counts(pool), counts(expected));
        }
    }
    let mut expected = of(then, &rebuilt);
    assert!(whole(&mut rebuilt) == whole(&mut expected), "a keyframe of the rebuilt state has other bytes");
}

trait Source {
    fn state(&self) -> &State;
    fn begin(&mut self) -> u64;
    fn slice(&mut self, records: usize) -> Option<Vec<u8>>;
}

impl Source for Core {
    fn state(&self) -> &State {
        &self.state
    }
    fn begin(&mut self) -> u64 {
        self.keyframe_begin()
    }
    fn slice(&mut self, records: usize) -> Option<Vec<u8>> {
        self.keyframe_slice(records)
    }
}

impl Source for Replica {
    fn state(&self) -> &State {
        &self.state
    }
    fn begin(&mut self) -> u64 {
        self.keyframe_begin().unwrap()
    }
    fn slice(&mut self, records: usize) -> Option<Vec<u8>> {
        self.keyframe_slice(records)
    }
}

/// Cut one keyframe after the other out of `state` while it changes.
#[derive(Default)]
struct Cutter {
    done: Vec<Cut>,
    running: Option<Cut>,
}

impl Cutter {
    fn turn(&mut self, source: &mut impl Source, records: usize) {
        let Some(cut) = &mut self.running else {
            let then = source.state().clone();
            self.running = Some(Cut { seq: source.begin(), then, parts: Vec::new() });
            return;
        };
        match source.slice(records) {
            Some(part) => cut.parts.push(part),
            None => self.done.extend(self.running.take()),
        }
        assert!(source.state().keyframe_touched() <= records);
    }

    /// Each is what it should be, and some are made into what the engine is now: folding costs most here.
    fn verify(&self, world: &World) {
        let later = |seq: u64| {
            let last = |payload: &Vec<u8>| decode(payload).unwrap().1.last().map_or(0, |row| row.seq);
            world.payloads.partition_point(|payload| last(payload) <= seq)
        };
        for (i, cut) in self.done.iter().enumerate() {
            assert_eq!(cut.seq, cut.then.seq);
            same(Replica::from_keyframe(&cut.parts).unwrap(), &cut.then);
            if i % (self.done.len() / 3 + 1) != 0 {
                continue;
            }
            let mut replica = Replica::from_keyframe(&cut.parts).unwrap();
            for payload in &world.payloads[later(cut.seq)..] {
                replica.fold(payload).unwrap();
            }
            same(replica, &world.core.state);
        }
    }
}

fn run(kind: &Kind, steps: &[Step], batch: usize, live: Pace, folded: Pace) {
    let mut world = World::new(kind);
    for name in ["s0", "s1", "s2"] {
        world.run(open(name, String::new())).unwrap();
    }
    let (mut of_core, mut of_replica) = (Cutter::default(), Cutter::default());
    world.fold(batch);
    for (i, step) in steps.iter().enumerate() {
        world.step(step);
        if i % live.steps == 0 {
            of_core.turn(&mut world.core, live.records);
        }
        if i % folded.steps == 0 {
            world.fold(batch);
            of_replica.turn(&mut world.replica, folded.records);
        }
    }
    world.fold(batch);
    while of_core.running.is_some() {
        of_core.turn(&mut world.core, live.records);
    }
    of_core.verify(&world);
    of_replica.verify(&world);
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_keyframe_is_the_state_at_its_number_whatever_happens_meanwhile(
        steps in steps(160), kind in kinds(0u8..16, Just(false)), batch in 1usize..50, live in paces(), folded in paces(),
    ) {
        run(&kind, &steps, batch, live, folded);
    }

    #[test]
    fn beliefs_are_in_it_too(
        steps in steps(160), kind in kinds(0u8..16, Just(true)), batch in 1usize..50, live in paces(), folded in paces(),
    ) {
        run(&kind, &steps, batch, live, folded);
    }

    #[test]
    fn broken_bytes_are_refused(
        steps in steps(80), kind in kinds(0u8..16, any::<bool>()), records in 1usize..100,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u32>(), 0u8..4), 40),
    ) {
        let parts = keyframe_after(&kind, &steps, records);
        let seq = Replica::from_keyframe(&parts).unwrap().state.seq;
        for (part, at, with, how) in damage {
            let mut broken = parts.clone();
            let part = part.index(parts.len());
            let bytes = &mut broken[part];
            let at = at.index(bytes.len());
            match how {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 1 << (with % 8),
                2 => bytes[at..].iter_mut().zip([0xFF; 4]).for_each(|(byte, new)| *byte = new),
                _ => bytes[at..].iter_mut().zip(with.to_le_bytes()).for_each(|(byte, new)| *byte = new),
            }
            match Replica::from_keyframe(&broken) {
                Err(Refusal::Log(_)) => {}
                Err(other) => panic!("{other:?}"),
                // Names and sizes that no hash covers.
                Ok(mut replica) => {
                    replica.state.check().unwrap();
                    prop_assert!(how > 0 && (part == 0 || replica.state.seq == seq));
                    whole(&mut replica);
                }
            }
        }
    }
}

fn keyframe_after(kind: &Kind, steps: &[Step], records: usize) -> Vec<Vec<u8>> {
    let mut world = World::new(kind);
    for name in ["s0", "s1", "s2"] {
        world.run(open(name, String::new())).unwrap();
    }
    steps.iter().for_each(|step| world.step(step));
    world.core.keyframe_begin();
    std::iter::from_fn(|| world.core.keyframe_slice(records)).collect()
}

fn plain() -> Kind {
    Kind {
        pages: [13; 3],
        beside: 0,
        observed: false,
        write_through: true,
        policies: [0; 3],
        admit: [1; 2],
        move_timeout: 0,
        defer_digests: false,
    }
}

#[test]
fn parts_that_are_missing_twice_or_out_of_order_are_refused() {
    let parts = keyframe_after(&plain(), &[], 1);
    assert!(parts.len() > 3);
    Replica::from_keyframe(&parts).unwrap();
    let mut orders = vec![vec![], parts[1..].to_vec(), parts[..parts.len() - 1].to_vec()];
    orders.push([&parts[..2], &parts[1..]].concat());
    let mut swapped = parts.clone();
    swapped.swap(1, 2);
    orders.push(swapped);
    for order in orders {
        assert!(matches!(Replica::from_keyframe(&order), Err(Refusal::Log(_))));
    }
    let mut newer = parts;
    newer[0][7] += 1;
    let Err(Refusal::Log(why)) = Replica::from_keyframe(&newer).map(|_| ()) else { panic!() };
    assert!(why.contains("version"), "{why}");
}

#[test]
fn one_that_is_begun_again_is_of_the_later_moment() {
    let mut world = World::new(&plain());
    let first = world.core.keyframe_begin();
    world.core.keyframe_slice(1).unwrap();
    world.core.keyframe_slice(1).unwrap();
    world.run(open("s0", String::new())).unwrap();
    let second = world.core.keyframe_begin();
    assert!(second > first);
    let parts: Vec<_> = std::iter::from_fn(|| world.core.keyframe_slice(5)).collect();
    same(Replica::from_keyframe(&parts).unwrap(), &world.core.state);
    assert_eq!(world.core.keyframe_slice(5), None);
}

#[test]
fn a_replica_of_nothing_has_no_keyframe() {
    assert!(matches!(Replica::default().keyframe_begin(), Err(Refusal::Log(_))));
    assert_eq!(Replica::default().keyframe_slice(5), None);
}
