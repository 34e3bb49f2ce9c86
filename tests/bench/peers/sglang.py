"""SGLang's unified radix tree, over its Rust core or its Python core, as its scheduler drives it.

KV events are on, and every verb that changes the tree ends in `take_events`, which the scheduler
calls in its loop on the same thread. Turning the events into bytes and letting them go is its
publisher's and is not counted: `drain` stands for it, between measurements. The allocator is a
stand-in that only counts: finding and freeing pages costs them nothing here.
Read in sglang 0.5.23: mem_cache/unified_radix_cache.py (match_prefix, lock, unlock, evict,
checkpoint_into_tree), managers/scheduler_components/kv_events_publisher.py.
"""

from __future__ import annotations

from array import array
from typing import Any, Literal

import numpy as np
import torch
from sglang.srt.mem_cache.base_prefix_cache import EvictParams, InsertParams, MatchPrefixParams
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

Backend = Literal["rust", "python"]
CORES = {"rust": "RustUnifiedTreeCore", "python": "UnifiedTreeCore"}


class Pages:
    """Stands in for the allocator of KV slots."""

    device = "cpu"
    page_size = 1
    freed = 0

    def free_segment(self, indices: torch.Tensor, start_pos: int) -> None:
        self.freed += len(indices)


class Prompt:
    """A request's tokens and where their state lies: one slot index a token."""

    def __init__(self, tokens: np.ndarray, first_slot: int, page: int) -> None:
        whole = len(tokens) // page * page
        self.key = RadixKey(array("q", tokens[:whole].astype(np.int64).tobytes()))
        self.slots = torch.arange(first_slot, first_slot + whole)


class SglangTree:
    def __init__(self, backend: Backend, page: int) -> None:
        self.page = page
        self._cache = UnifiedRadixCache(
            CacheInitParams(
                disable=False,
                req_to_token_pool=None,  # type: ignore[arg-type]
                token_to_kv_pool_allocator=Pages(),  # type: ignore[arg-type]
                page_size=page,
                enable_kv_cache_events=True,
                tree_components=(ComponentType.FULL,),
                tree_core_backend=backend,
            )
        )
        name = type(self._cache.tree_core).__name__
        assert name == CORES[backend], f"{name} stands in for the {backend} core"
        self._slots = 0
        self._events: list[Any] = []

    def prompt(self, tokens: np.ndarray) -> Prompt:
        self._slots += len(tokens)
        return Prompt(tokens, self._slots - len(tokens), self.page)

    def match(self, prompt: Prompt) -> int:
        """Tokens found."""
        return self._match(prompt).device_prefix_len

    def node(self, prompt: Prompt) -> Any:
        return self._match(prompt).last_device_node

    def insert(self, prompt: Prompt, known: int) -> None:
        """known: leading tokens whose slots are the tree's own already."""
        self._insert(prompt, known)
        self._take_events()

    def turn(self, prompt: Prompt) -> None:
        """Match the whole prompt, then insert it: the tree keeps what is new."""
        self.insert(prompt, self.match(prompt))

    def lock_and_unlock(self, node: Any) -> None:
        self._cache.unlock(self._cache.lock(node))

    def evict(self, tokens: int) -> int:
        """Drop whole leaves until that many tokens are gone. Returns how many went."""
        gone = self._cache.evict(EvictParams(num_tokens=tokens)).num_tokens_evicted
        self._take_events()
        return gone

    def cycle(self, prompt: Prompt) -> None:
        """A whole request: match, lock, insert what it computed, move the lock there, unlock."""
        found = self._match(prompt)
        held = self._cache.lock(found.last_device_node)
        end = self._insert(prompt, found.device_prefix_len).last_device_node
        self._cache.unlock(held)
        self._cache.unlock(self._cache.lock(end))
        self._take_events()

    def drain(self) -> None:
        self._events.clear()

    def _take_events(self) -> None:
        self._events += self._cache.take_events()

    def _match(self, prompt: Prompt) -> Any:
        return self._cache.match_prefix(MatchPrefixParams(key=prompt.key))

    def _insert(self, prompt: Prompt, known: int) -> Any:
        return self._cache.insert(
            InsertParams(key=prompt.key, value=prompt.slots, prev_prefix_len=known)
        )
