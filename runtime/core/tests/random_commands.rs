//! Random commands against the whole core, for engines of every kind. After every step: `check()`, every claimed
//! copy has its content's tag, every source of a move still has its own; the replica's fold equals the state, and a
//! replay of the journal gives the same log.

mod world;

use _core::command::{Command, Reply};
use proptest::prelude::*;
use world::{Kind, Step, World, kinds, open, steps};

fn run(kind: &Kind, steps: &[Step], batch: usize) {
    let mut world = World::new(kind);
    for name in ["s0", "s1", "s2"] {
        world.run(open(name, String::new())).unwrap();
    }
    for (i, step) in steps.iter().enumerate() {
        world.step(step);
        world.verify();
        if i % 7 == 0 {
            world.fold(batch);
        }
    }
    world.fold(batch);
    world.replay();
}

proptest! {
    // PROPTEST_CASES says how many; the Makefile does.

    #[test]
    fn full_attention(steps in steps(160), kind in kinds(Just(0), Just(false)), batch in 1usize..50) {
        run(&kind, &steps, batch);
    }

    #[test]
    fn hybrids(steps in steps(160), kind in kinds(1u8..16, Just(false)), batch in 1usize..50) {
        run(&kind, &steps, batch);
    }

    #[test]
    fn a_device_that_the_engine_owns(steps in steps(160), kind in kinds(0u8..16, Just(true)), batch in 1usize..50) {
        run(&kind, &steps, batch);
    }

    /// Once everybody lets go, everything can be had again.
    #[test]
    fn nothing_leaks_when_all_is_released(steps in steps(160), kind in kinds(0u8..16, Just(false))) {
        let mut world = World::new(&kind);
        world.run(open("s0", String::new())).unwrap();
        steps.iter().for_each(|step| world.step(step));
        for request in std::mem::take(&mut world.requests) {
            world.run(Command::Release { receipt: request.receipt }).unwrap();
        }
        while let Some(action) = world.shell.moving.pop() {
            let results = vec![0; action.keys.len()];
            world.run(Command::Complete { op: action.op, results, bytes: 0, duration: 0, detail: String::new() }).unwrap();
        }
        world.now += 1000;
        world.run(Command::Tick {}).unwrap();
        for session in ["s0", "s1", "s2", "s3"] {
            let _ = world.run(Command::CloseSession { session: session.into() });
        }
        world.core.check().unwrap();
        prop_assert_eq!(world.core.state.ops.count(), 0);
        prop_assert_eq!(world.core.state.receipts.count(), 0);
        prop_assert!(world.core.state.pools.iter().flatten().all(|pool| pool.fenced == 0 && pool.leased == 0));
        let namespace = world.run(Command::OpenNamespace { name: "new".into() }).unwrap();
        let Reply::Number(namespace) = namespace else { panic!() };
        world.run(open("new", String::new())).unwrap();
        let ask = Command::Acquire {
            session: "new".into(), request: "r".into(), namespace: namespace as u32, skip: 0, key: vec![].into(), grid: 1,
        };
        let Reply::Match(found) = world.run(ask).unwrap() else { panic!() };
        let all = world.core.state.slotted().filter(|c| world.core.state.components[*c].name != "mamba");
        let all = all.map(|c| world.core.state.pools[c][0].pages.capacity()).min().unwrap();
        let reserve = Command::Reserve { receipt: found.receipt, pages: all, start: None };
        let Reply::Reservation(got) = world.run(reserve).unwrap() else { panic!() };
        prop_assert_eq!(got.runs.iter().map(|r| r.2).sum::<u32>(), all);
    }
}
