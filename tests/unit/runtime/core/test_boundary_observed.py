"""A device that the engine owns: what it says of its pages is not believed when it cannot be."""

from array import array

import pytest
from driver import Driver, pages
from hostile_arguments import HOSTILE, REFUSALS, refused_everywhere

from runtime._core import BadArgument, Component

TOKENS = array("I", [1, 2, 3, 4])


class World(Driver):
    """An engine whose pages 10 and 11 are in a lock's path."""

    def __init__(self) -> None:
        room = {"host": 8, "storage": 8}
        beside = [Component("swa", "swa", window=2, **room), Component("c2", "spans", ratio=1)]
        options = {"observed_device": True, "components": beside, **room}
        super().__init__("s", device=0, **options)
        first = self.acquire("s", TOKENS)
        for component in ("full", "swa"):
            told = TOKENS[:2], 0, [10, 11]
            self.core.observe(self.tick(), first.receipt, *told, component=component)
        self.finish()
        self.found = self.acquire("s", TOKENS)


@pytest.mark.parametrize("verb", ["observe", "forget", "restore"])
def test_a_hostile_argument_is_refused_and_changes_nothing(verb):
    world = World()
    now, receipt, blocks = ("now", 10**6), ("id", world.found.receipt), ("blocks", [20, 21])
    component = {"component": ("component", "full")}
    observe = [now, receipt, ("tokens", TOKENS), ("start", 2), blocks]
    arguments = {
        "observe": (observe, {"skip": ("skip", 0), **component}),
        "forget": ([now, ("any blocks", [10])], component),
        "restore": ([now, receipt], {"into": blocks}),
    }
    HOSTILE["any blocks"] = [value for value in HOSTILE["blocks"] if value != [5, 5]]
    refused_everywhere(world.core, verb, *arguments[verb])


def test_more_pages_than_tokens_are_refused():
    world = World()
    core, receipt = world.core, world.found.receipt
    with pytest.raises(BadArgument, match="tokens fill"):
        core.observe(1, receipt, TOKENS, 2, [20, 21, 22])
    with pytest.raises(BadArgument, match="leave the locked path"):
        core.observe(1, receipt, array("I", [1, 9, 3]), 0, [20, 21, 22])


def test_other_components_come_after_full():
    world = World()
    receipt = world.found.receipt
    with pytest.raises(BadArgument, match="full has to be observed"):
        world.core.observe(1, receipt, TOKENS, 2, [20, 21], component="swa")
    world.core.observe(1, receipt, TOKENS, 2, [20, 21])
    assert world.core.observe(1, receipt, TOKENS, 2, [20, 21], component="swa").healed == 2
    world.core.check()


def test_a_page_that_is_being_loaded_into_is_nobody_elses():
    world = World()
    core, receipt = world.core, world.found.receipt
    core.forget(world.tick(), [10, 11])
    core.forget(world.tick(), [10, 11], "swa")
    assert core.restore(world.tick(), receipt, into=[30, 31]).pending == 4
    before = core.state_hash(), core.observed_hash(), core.seq()
    for call in (
        lambda: core.observe(1, receipt, TOKENS, 2, [31, 32]),
        lambda: core.restore(1, receipt, into=[30]),
    ):
        with pytest.raises(BadArgument, match="being loaded into"):
            call()
    assert (core.state_hash(), core.observed_hash(), core.seq()) == before
    world.finish()
    core.check()
    assert [page for _, page, _ in core.table(receipt)] == [30]
    assert [page for _, page, _ in core.table(receipt, "swa")] == [30]


def test_a_block_that_another_path_had_at_the_same_place_is_only_in_the_new_one():
    """Found by tests/fuzz: the new path leaves the old one in the middle of a node."""
    d = Driver("a", "b", device=0, host=8, observed_device=True)
    old = d.acquire("a", [1, 2, 3])
    d.core.observe(d.tick(), old.receipt, array("I", [1, 2, 3]), 0, [10, 11, 12])
    new = d.acquire("b", [1])
    d.core.observe(d.tick(), new.receipt, array("I", [1, 2, 9]), 1, [21, 12])
    d.core.check()
    assert pages(d.core.table(new.receipt)) == [10, 11, 12]
    assert [page for _, page, *_ in d.core.copies(old.receipt)] == [10, 11]


def test_every_number_of_a_page_is_taken_or_refused_and_none_is_a_fault():
    for block in (0, 2**31, 2**32 - 2, 2**32 - 1):
        world = World()
        try:
            world.core.observe(1, world.found.receipt, TOKENS, 2, [block, 7])
        except BadArgument:
            assert block == 2**32 - 1
        else:
            assert world.core.forget(1, [block]) == 1
        world.core.check()


def test_who_owns_the_device_reserves_and_who_does_not_observes():
    theirs, ours = World(), Driver("s", device=4, host=4)
    found = ours.acquire("s", TOKENS)
    for call in (
        lambda: theirs.core.reserve(1, theirs.found.receipt, 1),
        lambda: theirs.core.evict(1, "device", 1),
        lambda: theirs.core.restore(1, theirs.found.receipt),
        lambda: ours.core.observe(1, found.receipt, TOKENS, 0, [1]),
        lambda: ours.core.forget(1, [1]),
        lambda: ours.core.restore(1, found.receipt, into=[1]),
    ):
        with pytest.raises(BadArgument, match="owns"):
            call()
    with pytest.raises(REFUSALS):
        theirs.core.forget(1, [1], "c2")
