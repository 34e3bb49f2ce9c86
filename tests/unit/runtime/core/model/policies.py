"""The order in which items go: the lowest rank first.

Each policy is a sort key over an item, given where it lies; s3fifo alone remembers something, its
queues (Yang et al., SOSP 2023). tlru is the tail-optimized LRU of arXiv 2510.15152: what the next
prompt can compute again without exceeding the threshold of uncached tokens goes first.
"""

from collections.abc import Callable
from typing import Any

from .pages import Pages
from .records import Item, Place, Slot, covers

PROTECTED_USES = 2
TLRU_TOKENS = {"threshold": 4096, "next_prompt_estimate": 512}
REMEMBERING = ("s3fifo", "tlru", "cost")
"""Policies with a memory of their own. Beside a core the model does not foresee their victims, but
each must be one that may go."""
SMALL_SHARE = 10
"""One part in so many of a pool is the small queue's."""
PROMOTED_USES = 2


class Policies(Pages):
    def policy(self, tier: str) -> tuple[str, dict[str, int]]:
        """(name, settings) of "name" or "name(setting=number,...)"."""
        name, _, rest = self.config.policies.get(tier, "lru").partition("(")
        settings = [word.split("=") for word in rest.rstrip(")").split(",") if word]
        return name, {word: int(number) for word, number in settings}

    def choose(self, component: str, tier: str, slots: list[Slot]) -> Slot:
        """The victim among slots of which each could go."""
        if self.policy(tier)[0] in REMEMBERING and self.victims is not None:
            return self.follow(component, tier, slots)
        if self.policy(tier)[0] == "s3fifo":
            unwanted = [slot for slot in slots if not self.wanted_by_hint(slot)]
            return self.choose_s3fifo(component, tier, unwanted or slots)
        return min(slots, key=lambda slot: self.rank(tier, slot))

    def follow(self, component: str, tier: str, slots: list[Slot]) -> Slot:
        """What the core evicted, if it was allowed to."""
        assert self.victims, f"the core evicts nothing more from {component} in {tier}"
        victim = self.victims[component, tier].pop(0)
        assert victim in slots
        assert not self.wanted_by_hint(victim) or all(map(self.wanted_by_hint, slots))
        return victim

    def rank(self, tier: str, slot: Slot) -> tuple:
        name, settings = self.policy(tier)
        item = self.item(slot)
        start, end = self.extent(item) if self.of_path(slot) else self.spot_extent(slot)
        score = SCORES[name](self, item, slot, (start, end), settings)
        return (self.wanted_by_hint(slot), score, self.tie(slot))

    def tie(self, slot: Slot) -> int:
        """Deeper first on a path, shallower first among spots."""
        return -self.extent(self.item(slot))[0] if self.of_path(slot) else len(slot.path)

    def spot_extent(self, slot: Slot) -> tuple[int, int]:
        return len(slot.path) - 2, len(slot.path) - 1

    def wanted_by_hint(self, slot: Slot) -> bool:
        soft = [lease for lease in self.leases.values() if lease.kind != "pin"]
        return any(covers(lease.path, slot.path) for lease in soft)

    # s3fifo

    def enter(self, slot: Slot, tier: str) -> None:
        """An item has its first copy in a tier: in the small queue, or in main when it was there
        before."""
        places, key = self.item(slot).places, (slot.component, tier)
        if key not in places:
            places[key] = Place("small", self.number())
        elif places[key].queue == "ghost":
            places[key] = Place("main", self.number())

    def leave(self, slot: Slot, tier: str, evicted: bool) -> None:
        """An item has lost its last copy in a tier."""
        item, key = self.item(slot), (slot.component, tier)
        if key in item.places and not self.copies(item, slot, tier):
            if evicted:
                item.places[key].queue = "ghost"
            else:
                del item.places[key]

    def copies(self, item: Item, slot: Slot, tier: str) -> list[Slot]:
        slots = self.slots[slot.component].values()
        return [s for s in slots if tier in s.here and self.item(s) is item]

    def choose_s3fifo(self, component: str, tier: str, slots: list[Slot]) -> Slot:
        key = (component, tier)

        def place(slot: Slot) -> Place:
            return self.item(slot).places[key]

        while True:
            here = [s for s in self.slots[component].values() if tier in s.here]
            small = sum(place(s).queue == "small" for s in here)
            full = small > self.capacity[component][tier] // SMALL_SHARE
            of_small = [s for s in slots if place(s).queue == "small"]
            of_main = [s for s in slots if place(s).queue == "main"]
            queue = of_small if of_small and (full or not of_main) else of_main
            first = min(queue, key=lambda s: (place(s).number, self.tie(s)))
            at = place(first)
            if at.queue == "small" and at.uses >= PROMOTED_USES:
                at.queue, at.uses, at.number = "main", 0, self.number()
            elif at.queue == "main" and at.uses:
                at.uses, at.number = at.uses - 1, self.number()
            else:
                return first


Extent = tuple[int, int]
Score = Callable[[Policies, Item, Slot, Extent, dict[str, int]], Any]


def tlru(model: Policies, item: Item, slot: Slot, extent: Extent, settings: dict) -> tuple:
    tokens = {**TLRU_TOKENS, **settings}
    uncached = (item.longest - (len(slot.path) - 2)) * model.config.page_size
    return (uncached + tokens["next_prompt_estimate"] > tokens["threshold"], item.last_use)


def session(model: Policies, item: Item, slot: Slot, extent: Extent, _: dict) -> tuple:
    """Spot slots go by what the node that they lie in is to sessions."""
    node = model.node(slot)
    if node.superseded:
        return (0, 0, item.last_use)
    if not model.owners(slot.path):
        return (1, 0, item.last_use)
    ahead = node.returns_at if node.returns_at > model.now else 0
    return (2, -ahead, item.last_use)


def priority(model: Policies, item: Item, slot: Slot, extent: Extent, _: dict) -> tuple:
    return (model.node(slot).priority, item.last_use)


SCORES: dict[str, Score] = {
    "lru": lambda model, item, slot, extent, _: item.last_use,
    "fifo": lambda model, item, slot, extent, _: item.created,
    "lfu": lambda model, item, slot, extent, _: (item.uses, item.last_use),
    "slru": lambda model, item, slot, extent, _: (item.uses >= PROTECTED_USES, item.last_use),
    # For the order in s3fifo's queues see above; this is what its evictions report.
    "s3fifo": lambda model, item, slot, extent, _: item.last_use,
    "tlru": tlru,
    "priority": priority,
    # A page costs as much again as it has context; all pages of a pool have the same bytes.
    "cost": lambda model, item, slot, extent, _: (sum(extent), item.last_use),
    "session": session,
}
POLICIES = list(SCORES)
