"""An engine that owns its device pages: what it tells, takes away and has loaded."""

from array import array

from driver import Driver

from runtime._core import Component, Core


def play() -> Core:
    window = Component("swa", "swa", window=4, host=6, storage=6, page_bytes=32)
    d = Driver(
        "a",
        "b",
        device=0,
        host=8,
        storage=8,
        page_size=2,
        page_bytes=64,
        observed_device=True,
        components=[window],
        secret=b"golden",
        wall_offset=10**18,
        journal=True,
    )
    core = d.core

    def compute(session: str, tokens: list[int], blocks: list[int]) -> int:
        found = d.acquire(session, tokens)
        for component in ("full", "swa"):
            told = array("I", tokens), found.pages, blocks
            core.observe(d.tick(), found.receipt, *told, component=component)
        return found.receipt

    first = compute("a", [1, 2, 3, 4, 5, 6], [10, 11, 12])
    backup, *_ = core.actions()
    core.forget(d.tick(), [11])  # while it is read
    core.forget(d.tick(), [12], "swa")
    d.answer(backup)
    d.finish()
    core.release(d.tick(), first)
    second = compute("b", [1, 2, 3, 4, 7, 8], [20, 21])  # splits, and heals what was forgotten
    d.finish()
    core.release(d.tick(), second)
    core.forget(d.tick(), [10, 12, 20, 21])
    core.forget(d.tick(), [10, 12, 20, 21], "swa")
    again = d.acquire("a", [1, 2, 3, 4, 5, 6])
    core.restore(d.tick(), again.receipt, into=[30, 31, 32])
    d.finish()
    core.evict(d.tick(), "host", 8)
    core.restore(d.tick(), again.receipt, into=[33, 34, 35])
    d.finish()
    d.release(again)
    d.pin("a", "host", ttl=5)
    core.close_session(d.tick(), "b")
    compute("a", [9, 9], [31])  # another's page until now
    return core
