//! Who goes first: the least recently used page, the deepest first on one path.

use std::borrow::Cow;

use _core::command::{Command, Reply};
use _core::config::{ComponentConfig, Config};
use _core::core::Core;
use _core::names::{FamilyName, KeyKind, Tier};
use _core::policy;

const NOW: i64 = 1;

fn core(device: u32) -> Core {
    let full = ComponentConfig {
        name: "full".into(),
        family: FamilyName::Full,
        follows: String::new(),
        number: 0,
        pages: [device, 0, 0],
        page_bytes: 1,
    };
    let config = Config {
        engine: "e".into(),
        epoch: "1".into(),
        namespace: "m".into(),
        key: KeyKind::Tokens,
        page_size: 1,
        components: vec![full],
        observed_device: false,
        secret: Vec::new(),
        wall_offset: 0,
        now: NOW,
        write_through: false,
        policies: ["lru".into(), "lru".into(), "lru".into()],
        admit: [1, 1],
        move_timeout: 0,
        defer_digests: true,
        pin_permille: 500,
        ghosts: 8,
        log_rows: 1000,
    };
    Core::new(config, &mut |name| Ok(policy::by_name(name).unwrap())).unwrap()
}

fn key(tokens: &[u32]) -> Cow<'static, [u8]> {
    tokens.iter().flat_map(|token| token.to_le_bytes()).collect()
}

/// Ask for `tokens` at `now`, compute what is missing, let go. Returns how many pages were found.
fn serve(core: &mut Core, now: i64, tokens: &[u32]) -> u32 {
    let _ = core.run(
        now,
        &Command::OpenSession {
            session: "s".into(),
            parent: String::new(),
            group: String::new(),
            priority: 0,
        },
    );
    let acquire = Command::Acquire {
        session: "s".into(),
        request: "r".into(),
        namespace: 0,
        skip: 0,
        key: key(tokens),
        grid: 1,
    };
    let Reply::Match(found) = core.run(now, &acquire).unwrap() else { panic!() };
    let receipt = found.receipt;
    let missing = tokens.len() as u32 - found.pages;
    let Reply::Reservation(got) =
        core.run(now, &Command::Reserve { receipt, pages: missing, start: None }).unwrap()
    else {
        panic!()
    };
    let commit =
        Command::Commit { op: got.op, key: key(tokens), skip: 0, start: found.pages, pages: missing };
    core.run(now, &commit).unwrap();
    core.run(now, &Command::Release { receipt }).unwrap();
    core.check().unwrap();
    found.pages
}

fn positions(core: &Core) -> Vec<u32> {
    let mut positions: Vec<u32> = core.resident(Tier::Device, None, 0).unwrap().iter().map(|c| c.2).collect();
    positions.sort_unstable();
    positions
}

#[test]
fn the_least_recently_used_page_goes_first() {
    let mut core = core(3);
    for (now, token) in [(2, 10), (3, 11), (4, 12)] {
        serve(&mut core, now, &[token]);
    }
    assert_eq!(serve(&mut core, 5, &[10]), 1);
    serve(&mut core, 6, &[13]);
    assert_eq!(serve(&mut core, 7, &[10]), 1, "used again, and evicted before what was not");
    assert_eq!(serve(&mut core, 8, &[11]), 0, "the oldest is still there");
}

#[test]
fn a_path_loses_its_end_first() {
    let mut core = core(5);
    serve(&mut core, 2, &[1, 2, 3, 4]);
    serve(&mut core, 3, &[9, 8, 7]);
    assert_eq!(positions(&core), [0, 0, 1, 1, 2], "two pages of the older path, from its start");
    assert_eq!(serve(&mut core, 4, &[1, 2]), 2);
}
