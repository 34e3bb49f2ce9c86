"""Exit codes are an API: scripts and CI read them."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    FINDINGS = 1
    """Violations, or what --fail-on names."""
    USAGE = 2
    """Wrong arguments or configuration."""
    UNREACHABLE = 3
    TIMEOUT = 4
    NOT_ESTABLISHED = 5
    """The question could not be answered: no evidence either way."""
    INTERRUPTED = 130
