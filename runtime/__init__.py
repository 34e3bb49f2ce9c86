"""The engine side: a tiered KV cache that an engine embeds in its own loop.

Owns the pools' memory, the threads that move bytes, the storage backends and the endpoint that
operators talk to. Every decision is `runtime._core`'s; every proof about bytes is `canary`'s; the
log's transport is `telemetry`'s. Knows no model and no engine (adapters do) and nothing of
`kvctl`. May import `canary`, `telemetry` and `runtime._core`. Importing this package loads
neither torch nor the core: the names below are found when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.cache import TieredCache
    from runtime.layout import Layout
    from runtime.request import Request
    from runtime.storage.file import FileStore

__kvctl__ = "0.1.0"
__all__ = ["FileStore", "Layout", "Request", "TieredCache"]

_HOMES = {
    "FileStore": "runtime.storage.file",
    "Layout": "runtime.layout",
    "Request": "runtime.request",
    "TieredCache": "runtime.cache",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'runtime' has no attribute {name!r}")
