"""`full` alone, on three tiers that are owned: everything that the log tells apart."""

from array import array

from driver import Driver

from runtime._core import Core


def play() -> Core:
    d = Driver(
        "a",
        "b",
        "c",
        device=8,
        host=8,
        storage=10,
        page_size=2,
        page_bytes=64,
        secret=b"golden",
        wall_offset=10**18,
        ghosts=8,
        journal=True,
        pin_share=0.5,
    )
    d.core_page_size = 2
    core = d.core
    core.open_session(d.tick(), "a/child [1]\n", "a")
    core.note(d.tick(), "request", "arrival", session="a", request="r", tokens=9)
    core.note(d.tick(), "tool", "start", session="a", detail="ls")
    core.note(d.tick(), "canary", "check", reason="backup", op=1, slot=3, pages=2, tier_to="host")
    d.serve("a", [1, 2, 3, 4, 5, 6])
    d.serve("a/child [1]\n", [1, 2, 3, 4, 7, 8, 9])  # splits
    d.serve("b", [9] * 8, move=False)
    backup, *_ = core.actions()
    core.complete(d.tick(), backup.op, bytes([1, 0, 2, 1][: backup.pages]), bytes=256, duration=7)
    d.finish()

    first, second = d.acquire("b", [5, 5, 6, 6]), d.acquire("c", [5, 5, 6, 6])
    one = core.reserve(d.tick(), first.receipt, 2)
    two = core.reserve(d.tick(), second.receipt, 3)
    core.commit(d.tick(), one.op, array("I", [5, 5, 6, 6]), 0, 2)
    core.commit(d.tick(), two.op, array("I", [5, 5, 6, 6]), 0, 2)  # duplicates, one unused
    (aborted, *_) = core.actions()
    core.abort(d.tick(), aborted.op, "timeout")
    d.answer(aborted)
    three = core.reserve(d.tick(), second.receipt, 1)
    core.abort(d.tick(), three.op)
    d.release(first)
    d.release(second)

    lease = d.pin("a", "host", ttl=50).lease
    d.pin("a", "host", ttl=60)
    d.finish()
    d.pin("b", "device", ttl=5)
    d.finish()
    core.tick(d.now + 10)
    d.now += 10
    d.demote("a")
    d.finish()
    core.unpin(d.tick(), lease)
    d.serve("a", [1, 2, 3, 4, 5, 6])
    d.serve("c", [8] * 16)  # pushes others out, also on the host
    found = d.acquire("a", [1, 2, 3, 4, 5, 6])
    core.restore(d.tick(), found.receipt)
    d.finish()
    core.restore(d.tick(), found.receipt)
    (load,) = core.actions()
    core.complete(d.tick(), load.op, bytes([1] + [0] * (load.pages - 1)))
    d.write(found, [1, 2, 3, 4, 5, 6])
    owner = core.resident("device")[0][0]
    core.damaged(d.tick(), "device", owner & 0xFFFFFFFF, owner >> 32)
    d.release(found)
    core.prefetch(d.tick(), "a/child [1]\n", "ops")
    d.finish()
    d.flush("c")
    core.close_session(d.tick(), "b")
    held = d.acquire("a", [1, 2, 3, 4])
    core.reserve(d.tick(), held.receipt, 1)
    core.restore(d.tick(), held.receipt)
    return core
