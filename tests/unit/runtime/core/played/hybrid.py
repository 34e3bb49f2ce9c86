"""A window, a recurrent state and a sidecar beside `full`, and what sessions and operators may ask.

Also a namespace that is retired, moves that take too long, and a policy for each tier.
"""

from array import array

from driver import Driver

from runtime._core import Component, Core

SECOND = 10**9


def play() -> Core:
    beside = [
        Component("swa", "swa", window=4, device=8, host=6, page_bytes=32),
        Component("ssm", "mamba", interval=5, device=5, host=4, storage=4, page_bytes=128),
        Component("indexer", "sidecar", follows="full", device=12, host=12, page_bytes=8),
        Component("draft", "sidecar", follows="swa", device=6, page_bytes=8),
        Component("c2", "spans", ratio=2),
    ]
    d = Driver(
        "root",
        device=10,
        host=10,
        storage=12,
        page_size=2,
        page_bytes=64,
        components=beside,
        policies={"device": "session", "host": "s3fifo", "storage": "tlru"},
        admit_host=1,
        admit_storage=2,
        move_timeout=SECOND,
        secret=b"golden",
        wall_offset=10**18,
        ghosts=8,
        journal=True,
    )
    d.core_page_size = 2
    core = d.core
    prefix = [1, 2, 3, 4, 5, 6]

    # A prefix, and three forks of it that go their own ways.
    d.serve("root", prefix)
    core.retain(d.tick(), "root", SECOND, "ops")
    core.share(d.tick(), "root", 2, SECOND, "ops")
    core.expect(d.tick(), "root", d.now + 50)
    for place, fork in enumerate(("x", "y", "z")):
        core.open_session(d.tick(), fork, "root", group="rollout", priority=place - 1)
        d.serve(fork, [*prefix, 10 + place, 20, 30, 40])
    branching = d.acquire("x", [*prefix, 77, 78, 79, 80])
    d.write(branching, [*prefix, 77, 78, 79, 80])
    again = core.hold(d.tick(), branching.receipt)
    d.release(branching)
    core.evict(d.tick(), "device", 3)
    core.evict(d.tick(), "host", 2, "swa")
    core.evict(d.tick(), "device", 2, "ssm")
    core.restore(d.tick(), again)
    d.finish()
    core.release(d.tick(), again)

    # A turn by its cursor: only what is new is passed, and computed from further back.
    turn = core.acquire(d.tick(), "root", "turn", array("I", [7, 8, 9, 9]), skip=3, grid=1)
    got = core.reserve(d.tick(), turn.receipt, 4, start=min(1, turn.pages))
    text = array("I", [*prefix, 7, 8, 9, 9])
    start = min(1, turn.pages)
    core.commit(d.tick(), got.op, text, start, min(got.pages, 5 - start))
    core.release(d.tick(), turn.receipt)
    d.finish(result=2)

    # Down to the host and up again.
    lone = [90, 91, 92, 93, 94, 95]
    core.open_session(d.tick(), "lone")
    d.serve("lone", lone)
    d.demote("lone")
    d.finish()
    back = d.acquire("lone", lone)
    core.restore(d.tick(), back.receipt)
    d.finish()
    d.release(back)

    # A move that takes too long, and arrives after all.
    d.serve("y", [50, 51, 52, 53], move=False)
    late = core.actions()
    core.tick(d.now + 2 * SECOND)
    d.now += 2 * SECOND
    for action in late:
        d.answer(action)
    d.finish(result=0)

    # Another adapter's state, until its weights change.
    adapter = core.open_namespace(d.tick(), "adapter")
    core.open_session(d.tick(), "tuned")
    for prompt in ([1, 2, 3, 4], [1, 2, 3, 4, 5, 6]):
        found = d.acquire("tuned", prompt, namespace=adapter)
        d.write(found, prompt)
        d.release(found)
    d.finish()
    held = d.acquire("tuned", [1, 2], namespace=adapter)
    core.retire(d.tick(), adapter)
    d.release(held)

    core.close_group(d.tick(), "rollout")
    d.serve("root", [60 + n for n in range(14)])
    d.pin("root", "device", ttl=SECOND)
    d.demote("root")
    d.finish()
    d.flush("root")
    d.serve("root", prefix)
    core.reserve(d.tick(), d.acquire("root", prefix).receipt, 2)
    return core
