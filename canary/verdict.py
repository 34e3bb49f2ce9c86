"""The verdict of an audit, from counts alone. Absence of evidence is not a pass."""

from dataclasses import dataclass

PASSED = 0
VIOLATED = 1
NOT_ESTABLISHED = 5


@dataclass(frozen=True)
class Verdict:
    exit_code: int
    """0: checks ran and found nothing. 1: violations. 5: it could not be established."""
    message: str


def judge(*, checked_pages: int, violations: int, lost_rows: int = 0) -> Verdict:
    """Judge a period. `lost_rows`: log rows of it that could not be recovered; a violation may
    hide in them.

    A violation that was seen counts whatever else is missing.
    """
    if violations:
        return Verdict(
            VIOLATED, f"{violations} damaged page(s) found in {checked_pages} page check(s)."
        )
    if not checked_pages:
        return Verdict(
            NOT_ESTABLISHED,
            "No page was checked, so nothing is known about the bytes. "
            "Did this period see any page move or be read?",
        )
    if lost_rows:
        return Verdict(
            NOT_ESTABLISHED,
            f"{checked_pages} page check(s) found nothing, but {lost_rows} log row(s) are lost "
            "and could hide a violation.",
        )
    return Verdict(PASSED, f"{checked_pages} page check(s), no violation.")
