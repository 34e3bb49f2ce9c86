"""What device and host pools share: pages as a tensor, as bytes, and their sentinels."""

import numpy as np
import torch

from canary import SENTINEL_BYTES
from runtime.errors import ConfigError
from runtime.layout import Layout


class Pool:
    """`pages` pages of one tier.

    state: tensor [pages, layers, 2, kv_heads, page_size, head_dim].
    bytes: the same memory as uint8 [pages, page_bytes].
    memory: `bytes` as a numpy array; None on a device.
    sentinels: numpy uint8 [pages, 32], always in host memory, where they are compared.

    Takes no lock. The core's fences see to it that a page has one writer, and no reader while it
    is written.
    """

    def __init__(self, layout: Layout, pages: int, *, device: torch.device, pinned: bool) -> None:
        if pages < 1:
            raise ConfigError(f"A pool of {pages} pages; it needs at least 1.")
        self.layout = layout
        self.state = torch.zeros(
            (pages, *layout.page_shape),
            dtype=layout.torch_dtype,
            device=device,
            pin_memory=pinned,
        )
        self.bytes = self.state.view(pages, -1).view(torch.uint8)
        self.memory = self.bytes.numpy() if self.bytes.is_cpu else None
        self.sentinels = np.zeros((pages, SENTINEL_BYTES), dtype=np.uint8)

    def page(self, index: int) -> memoryview:
        """A page's bytes: the memory itself in host memory, a copy of it on a device."""
        memory = self.bytes[index].cpu().numpy() if self.memory is None else self.memory[index]
        return memory.data

    def flip(self, index: int, byte: int) -> None:
        """Damage a page on purpose."""
        self.bytes[index, byte] ^= 0xFF
