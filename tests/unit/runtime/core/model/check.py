"""What must hold of the model itself, whatever it is told."""

from .records import DEVICE, FULL, covers, steps
from .room import Room


def check(model: Room) -> None:
    check_room(model)
    check_nodes(model)
    check_slots(model)
    check_holds(model)


def check_room(model: Room) -> None:
    for name in model.families:
        for tier in model.owned():
            assert model.free(name, tier) >= 0, (name, tier)


def check_nodes(model: Room) -> None:
    """All pages of a node are held and named alike: so ranking nodes is ranking their pages."""
    for item in set(model.nodes.values()):
        pages = sorted((p for p in model.nodes if model.nodes[p] is item), key=len)
        assert pages == steps(pages[-1])[len(pages[0]) - 2 :]
        for page in pages[:-1]:
            assert all(
                covers(other, pages[-1]) or covers(pages[-1], other) for other in model.below(page)
            )
        kinds = [
            [lock.path for lock in model.locks],
            [lease.path for lease in model.leases.values()],
            [session.path for session in model.sessions.values()],
        ]
        for paths in kinds:
            assert len({tuple(covers(path, page) for path in paths) for page in pages}) == 1


def check_slots(model: Room) -> None:
    for name, slots in model.slots.items():
        for page, slot in slots.items():
            assert slot.component == name
            assert slot.path == page
            assert page in model.nodes
            assert slot.bad <= slot.here
            if not model.of_path(slot):
                assert not model.gone(slot) or model.kept(slot)
                assert slot.item
            full = model.full(page)
            if model.gone(full):
                busy = model.kept(slot) or model.coming(slot) or model.read(slot)
                assert busy or not slot.here
    for page in model.nodes:
        assert all(page in model.slots[n] for n, f in model.families.items() if f.path)
    if DEVICE not in model.owned():
        blocks = [s.block for s in model.slots[FULL].values() if DEVICE in s.here]
        assert None not in blocks
        assert len(set(blocks)) == len(blocks)


def check_holds(model: Room) -> None:
    for lock in model.locks:
        assert lock.path in model.nodes or len(lock.path) == 1
        for slot in lock.holds:
            assert model.slots[slot.component].get(slot.path) is slot
