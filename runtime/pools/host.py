"""L2: host memory, pinned when there is a CUDA device to copy from."""

import torch

from runtime.layout import Layout
from runtime.pools.pool import Pool


class HostPool(Pool):
    def __init__(self, layout: Layout, pages: int) -> None:
        super().__init__(
            layout, pages, device=torch.device("cpu"), pinned=torch.cuda.is_available()
        )
