"""Serve a transformers causal language model through a TieredCache, one request at a time.

Answers are exactly those of a run without any cache, because both prefill on one absolute grid: a
chunk ends at every multiple of GRID_TOKENS, hits are rounded down to it, and only pages that whole
chunks filled are stored. The last, partial chunk and the decoded tokens are computed again on the
next turn: a decode's K/V differ in the last bits (2e-5) from what a prefill computes.
`keep_decoded` stores them all the same; then answers should be equal, and need not be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache

from runtime.errors import DamagedPage
from runtime.layout import Layout

if TYPE_CHECKING:
    from runtime.cache import TieredCache
    from runtime.request import Request

GRID_TOKENS = 64


@dataclass(frozen=True)
class Generation:
    tokens: list[int]
    """The answer, without the end token."""
    prompt_tokens: int
    hit_tokens: int
    """Tokens whose state came from the cache."""
    ttft_s: float
    """From the request's arrival to its first token."""
    restore_s: float
    """Of those, until the cached state was there; the rest is prefill."""


def layout_of(config: Any, page_size: int) -> Layout:
    """The geometry of the state of a Llama-like model, from its transformers config."""
    return Layout(
        layers=config.num_hidden_layers,
        kv_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        page_size=page_size,
        dtype=str(config.dtype).removeprefix("torch."),
    )


class TransformersEngine:
    """A model and its cache.

    network: a transformers causal LM whose layers all keep plain keys and values.
    stop: the token that ends an answer. keep_decoded: store the K/V of answers too.
    GRID_TOKENS must be a multiple of the cache's page size.
    """

    def __init__(
        self, network: Any, cache: TieredCache, *, stop: int, keep_decoded: bool = False
    ) -> None:
        self._network = network
        self._cache = cache
        self._stop = stop
        self._keep_decoded = keep_decoded

    def generate(
        self, request: str, session: str, tokens: Sequence[int], max_new: int, *, parent: str = ""
    ) -> Generation:
        """Answer a prompt (one token or more) greedily, with at most `max_new` tokens."""
        arrived = time.perf_counter()
        with self._cache.begin(
            request, session, tokens, parent=parent, grid_tokens=GRID_TOKENS
        ) as held:
            past = DynamicCache(config=self._network.config)
            # At least one token must be computed, or there are no logits to choose an answer from.
            state = _restored(held, _on_grid(len(tokens) - 1))
            hit = state.shape[3]
            _fill(past, state)
            restored = time.perf_counter()

            logits = _prefill(self._network, past, tokens, hit, self._cache.step)
            first = int(logits.argmax())
            held.first_token()
            prefilled = time.perf_counter()

            stored, whole = hit, _on_grid(len(tokens))
            if whole > hit:
                stored += held.write(hit, _state(past, hit, whole))
            answer = _decode(self._network, past, first, max_new, self._stop, self._cache.step)
            if self._keep_decoded and stored >= whole:
                held.extend(answer)
                held.write(stored, _state(past, stored, past.get_seq_length()))
        return Generation(
            tokens=answer,
            prompt_tokens=len(tokens),
            hit_tokens=hit,
            ttft_s=prefilled - arrived,
            restore_s=restored - arrived,
        )


def generate_plain(
    network: Any,
    tokens: Sequence[int],
    max_new: int,
    *,
    stop: int,
    step: Callable[[], Any] = lambda: None,
) -> Generation:
    """The same answer without any cache: what `TransformersEngine.generate` must equal.

    step: called after every chunk and token, for what goes on beside it.
    """
    arrived = time.perf_counter()
    past = DynamicCache(config=network.config)
    first = int(_prefill(network, past, tokens, 0, step).argmax())
    took = time.perf_counter() - arrived
    answer = _decode(network, past, first, max_new, stop, step)
    return Generation(answer, len(tokens), 0, ttft_s=took, restore_s=0.0)


def _restored(held: Request, limit_tokens: int) -> torch.Tensor:
    """The state of the longest restorable prefix, within the limit."""
    while True:
        held.restore()
        try:
            return held.read(limit_tokens)
        except DamagedPage:
            continue  # The page is dropped, so the next restore ends before it.


def _on_grid(tokens: int) -> int:
    return tokens // GRID_TOKENS * GRID_TOKENS


@torch.inference_mode()
def _prefill(
    network: Any, past: DynamicCache, tokens: Sequence[int], start: int, step: Callable[[], Any]
) -> torch.Tensor:
    """Compute tokens[start:] chunk by chunk; the logits after the last one."""
    for at in range(start, len(tokens), GRID_TOKENS):
        chunk = torch.tensor([list(tokens[at : at + GRID_TOKENS])])
        out = network(input_ids=chunk, past_key_values=past, use_cache=True, logits_to_keep=1)
        step()
    return out.logits[0, -1]


@torch.inference_mode()
def _decode(
    network: Any, past: DynamicCache, first: int, max_new: int, stop: int, step: Callable[[], Any]
) -> list[int]:
    answer = []
    token = first
    while token != stop:
        answer.append(token)
        if len(answer) == max_new:
            break
        out = network(input_ids=torch.tensor([[token]]), past_key_values=past, use_cache=True)
        token = int(out.logits[0, -1].argmax())
        step()
    return answer


def _state(past: Any, start: int, end: int) -> torch.Tensor:
    """[layers, 2, kv_heads, end - start, head_dim], a copy."""
    return torch.stack(
        [
            torch.stack((layer.keys[0, :, start:end], layer.values[0, :, start:end]))
            for layer in past.layers
        ]
    )


def _fill(past: DynamicCache, state: torch.Tensor) -> None:
    for index, (keys, values) in enumerate(state):
        past.update(keys[None], values[None], index)
