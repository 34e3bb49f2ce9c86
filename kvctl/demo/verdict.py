"""What the demo proves, or not: pure functions of what the engine said and what the store says."""

from __future__ import annotations

from typing import Any

from kvctl.exits import Exit


def findings(result: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    """What is wrong, in words; empty when nothing is."""
    found = [
        f"an answer of session {session!r} differs from a run without a cache"
        for session in result["different"]
    ]
    if violations := summary["canary"]["violations"]:
        found.append(f"the canary found {violations} damaged pages")
    return found


def unproven(result: dict[str, Any], summary: dict[str, Any], engine: dict[str, Any]) -> list[str]:
    """What could not be established, in words; empty when everything was."""
    missing = []
    if not result["compared"]:
        missing.append("no answer was compared with a run without a cache")
    if not summary["canary"]["checks"]:
        missing.append("the canary checked nothing")
    if not engine["gapless"]:
        missing.append(f"the stored log has {engine['gaps']} gaps, {engine['lost_rows']} rows lost")
    if (engine["seq"], engine["state_hash"]) != (result["seq"], result["state_hash"]):
        missing.append(
            f"the log folded to row {engine['seq']} gives state {engine['state_hash']}, "
            f"the engine ended at row {result['seq']} with {result['state_hash']}"
        )
    return missing


def exit_code(found: list[str], missing: list[str]) -> Exit:
    if found:
        return Exit.FINDINGS
    return Exit.NOT_ESTABLISHED if missing else Exit.OK
