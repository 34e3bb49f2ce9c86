"""Configurations of a complete core for random runs: small, so that everything is short of room."""

from random import Random

from agreement import PAGE
from hypothesis import strategies as st
from model import POLICIES, Component, Config

few = st.integers(1, 8)
some = st.integers(0, 8)


def room(draw, host: int, storage: int) -> dict[str, int]:
    """A component's own tiers. A tier that full does not have, no other has."""
    return {
        "device": draw(few),
        "host": draw(some) if host else 0,
        "storage": draw(some) if storage else 0,
    }


@st.composite
def components(draw, host: int, storage: int) -> tuple[Component, ...]:
    found: list[Component] = []
    if draw(st.booleans()):
        window = draw(st.integers(1, 7))
        found.append(Component("swa", "swa", window=window, **room(draw, host, storage)))
    if draw(st.booleans()):
        interval = draw(st.integers(0, 3))
        found.append(Component("mamba", "mamba", interval=interval, **room(draw, host, storage)))
    if draw(st.booleans()):
        found.append(Component("c2", "spans", ratio=PAGE))
    for name in draw(st.lists(st.sampled_from(["indexer", "draft"]), unique=True, max_size=2)):
        slotted = [c.name for c in found if c.family in ("swa", "mamba")]
        follows = draw(st.sampled_from(["full", *slotted]))
        found.append(Component(name, "sidecar", follows=follows, **room(draw, host, storage)))
    return tuple(found)


def policy(name: str) -> str:
    """tlru with figures that fit the length of the texts."""
    return "tlru(threshold=6,next_prompt_estimate=2)" if name == "tlru" else name


@st.composite
def owned(draw) -> Config:
    host = draw(some)
    storage = draw(st.integers(0, 12))
    there = ["device", *(["host"] if host else []), *(["storage"] if storage else [])]
    tiers = draw(st.lists(st.sampled_from(there), unique=True))
    return Config(
        PAGE,
        draw(few),
        host,
        storage,
        key=draw(st.sampled_from(["tokens", "tokens", "pairs", "digests"])),
        components=draw(components(host, storage)),
        policies={tier: policy(draw(st.sampled_from(POLICIES))) for tier in tiers},
        write_through=draw(st.booleans()),
        pin_share=draw(st.sampled_from([0.25, 0.5, 1.0])),
        admit_host=draw(st.sampled_from([1, 1, 2, 3])) if host else 1,
        admit_storage=draw(st.sampled_from([1, 1, 2, 4])) if storage else 1,
        move_timeout=draw(st.sampled_from([0, 5, 20])),
    )


@st.composite
def observed(draw) -> Config:
    """The engine owns its device pages, of full and of at most one spot component."""
    host = draw(few)
    storage = draw(some)
    window = Component("swa", "swa", window=4, host=draw(some))
    return Config(
        PAGE,
        0,
        host,
        storage,
        components=(window,) if draw(st.booleans()) else (),
        policies={"host": policy(draw(st.sampled_from(POLICIES)))},
        write_through=draw(st.booleans()),
        admit_host=draw(st.sampled_from([1, 2])),
        move_timeout=draw(st.sampled_from([0, 20])),
        observed_device=True,
    )


# the same drawn without hypothesis, which likes to say a thing again and again


def drawn(draw: Random) -> Config:
    return drawn_observed(draw) if draw.random() < 0.3 else drawn_owned(draw)


def drawn_owned(draw: Random) -> Config:
    host, storage = draw.choice([0, *range(9)]), draw.choice([0, 0, *range(13)])

    def room() -> dict[str, int]:
        return {
            "device": draw.randint(1, 8),
            "host": draw.randint(0, 8) if host else 0,
            "storage": draw.randint(0, 8) if storage else 0,
        }

    found: list[Component] = []
    if draw.random() < 0.5:
        found.append(Component("swa", "swa", window=draw.randint(1, 7), **room()))
    if draw.random() < 0.5:
        found.append(Component("mamba", "mamba", interval=draw.randint(0, 3), **room()))
    if draw.random() < 0.3:
        found.append(Component("c2", "spans", ratio=PAGE))
    for name in draw.sample(["indexer", "draft"], draw.choice([0, 0, 1, 2])):
        follows = draw.choice(["full", *(c.name for c in found if c.family in ("swa", "mamba"))])
        found.append(Component(name, "sidecar", follows=follows, **room()))
    return Config(
        PAGE,
        draw.randint(1, 8),
        host,
        storage,
        key=draw.choice(["tokens", "tokens", "pairs", "digests"]),
        components=tuple(found),
        policies={
            tier: policy(draw.choice(POLICIES))
            for tier, pages in (("device", 1), ("host", host), ("storage", storage))
            if pages and draw.random() < 0.7
        },
        write_through=draw.random() < 0.7,
        pin_share=draw.choice([0.25, 0.5, 1.0]),
        admit_host=draw.choice([1, 1, 2, 3]) if host else 1,
        admit_storage=draw.choice([1, 1, 2, 4]) if storage else 1,
        move_timeout=draw.choice([0, 5, 20]),
    )


def drawn_observed(draw: Random) -> Config:
    window = Component("swa", "swa", window=draw.randint(1, 7), host=draw.randint(0, 8))
    return Config(
        PAGE,
        0,
        draw.randint(1, 8),
        draw.randint(0, 8),
        components=(window,) if draw.random() < 0.6 else (),
        policies={"host": policy(draw.choice(POLICIES))},
        write_through=draw.random() < 0.7,
        admit_host=draw.choice([1, 1, 2]),
        move_timeout=draw.choice([0, 20]),
        observed_device=True,
    )
