"""L1: the memory that the model computes in. CUDA where there is one; ordinary memory when
embedded on CPU."""

from collections.abc import Iterable

import torch

from runtime.layout import Layout
from runtime.pools.pool import Pool

Runs = Iterable[tuple[int, int]]
"""(first page, count), in the order of the tokens."""


class DevicePool(Pool):
    def __init__(self, layout: Layout, pages: int, device: str) -> None:
        super().__init__(layout, pages, device=torch.device(device), pinned=False)

    def write(self, runs: Runs, state: torch.Tensor) -> None:
        """Scatter state [layers, 2, kv_heads, tokens, head_dim] into pages; tokens fill the runs
        exactly."""
        pages = _by_page(state, self.layout.page_size)
        done = 0
        for first, count in runs:
            self.state[first : first + count].copy_(pages[done : done + count])
            done += count

    def read(self, runs: Runs) -> torch.Tensor:
        """Gather pages into a new tensor [layers, 2, kv_heads, tokens, head_dim]."""
        runs = list(runs)
        tokens = sum(count for _, count in runs) * self.layout.page_size
        shape = (self.layout.layers, 2, self.layout.kv_heads, tokens, self.layout.head_dim)
        state = torch.empty(shape, dtype=self.state.dtype, device=self.state.device)
        pages = _by_page(state, self.layout.page_size)
        done = 0
        for first, count in runs:
            pages[done : done + count].copy_(self.state[first : first + count])
            done += count
        return state


def _by_page(state: torch.Tensor, page_size: int) -> torch.Tensor:
    """View [layers, 2, kv_heads, tokens, head_dim] as [pages, layers, 2, kv_heads, page_size,
    head_dim]."""
    by_page = state.unflatten(3, (state.shape[3] // page_size, page_size))
    return by_page.permute(3, 0, 1, 2, 4, 5)
