"""A model whose state says which tokens it was computed from, and an engine's loop around it."""

from collections.abc import Sequence
from typing import Any

import torch

from runtime.cache import TieredCache
from runtime.layout import Layout

LAYOUT = Layout(layers=2, kv_heads=2, head_dim=4, page_size=4, dtype="float32")


def state_of(tokens: Sequence[int], start: int = 0, layout: Layout = LAYOUT) -> torch.Tensor:
    """State [layers, 2, kv_heads, n, head_dim] of tokens[start:]; each token's depends on all
    before it."""
    tags, tag = [], 7
    for token in tokens:
        tag = (tag * 31 + token + 1) % 1_000_003
        tags.append(tag)
    shape = (layout.layers, 2, layout.kv_heads, layout.head_dim)
    cells = torch.arange(1, 1 + torch.Size(shape).numel()).view(shape)
    state = (cells[..., None] * torch.tensor(tags[start:], dtype=torch.int64)) % 65_521
    return state.permute(0, 1, 2, 4, 3).to(layout.torch_dtype)


def make(**options: Any) -> TieredCache:
    defaults = {"engine": "toy", "namespace": "toy", "device_pages": 8}
    return TieredCache(LAYOUT, **{**defaults, **options})


def serve(cache: TieredCache, session: str, tokens: Sequence[int], **begin: Any) -> int:
    """Serve a request as an engine does and prove what the cache gave; how many tokens that was."""
    with cache.begin(f"{session}-request", session, tokens, **begin) as request:
        cached = request.restore()
        assert torch.equal(request.read(), state_of(tokens)[:, :, :, :cached])
        request.write(cached, state_of(tokens, cached))
        request.first_token()
    return cached
