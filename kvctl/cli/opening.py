"""The source that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kvctl.cli.settings import Settings
from kvctl.source import FileSource, LiveSource, Source


@contextmanager
def opened(settings: Settings) -> Iterator[Source]:
    """Closed at the end. Unreachable when no server runs; StoreError for what is no recording."""
    source: Source
    if settings.file is not None:
        source = FileSource(settings.file)
    else:
        source = LiveSource(settings.home(), settings.timeout_s)
    try:
        yield source
    finally:
        source.close()
