"""Warm time to first token, against computing the prompt: SmolLM2 through the transformers adapter.

other: a prompt that nothing is known of. ours: the same prompt again, with its pages on the
device, on the host only, or in files only; restoring, checking (canary "all") and computing the
last partial chunk are in it. Files are read back from the page cache, as they are in practice when
they were written a short while ago.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from runtime import FileStore, TieredCache, models
from runtime.adapters.transformers import GRID_TOKENS, TransformersEngine, layout_of
from tests.bench.report import Goal, Row, rated

TEXTS = Path("examples/agents")
PROMPT_TOKENS = 1034
"""1024 tokens that can be cached, and a few that cannot."""
PAGE_TOKENS = 16
REPEAT = 3
GOAL = Goal(">=", 5.0)
TIMEOUT_S = 60.0


def rows() -> Iterator[Row]:
    model = models.load("smollm2", TEXTS)
    text = model.encode("\n".join(file.read_text() for file in sorted(TEXTS.rglob("*.*"))))
    layout = layout_of(model.network.config, PAGE_TOKENS)
    pages = PROMPT_TOKENS // PAGE_TOKENS
    with (
        tempfile.TemporaryDirectory() as folder,
        TieredCache(
            layout,
            engine="bench",
            namespace="smollm2",
            device_pages=pages,
            host_pages=pages,
            storage=FileStore(folder),
            storage_pages=REPEAT * 4 * pages,
        ) as cache,
    ):
        bench = _Bench(cache, TransformersEngine(model.network, cache, stop=model.stop_token))
        bench.warm_up(text[-GRID_TOKENS:])
        prompts = [text[turn * PROMPT_TOKENS :][:PROMPT_TOKENS] for turn in range(REPEAT)]
        times = [bench.once(turn, prompt) for turn, prompt in enumerate(prompts)]
    for place, goal in (("device", GOAL), ("host", None), ("file", None)):
        yield rated(
            f"warm first token, {PROMPT_TOKENS} tokens, pages on {place}",
            "ms",
            [(1e3 * turn[place], 1e3 * turn["cold"]) for turn in times],
            goal=goal,
            speedup=True,
        )


class _Bench:
    def __init__(self, cache: TieredCache, engine: TransformersEngine) -> None:
        self._cache = cache
        self._engine = engine
        self._fillers = 0

    def warm_up(self, prompt: list[int]) -> None:
        self._engine.generate("warm-up", "warm-up", prompt, 1)
        self._cache.close_session("warm-up")

    def once(self, turn: int, prompt: list[int]) -> dict[str, float]:
        """Seconds to the first token, by where the prompt's pages were."""
        places: list[tuple[str, Callable[[str], None]]] = [
            ("cold", lambda session: None),
            ("device", lambda session: None),
            ("host", self._off_device),
            ("file", self._off_host),
        ]
        times = {}
        for place, prepare in places:
            session = f"s{turn}"
            prepare(session)
            done = self._engine.generate(f"{session}-{place}", session, prompt, 1)
            hit = 0 if place == "cold" else PROMPT_TOKENS // GRID_TOKENS * GRID_TOKENS
            assert done.hit_tokens == hit, (place, done.hit_tokens)
            self._settle()
            times[place] = done.ttft_s
        return times

    def _off_device(self, session: str) -> None:
        self._cache.core.demote(self._cache.now(), session, "bench")
        self._settle()
        found = self._cache.core.session(session)
        assert (found.device_pages, found.host_pages) == (0, found.pages)

    def _off_host(self, session: str) -> None:
        """Another session's pages take the whole device and host."""
        self._fillers += 1
        tokens = [self._fillers + 100_000] * PROMPT_TOKENS
        with self._cache.begin(f"filler-{self._fillers}", "filler", tokens) as held:
            shape = [*self._cache.layout.page_shape]
            shape[3] = PROMPT_TOKENS
            assert held.write(0, torch.zeros(shape)) == PROMPT_TOKENS // PAGE_TOKENS * PAGE_TOKENS
        self._settle()
        found = self._cache.core.session(session)
        assert (found.device_pages, found.host_pages) == (0, 0)
        assert found.storage_pages == found.pages

    def _settle(self) -> None:
        assert self._cache.drain(TIMEOUT_S)
