"""Random calls over the whole boundary of `runtime._core`, sensible and hostile ones in any order.

Whatever is said: a typed error or an answer, never an internal fault, never a panic; a refusal has
changed nothing, `check()` holds, a replica follows, nothing is held when everybody lets go, and a
long run neither grows nor leaves a thread.

    python -m tests.fuzz.boundary --seconds 60 --seed 1
    python -m tests.fuzz.boundary --seed 1 --life 7      that life alone, told call by call
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import random
import reprlib
import secrets
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from runtime import _core
from runtime._core import Component, Core, CoreError, Log, LogError, Replica
from tests.fuzz import hostile
from tests.fuzz.commands import Call, Commands
from tests.fuzz.policies import Whim

TYPED = (CoreError, TypeError, OverflowError, ValueError, BufferError)
"""BufferError is Python's own, of buffers that cannot be had as asked."""
CALLS = 400
"""In one core's life."""
GROWTH_BYTES = 4 << 20
"""Names of components and policies are kept for good; 2,000 lives took half a MiB."""
WHIM = "tests.fuzz.policies:Whim"
PAGE_BYTES = os.sysconf("SC_PAGESIZE")


class Fault(AssertionError):
    """What must not happen, with the seed that made it happen."""


def resident_bytes() -> int:
    """Of what is in use; 0 where that cannot be asked."""
    Whim.core = None
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        # What the allocator keeps of what was freed depends on the order of it, and is no leak.
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * PAGE_BYTES if statm.exists() else 0


def threads() -> int:
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else 0


def typed(call: Any, *args: Any, **options: Any) -> Any:
    """The answer, or the refusal; anything else is a fault."""
    try:
        return call(*args, **options)
    except TYPED as refusal:
        text = str(refusal)
        # Arrow may panic over bytes that are no message; who folds them is told where.
        panicked = "panicked" in text and not (type(refusal) is LogError and "/arrow-" in text)
        if panicked or "internal fault" in text:
            raise Fault(text) from refusal
        return refusal


def random_config(rng: random.Random) -> dict[str, Any]:
    def room(most: int) -> int:
        return rng.choice([0, rng.randrange(1, most)])

    observed = rng.random() < 0.2
    config = {
        "engine": "e", "epoch": "1", "namespace": "n", "page_size": rng.choice([1, 2, 4]),
        "device": 0 if observed else rng.randrange(1, 16), "host": room(16), "storage": room(20),
        "page_bytes": rng.choice([0, 64]), "key": rng.choice(["tokens", "pairs", "digests"]),
        "observed_device": observed, "secret": rng.choice([b"", b"x"]),
        "write_through": rng.random() < 0.7, "move_timeout": rng.choice([0, 0, 9]),
        "pin_share": rng.choice([0.0, 0.5, 1.0]), "ghosts": rng.choice([0, 4, 100]),
        "defer_digests": rng.choice([None, True, False]), "journal": rng.random() < 0.2,
        "log_rows": rng.choice([1, 1 << 14, 1 << 14]),
    }  # fmt: skip
    there = [tier for tier in ("device", "host", "storage") if config[tier]]
    config["admit_host"] = rng.randrange(1, 3) if "host" in there else 1
    config["admit_storage"] = rng.randrange(1, 3) if "storage" in there else 1
    policies = [*_core.POLICIES, "tlru(threshold=6,next_prompt_estimate=2)"]
    policies += [WHIM] * 4
    config["policies"] = {tier: rng.choice(policies) for tier in there}
    device = 0 if observed else 1

    def pools() -> dict[str, int]:
        lower = {tier: room(9) if tier in there else 0 for tier in ("host", "storage")}
        return {"device": device * rng.randrange(1, 12), **lower}

    beside = {}
    if rng.random() < 0.5:
        beside["swa"] = Component("swa", "swa", window=rng.randrange(1, 9), **pools())
    if rng.random() < 0.4:
        beside["mamba"] = Component("mamba", "mamba", interval=rng.randrange(3), **pools())
    if rng.random() < 0.3:
        beside["indexer"] = Component("indexer", "sidecar", follows="full", **pools())
    return {**config, "names": list(beside), "components": list(beside.values())}


def hostile_components(rng: random.Random) -> None:
    options = {"window": 1, "interval": 1, "ratio": 1, "follows": "full", "device": 1, "host": 2}
    options = {name: value for name, value in options.items() if rng.random() < 0.3}
    args = [rng.choice(["a", "full", ""]), rng.choice(["swa", "mamba", "sidecar", "spans", "full"])]
    args, options = Commands.spoil(rng, (args, options))
    typed(Component, *args, **options)


class Life:
    """One core, from its making until everybody has let go of it."""

    def __init__(self, rng: random.Random, counted: Counter[str], told: bool = False) -> None:
        self.rng, self.counted, self.told = rng, counted, told
        self.config = random_config(rng)
        options = {key: value for key, value in self.config.items() if key != "names"}
        if rng.random() < 0.3:
            spoilt = dict(options)
            # A tier of a billion pages is allowed, and takes its 128 MiB.
            values = [v for v in hostile.EDGES if not 2**20 < v <= 2**30]
            option = rng.choice(list(options))
            spoilt[option] = rng.choice([rng.choice(values), hostile.anything(rng)])
            typed(Core, **spoilt)
        Whim.core = None
        self.core: Core = Core(**options)
        Whim.core = self.core
        self.log: Log = self.core.log()
        self.replica: Replica | None = Replica()
        self.payloads: list[bytes] = []
        self.commands = Commands(self.core, rng, self.config)

    def run(self) -> None:
        for session in ("s0", "s1", "s2"):
            self.core.open_session(0, session)
        for step in range(CALLS):
            self.step()
            if self.told or step % 16 == 0:
                self.core.check()
            if step % 16 == 0:
                self.fold()
        self.elsewhere()
        self.commands.let_go()
        self.core.check()
        self.fold()
        held = [pool for pool in self.core.pools() if pool.fenced or pool.leased]
        if held or self.core.sessions():
            raise Fault(f"still held after everybody let go: {held} {self.core.sessions()}")
        if journal := self.commands.journal + self.core.journal():
            Whim.core = None
            whims = WHIM in self.config["policies"].values()
            if not whims and Core.replay(journal).state_hash() != self.core.state_hash():
                raise Fault("the journal replays to another state")
            typed(Core.replay, self.damage(journal))

    def step(self) -> None:
        rng, core = self.rng, self.core
        name = rng.choice(self.commands.names)
        call: Call = self.commands.plan(name)
        spoilt = rng.random() < 0.25
        if spoilt:
            call = self.commands.spoil(rng, call)
        before = core.state_hash(), core.observed_hash(), core.seq()
        answer = typed(getattr(core, name), *call[0], **call[1])
        refused = isinstance(answer, Exception)
        if self.told:
            print(f"{name} {reprlib.repr(call)[:300]}\n    {reprlib.repr(answer)}", flush=True)
        if refused and before != (core.state_hash(), core.observed_hash(), core.seq()):
            raise Fault(f"{name} was refused and changed the state: {answer}")
        self.counted[f"{'refused' if refused else 'obeyed'}{' spoilt' if spoilt else ''}"] += 1
        if not refused:
            self.commands.heard(name, call[0], answer)

    def fold(self) -> None:
        while message := self.log.drain(self.rng.choice([1, 7, 1000])):
            if self.replica is None or self.log.dropped():
                self.replica = None
                continue
            if self.rng.random() < 0.05:
                typed(Replica().fold, self.damage(message.payload))
            if self.replica.fold(message.payload) != message.state_hash:
                raise Fault("a replica came to another state")
        if self.replica is not None:
            self.replica.check()
            if self.replica.state_hash() != self.core.state_hash():
                raise Fault("the replica is elsewhere")

    def damage(self, data: bytes) -> bytes:
        broken = bytearray(data)
        for _ in range(self.rng.randrange(1, 4)):
            place = self.rng.randrange(len(broken))
            broken[place] = self.rng.randrange(256)
        return bytes(broken[: self.rng.choice([len(broken), self.rng.randrange(len(broken))])])

    def elsewhere(self) -> None:
        """What the module offers beside a core."""
        rng = self.rng
        hostile_components(rng)
        tokens, space = self.commands.key([1, 2, 3, 4]), bytearray(64)
        runs = [(rng.randrange(3), 3 + rng.randrange(4), rng.randrange(3))]
        calls: list[tuple[Any, Call]] = [
            (_core.page_digests, ([tokens, 2, "n", b""], {})),
            (_core.content_hash, ([bytes(9)], {})),
            (_core.copy_pages, ([space, bytes(64), 8, runs, 2], {})),
            (self.log.drain, ([10], {})) if self.replica is None else (self.log.pending, ([], {})),
            (Replica().fold, ([b""], {})),
            (Core.replay, ([b""], {})),
        ]
        for function, call in calls:
            args, options = self.commands.spoil(rng, call)
            typed(function, *args, **options)


def live(seed: int, life: int, counted: Counter[str], told: bool = False) -> None:
    Whim.draw = random.Random(f"{seed}/{life}/whim")
    try:
        Life(random.Random(f"{seed}/{life}"), counted, told).run()
    except Exception as fault:
        raise Fault(f"seed {seed}, life {life}: {fault!r}") from fault


def fuzz(seconds: float, seed: int) -> Counter[str]:
    """Lives for so long; what was counted. A Fault names the life that it happened in."""
    counted: Counter[str] = Counter()
    started, life, warm = time.monotonic(), 0, 0
    before = threads()
    while time.monotonic() - started < seconds or life < 2:
        live(seed, life, counted)
        life += 1
        if time.monotonic() - started < seconds / 4:
            warm = max(warm, resident_bytes())
    grown, left = resident_bytes() - warm, threads() - before
    counted.update({"lives": life, "grown KiB": max(0, grown) >> 10})
    if warm and grown > GROWTH_BYTES:
        raise Fault(f"seed {seed}: {grown} bytes more after {life} lives")
    if left > 0:
        raise Fault(f"seed {seed}: {left} threads were left behind")
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--life", type=int, default=None)
    asked = parser.parse_args()
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    counted: Counter[str] = Counter()
    try:
        if asked.life is None:
            counted = fuzz(asked.seconds, seed)
        else:
            live(seed, asked.life, counted, told=True)
    except Fault as fault:
        sys.exit(f"{fault}\n{traceback_of(fault)}")
    print(", ".join(f"{what} {count}" for what, count in sorted(counted.items())))


def traceback_of(fault: Fault) -> str:
    import traceback

    return "".join(traceback.format_exception(fault.__cause__ or fault))


if __name__ == "__main__":
    main()
