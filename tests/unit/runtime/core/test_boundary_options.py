"""What a core and its components cannot be."""

import math

import pytest
from hostile_arguments import NO_U32, REFUSALS, UNSPEAKABLE

from runtime._core import POLICIES, BadArgument, Component, Core

GOOD = {"engine": "e", "epoch": "1", "namespace": "n", "page_size": 2, "device": 4}
TEXT = ["", UNSPEAKABLE, b"e", None, 1]
SWA = Component("swa", "swa", window=4, device=4)
HIGH = Component("swa", "swa", window=4, device=4, host=9)
OBSERVED = {**GOOD, "device": 0, "observed_device": True}
DRAFT = Component("draft", "sidecar", follows="swa", device=4)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("engine", TEXT),
        ("epoch", TEXT),
        ("namespace", TEXT),
        ("page_size", [0, 65_537, *NO_U32]),
        ("device", [0, 2**30 + 1, *NO_U32]),
        ("host", [2**30 + 1, *NO_U32]),
        ("storage", [2**30 + 1, *NO_U32]),
        ("page_bytes", [-1, 2**64, 1.5, None]),
        ("key", ["", "Tokens", "bytes", UNSPEAKABLE, b"tokens", None, 0]),
        ("observed_device", [True, 1, "yes", None]),  # True: then the core has no device pages
        ("pin_share", [-0.1, 1.1, math.nan, math.inf, "half", None]),
        ("secret", ["text", None, 5, [256], [-1], range(2**45)]),
        ("now", [2**63, 0.5, None]),
        ("wall_offset", [2**63, 0.5, None]),
        ("write_through", [1, "yes", None]),
        ("admit_host", NO_U32),
        ("admit_storage", NO_U32),
        ("move_timeout", [-1, 2**63, 1.5, None]),
        ("defer_digests", [1, "yes"]),
        ("ghosts", NO_U32),
        ("log_rows", NO_U32),
        ("journal", [1, None]),
        ("colour", ["red"]),
        (
            "policies",
            [
                {"gpu": "lru"},
                {"device": "newest"},
                {"device": ""},
                {"device": None},
                {"device": b"lru"},
                {0: "lru"},
                {UNSPEAKABLE: "lru"},
                {"device": UNSPEAKABLE},
                {"device": "tlru(threshold=many)"},
                {"device": "lru(threshold=1)"},
                ["lru"],
                "lru",
                None,
            ],
        ),
        (
            "components",
            [
                None,
                3,
                "swa",
                ["swa"],
                [None],
                [Component],
                {"swa": SWA},
                [SWA, SWA],
                [DRAFT],
                [DRAFT, SWA],
                [Component("full", "swa", window=4, device=4)],
                [Component("", "swa", window=4, device=4)],
                [Component("swa", "swa", window=4)],  # nothing to compute into
                [Component("swa", "swa", window=0, device=4)],
                [Component("swa", "swa", window=4, device=2**31)],
                [Component("c", "spans", ratio=0)],
                [Component("c", "spans", ratio=3)],  # two tokens a page
                [Component("x", "sidecar", follows="gone", device=4)],
                [Component(f"c{i}", "mamba", device=1) for i in range(40)],
                range(2**40),
            ],
        ),
    ],
)
def test_a_core_that_cannot_be_is_refused(option, values):
    for value in values:
        with pytest.raises(REFUSALS):
            Core(**{**GOOD, option: value})
    with pytest.raises(TypeError):
        Core(*GOOD.values())


@pytest.mark.parametrize(
    "options",
    [
        {"storage": 5, "policies": {"storage": "lfu"}, "admit_storage": 2},  # no host
        {"device": 0, "observed_device": True},
        {"components": [SWA, DRAFT, Component("c2", "spans", ratio=2)]},
        {
            "components": (Component("m", "mamba", device=1, host=9, storage=9, page_bytes=2**40),),
            "host": 1,
            "storage": 1,
        },
        {"storage": 1, "policies": {"storage": "tlru(threshold=4096,next_prompt_estimate=512)"}},
        {"key": "digests", "page_size": 1},
        {"now": -(2**63), "wall_offset": 2**63 - 1},
        {"admit_host": 0, "storage": 1, "admit_storage": 2**32 - 1, "ghosts": 0, "log_rows": 0},
    ],
)
def test_unusual_cores_can_be(options):
    core = Core(**{**GOOD, **options})
    core.check()
    assert core.pools()[0].component == "full"


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_of_ours_is_known_by_its_name(policy):
    tiers = ("device", "host", "storage")
    Core(**GOOD, host=1, storage=1, policies=dict.fromkeys(tiers, policy)).check()


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (("x", "full"), {}),
        (("x", "gru"), {}),
        (("x", ""), {}),
        (("x", None), {}),
        ((None, "swa"), {"window": 4}),
        ((UNSPEAKABLE, "swa"), {"window": 4}),
        (("x", "swa"), {"window": 4, "interval": 1}),
        (("x", "swa"), {"window": 4, "follows": "full"}),
        (("x", "mamba"), {"ratio": 2}),
        (("x", "spans"), {"ratio": 2, "window": 2}),
        (("x", "sidecar"), {}),
        (("x", "sidecar"), {"follows": None}),
        (("x", "sidecar"), {"follows": "full", "window": 1}),
        (("x", "mamba", 5), {}),
        (("x", "mamba"), {"colour": "red"}),
        (("x",), {}),
        *((("x", "swa"), {"window": value}) for value in NO_U32),
        *((("x", "mamba"), {tier: value}) for value in NO_U32 for tier in ("device", "host")),
        *((("x", "mamba"), {"page_bytes": value}) for value in (-1, 2**64, 1.5, None)),
    ],
)
def test_a_component_that_cannot_be_is_refused(args, options):
    with pytest.raises(REFUSALS):
        Component(*args, **options)


def test_a_refusal_says_what_was_wrong_and_what_would_be_right():
    for call, words in [
        (lambda: Component("x", "gru"), ["'gru'", "swa, mamba, sidecar, spans"]),
        (lambda: Component("x", "mamba", ratio=2), ["ratio is 2", "mamba", "spans"]),
        (lambda: Core(**GOOD, key="bytes"), ["'bytes'", "tokens, pairs, digests"]),
        (
            lambda: Core(**GOOD, host=1, policies={"host": "new"}),
            ["'new'", "lru", "module.path:Class"],
        ),
        (lambda: Core(**GOOD, components=[SWA, SWA]), ["'swa'", "taken"]),
        (lambda: Core(**{**GOOD, "device": 0}), ["device is 0", "observed_device"]),
        (lambda: Core(**GOOD, policies={"host": "lru"}), ["'lru' for 'host'", "host is 0 pages"]),
        (lambda: Core(**OBSERVED, policies={"device": "lfu"}), ["'lfu'", "the engine owns"]),
        (lambda: Core(**GOOD, host=9, admit_storage=2), ["admit_storage is 2", "storage is 0"]),
        (lambda: Core(**GOOD, admit_host=3), ["admit_host is 3", "host is 0 pages"]),
        (lambda: Core(**GOOD, components=[HIGH]), ["'swa'", "9 pages of host", "host is 0 pages"]),
    ]:
        with pytest.raises(BadArgument) as refusal:
            call()
        assert all(word in str(refusal.value).replace('"', "'") for word in words), refusal.value
