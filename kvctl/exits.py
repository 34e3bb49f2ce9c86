"""Exit codes are an API: scripts and CI read them.

The rule for names: one that nothing bears (engine, session, request, lease, kind, tier) is a wrong
argument, 2, in every verb. 5 is for right questions without evidence: no engine has spoken, nothing
was checked, or rows are lost among which the name or the answer could be. An engine that is rightly
named but gone is 3.
"""

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
