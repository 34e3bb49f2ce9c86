//! Who goes first: the least recently used page, the deepest first on one path.

use std::borrow::Cow;

use _core::command::{Command, Reply};
use _core::core::{Config, Core};
use _core::names::Tier;

const NOW: i64 = 1;

fn core(device: u32) -> Core {
    Core::new(Config {
        engine: "e".into(),
        epoch: "1".into(),
        namespace: "m".into(),
        page_size: 1,
        pages: [device, 0, 0],
        page_bytes: 1,
        secret: Vec::new(),
        wall_offset: 0,
        now: NOW,
        write_through: false,
        pin_permille: 500,
        ghosts: 8,
        log_rows: 1000,
    })
    .unwrap()
}

/// Ask for `tokens` at `now`, compute what is missing, let go. Returns how many pages were found.
fn serve(core: &mut Core, now: i64, tokens: &[u32]) -> u32 {
    let _ = core.run(now, &Command::OpenSession { session: "s".into(), parent: String::new() });
    let acquire =
        Command::Acquire { session: "s".into(), request: "r".into(), tokens: Cow::Borrowed(tokens), grid: 1 };
    let Reply::Match(found) = core.run(now, &acquire).unwrap() else { panic!() };
    let receipt = found.receipt;
    let missing = tokens.len() as u32 - found.pages;
    let Reply::Reservation(got) = core.run(now, &Command::Reserve { receipt, pages: missing }).unwrap()
    else {
        panic!()
    };
    let commit =
        Command::Commit { op: got.op, tokens: Cow::Borrowed(tokens), start: found.pages, pages: missing };
    core.run(now, &commit).unwrap();
    core.run(now, &Command::Release { receipt }).unwrap();
    core.check().unwrap();
    found.pages
}

fn positions(core: &Core) -> Vec<u32> {
    let mut positions: Vec<u32> = core.resident(Tier::Device, None).unwrap().iter().map(|c| c.2).collect();
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
