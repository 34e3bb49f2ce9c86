"""What `why` found, for people."""

from __future__ import annotations

from typing import Any

from kvctl.text import span

REASONS = {
    "never_stored": "no earlier request of the session had this continuation",
    "below_page": "what is left does not fill a page",
    "namespace_changed": "the session's earlier pages belong to another model or configuration",
    "pending_write": "the pages were still being written",
    "component_gap": "part of the state of these pages is missing",
    "admission": "the pages were not admitted to the cache",
    "evicted": "the pages had been evicted",
    "load_failed": "the pages could not be brought back",
    "unknown": "why is unknown",
}


def explain(answer: dict[str, Any]) -> list[str]:
    who = _who(answer)
    miss = answer["miss"]
    if miss is None:
        return [f"{_sentence(who)} missed nothing."]
    reason = miss["reason"]
    if reason == "diverged":
        because = f"the tokens differ from the session's earlier ones at token {miss['offset']}"
    else:
        because = REASONS.get(reason, reason)
    said = [
        f"{_sentence(who)} missed {miss['missed_tokens']} of {miss['tokens']} tokens: {because}."
    ]
    said += [_took(row) for row in answer["took"]]
    if reason in ("evicted", "load_failed"):
        said += _for(answer)
    if answer["gaps"]:
        lost = ", ".join(f"{gap['first']}..{gap['last']}" for gap in answer["gaps"])
        said.append(f"Rows {lost} of the log are lost; they could change this answer.")
    return said


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _who(row: dict[str, Any]) -> str:
    if row["request"]:
        session = f" of session {row['session']}" if row["session"] else ""
        return f"request {row['request']}{session}"
    return f"session {row['session']}" if row["session"] else "nobody known"


def _took(row: dict[str, Any]) -> str:
    left = "still kept below" if row["kept"] else "the last copy"
    pages = "1 page" if row["pages"] == 1 else f"{row['pages'] or '?'} pages"
    said = f"{pages} left {row['tier'] or 'an unknown tier'}"
    said += f" {span(row['before_ns'])} before ({left}): {row['reason'] or 'unknown reason'}"
    if row["policy"]:
        said += f", chosen by {row['policy']}"
    if row["idle_ns"] is not None:
        user = f" by session {row['last_user']}" if row["last_user"] else ""
        said += f", last used{user} {span(row['idle_ns'])} earlier"
    if row["skipped"]:
        said += f"; {row['skipped']} other candidates were pinned or in use"
    return said + f" (row {row['seq']})."


def _for(answer: dict[str, Any]) -> list[str]:
    if not answer["took"]:
        return ["Which row took them is unknown."]
    needed = answer["for"]
    if needed is not None:
        return [f"It was for {_who(needed)} ({needed['kind']}, row {needed['seq']})."]
    return ["Who needed the room is unknown."] if not answer["certain"] else []
