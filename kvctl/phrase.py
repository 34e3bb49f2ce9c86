"""What a row of the log says, in one short phrase. Pure; see the table of kinds in
ARCHITECTURE.md."""

import json
from collections.abc import Mapping
from typing import Any

from kvctl.text import plain, size, span, words


def phrase(row: Mapping[str, Any]) -> str:
    """`row` has the log's columns; what is empty, zero or missing is not mentioned."""
    kind = row["kind"]
    if kind == "hint":
        # Its detail says who, what and how many pages.
        return ", ".join(filter(None, [plain(row["detail"] or ""), words(row["reason"] or "")]))
    if kind == "match":
        parts = [_match(row)]
    elif (kind, row.get("phase")) == ("request", "start"):
        parts = [f"{row['tokens'] or 0} tokens from the cache"]
    else:
        parts = [_where(row), _count(row, "page", "pages"), _count(row, "token", "tokens")]
    if row.get("bytes"):
        parts.append(size(row["bytes"]))
    if row.get("duration"):
        parts.append(span(row["duration"]))
    if row.get("reason"):
        parts.append(words(row["reason"]))
    if row.get("policy"):
        parts.append(f"by {plain(row['policy'])}")
    if row.get("skipped"):
        parts.append(f"{row['skipped']} skipped")
    if row.get("cause"):
        parts.append(f"because of #{row['cause']}")
    if row.get("detail"):
        parts.append(copy(row["detail"]) if kind == "canary" else plain(row["detail"]))
    return ", ".join(part for part in parts if part)


def copy(detail: str) -> str:
    """The copy that a violation or an injected fault is about (canary.Violation.detail)."""
    try:
        told = json.loads(detail)
        where = f"page {told['page']} of {told.get('tier') or told['hop']}"
        what = ", ".join(told.get("what", ["one byte flipped"]))
        return plain(f"{where}, position {told['position']} of its path: {what}")
    except (ValueError, KeyError, TypeError, AttributeError):
        return plain(detail)


def _where(row: Mapping[str, Any]) -> str:
    source, target = row.get("tier_from") or "", row.get("tier_to") or ""
    if source and target:
        return f"{plain(source)} → {plain(target)}"
    return f"from {plain(source)}" if source else plain(target)


def _count(row: Mapping[str, Any], one: str, column: str) -> str:
    count = row.get(column) or 0
    return f"{count} {one if count == 1 else column}" if count else ""


def _match(row: Mapping[str, Any]) -> str:
    tokens = row.get("tokens") or 0
    tiers = [(name, row.get(f"{name}_tokens") or 0) for name in ("device", "host", "storage")]
    hit = sum(count for _, count in tiers)
    found = " + ".join(f"{name} {count}" for name, count in tiers if count)
    return f"hit {hit} of {tokens} tokens" + (f" ({found})" if found else "")


def outcome(name: str, session: str, answer: Mapping[str, Any]) -> str:
    """An engine's answer to an action, in a line."""
    text = f"{name} {plain(session)}: {words(answer['outcome'])}"
    if answer.get("reason"):
        text += f", {words(answer['reason'])}"
    if answer.get("asked"):
        text += f"; {answer['pages']} of {answer['asked']} pages"
    if answer.get("pending"):
        text += f", {answer['pending']} on their way"
    if answer.get("lease"):
        text += f"; lease {answer['lease']}"
    return text
