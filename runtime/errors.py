"""What the shell around the core refuses.

    CacheError
    ├── ConfigError       a cache that cannot be built as asked
    ├── LayoutError       a tensor, or a geometry, that does not fit
    ├── RequestEnded      a request used after finish or abort
    ├── CacheClosed       a cache used after close
    ├── DamagedPage       bytes changed between restore and read; dropped, never served
    ├── NotResident       nothing there to act on
    ├── StorageError      a store that cannot be opened
    │   └── StorageLocked     another engine has it
    ├── ControlError      an endpoint that cannot be served
    ├── ModelError        a model's weights or folder are missing or cannot be used
    └── WorkloadError     a workload's folder does not say what it must

What the core refuses (CoreError and its kinds) can be imported from here too.
"""

from typing import Any


class CacheError(Exception):
    """The root of everything the shell refuses."""


class ConfigError(CacheError, ValueError): ...


class LayoutError(CacheError, ValueError): ...


class RequestEnded(CacheError): ...


class CacheClosed(CacheError): ...


class DamagedPage(CacheError): ...


class NotResident(CacheError): ...


class StorageError(CacheError): ...


class StorageLocked(StorageError): ...


class ControlError(CacheError): ...


class ModelError(CacheError): ...


class WorkloadError(CacheError): ...


_CORE = (
    "BadArgument",
    "CoreError",
    "LogError",
    "UnknownLease",
    "UnknownOperation",
    "UnknownReceipt",
    "UnknownSession",
)


def __getattr__(name: str) -> Any:
    if name in _CORE:
        from runtime import _core

        return getattr(_core, name)
    raise AttributeError(f"module 'runtime.errors' has no attribute {name!r}")
