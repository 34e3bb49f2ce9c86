"""Geometry of one page of K/V attention state. Loads no torch: tensors are only looked at."""

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from runtime.errors import LayoutError

if TYPE_CHECKING:
    import torch

ITEM_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "uint8": 1,
}


@dataclass(frozen=True)
class Layout:
    """`page_size` tokens of keys and values of every layer, in one contiguous piece."""

    layers: int
    kv_heads: int
    head_dim: int
    page_size: int
    """Tokens per page."""
    dtype: str
    """As torch names it, without "torch."."""

    def __post_init__(self) -> None:
        for name in ("layers", "kv_heads", "head_dim", "page_size"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise LayoutError(f"{name} is {value!r}; it must be a whole number from 1 up.")
        if self.dtype not in ITEM_BYTES:
            raise LayoutError(
                f"dtype is {self.dtype!r}; it must be one of {', '.join(ITEM_BYTES)}."
            )

    @property
    def page_shape(self) -> tuple[int, int, int, int, int]:
        """[layers, 2 (key, value), kv_heads, page_size, head_dim]"""
        return (self.layers, 2, self.kv_heads, self.page_size, self.head_dim)

    @property
    def page_bytes(self) -> int:
        return prod(self.page_shape) * ITEM_BYTES[self.dtype]

    @property
    def torch_dtype(self) -> "torch.dtype":
        import torch

        return getattr(torch, self.dtype)

    @property
    def identity(self) -> str:
        """What makes bytes of this layout unreadable to another: part of every page's key."""
        return (
            f"kv layers={self.layers} heads={self.kv_heads} dim={self.head_dim} "
            f"page={self.page_size} dtype={self.dtype}"
        )

    def tokens_of(self, state: "torch.Tensor") -> int:
        """Tokens in a state tensor [layers, 2, kv_heads, tokens, head_dim]; LayoutError when it
        is not one."""
        if getattr(state, "dtype", None) is None:
            raise LayoutError(f"state is a {type(state).__name__}; it must be a torch tensor.")
        if str(state.dtype) != f"torch.{self.dtype}":
            raise LayoutError(
                f"state has dtype {state.dtype}; this cache holds torch.{self.dtype}. "
                "Convert it, or build the cache with that dtype."
            )
        shape = tuple(state.shape)
        want = (self.layers, 2, self.kv_heads, None, self.head_dim)
        if len(shape) != 5 or any(
            w is not None and w != s for w, s in zip(want, shape, strict=True)
        ):
            raise LayoutError(
                f"state has shape {list(shape)}; it must be [layers={self.layers}, 2, "
                f"kv_heads={self.kv_heads}, tokens, head_dim={self.head_dim}]."
            )
        return shape[3]
