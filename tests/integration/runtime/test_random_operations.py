"""Hundreds of random operations on tiny pools: whatever a tier claims, its bytes are there.

Every page's bytes are a function of its tokens, so a copy in the wrong place, an overwritten or a
half-moved one shows. After each step the core proves its own invariants as well.
"""

import random
from collections.abc import Callable

import pytest
from toy import LAYOUT, make, state_of

from runtime.storage.file import FileStore
from runtime.storage.header import HEADER_BYTES

PAGE = LAYOUT.page_size
HOUR_NS = 3600 * 10**9


class Engine:
    """Several sessions and requests at once; `expected` has the bytes of every page ever
    computed, by key."""

    def __init__(self, cache, draw: random.Random) -> None:
        self.cache = cache
        self.draw = draw
        self.open = []
        self.parents: dict[str, str] = {}
        self.expected: dict[bytes, bytes] = {}
        self.count = 0

    def begin(self) -> None:
        if len(self.open) == 3:
            self.finish()
        session = f"s{self.draw.randrange(4)}"
        family = int(session[1:]) // 2
        length = self.draw.randint(1, 30)
        branch = self.draw.choice([4, 8, 12])
        tokens = [
            family * 1000 + i + (5 if i > branch else 0) * self.draw.randrange(2)
            for i in range(length)
        ]
        self.count += 1
        self.open.append(self.cache.begin(f"r{self.count}", session, tokens))

    def restore_and_write(self) -> None:
        if request := self.pick():
            cached = request.restore(self.draw.choice([0.0, 5.0]))
            assert (request.read() == state_of(request.tokens)[:, :, :, :cached]).all()
            state = state_of(request.tokens, cached)
            chunk = self.draw.choice([PAGE, 2 * PAGE, state.shape[3]])
            done = cached
            while done - cached + chunk <= state.shape[3]:
                kept = request.write(done, state[:, :, :, done - cached :][:, :, :, :chunk])
                done += kept
                if kept < chunk // PAGE * PAGE or not kept:
                    break
            self.learn(request)

    def finish(self) -> None:
        if request := self.pick():
            self.open.remove(request)
            request.finish() if self.draw.random() < 0.7 else request.abort("changed its mind")

    def close_session(self) -> None:
        sessions = self.cache.core.sessions()
        if sessions:
            self.cache.close_session(self.draw.choice(sessions).name)

    def hint(self) -> None:
        core, now = self.cache.core, self.cache.now()
        sessions = core.sessions()
        if not sessions:
            return
        name = self.draw.choice(sessions).name
        match self.draw.choice(["pin", "unpin", "demote", "demote", "prefetch", "flush"]):
            case "pin":
                tier = self.draw.choice(["device", "host"])
                core.pin(now, name, tier, self.draw.choice([1, HOUR_NS]), "test")
            case "unpin":
                for lease, *_ in core.session(name).leases:
                    core.unpin(now, lease)
            case "demote":
                core.demote(now, name, "test")
            case "prefetch":
                core.prefetch(now, name, "test")
            case "flush":
                core.flush(now, name, "test")
                self.cache.forget_dropped()

    def step(self) -> None:
        self.cache.step(self.draw.choice([0.0, 0.001]))

    def drain(self) -> None:
        assert self.cache.drain(10)

    def sweep(self) -> None:
        assert all(count["damaged"] == 0 for count in self.cache.sweep().values())

    def pick(self):
        return self.draw.choice(self.open) if self.open else None

    def learn(self, request) -> None:
        keys = self.cache.core.keys(request.match.receipt)
        state = state_of(request.tokens)
        for i, key in enumerate(keys):
            page = state[:, :, :, i * PAGE : (i + 1) * PAGE].contiguous().numpy().tobytes()
            assert self.expected.setdefault(key, page) == page

    def check(self, store: FileStore) -> None:
        self.cache.core.check()
        for tier, pool in self.cache.guard._pools.items():
            for _, page, _, key in self.cache.core.resident(tier):
                assert bytes(pool.page(page)) == self.expected[key], (tier, page)
        stored = [key for *_, key in self.cache.core.resident("storage")]
        pages = [memoryview(bytearray(LAYOUT.page_bytes)) for _ in stored]
        heads = [bytearray(HEADER_BYTES) for _ in stored]
        assert set(store.get(stored, heads, pages)) <= {""}
        for key, page in zip(stored, pages, strict=True):
            assert bytes(page) == self.expected[key], "storage"


@pytest.mark.parametrize("seed", range(4))
def test_a_page_that_claims_a_tier_has_its_bytes_there(tmp_path, seed):
    draw = random.Random(seed)
    store = FileStore(tmp_path)
    sizes = {"device_pages": 10, "host_pages": 8, "storage_pages": 14}
    with make(**sizes, storage=store, write_through=seed < 3) as cache:
        engine = Engine(cache, draw)
        weights: dict[Callable[[], None], int] = {
            engine.begin: 6,
            engine.restore_and_write: 8,
            engine.finish: 7,
            engine.hint: 3,
            engine.close_session: 1,
            engine.step: 6,
            engine.drain: 4,
            engine.sweep: 1,
        }
        for _ in range(400):
            [operation] = draw.choices([*weights], [*weights.values()])
            operation()
            engine.check(store)
        for request in [*engine.open]:
            request.finish()
        assert cache.drain(10)
        engine.check(store)
        assert cache.guard.violations == 0
        assert all(pool.fenced == 0 for pool in cache.core.pools())
        moved = {kind for kind, count in cache.stats()["moved"].items() if count}
        assert moved >= (
            {"backup", "offload", "prefetch", "load"} if seed == 0 else {"backup", "load"}
        )
