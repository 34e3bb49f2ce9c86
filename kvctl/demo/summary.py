"""The demo's summary for people: a page of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvctl.demo.story import Story
from kvctl.table import records
from kvctl.text import plain, rate, size, span, words


def page(
    story: Story,
    result: dict[str, Any],
    summary: dict[str, Any],
    engine: dict[str, Any],
    problems: list[str],
) -> str:
    return "\n".join(
        [*_story(story), "", *_figures(result, summary), "", *_proof(result, summary, engine), ""]
        + [f"FAILED: {problem}" for problem in problems]
        + ([] if problems else ["ok"])
    )


def _story(story: Story) -> Iterator[str]:
    miss, hit, pin = story.miss, story.hit, story.pin
    yield f"{plain(story.session)} waited for its tests while others filled the cache."
    yield f"  it missed    {miss['hit_tokens']} of {miss['prompt_tokens']} tokens were still cached"
    for number, sentence in enumerate(story.why["sentences"]):
        yield f"  {'kvctl why' if number == 0 else '':<12} {plain(sentence)}"
    yield f"  kvctl pin    {words(pin['outcome'])}, {pin['pages']} of {pin['asked']} pages"
    yield "  the same flood again"
    yield f"  it hit       {hit['hit_tokens']} of {hit['prompt_tokens']} tokens"


def _figures(result: dict[str, Any], summary: dict[str, Any]) -> Iterator[str]:
    tokens, saved = summary["tokens"], summary["saved_tokens"]
    yield f"requests      {summary['finished']} of {result['requests']} finished"
    yield f"tokens        {tokens} asked, {summary['computed_tokens']} computed, {saved} saved"
    served, plainly = result["served_ttft_s"] * 1e9, result["plain_ttft_s"] * 1e9
    yield (
        f"time saved    {span(plainly - served)} of {span(plainly)} to the first token, "
        f"measured on {result['compared']} requests"
    )
    tiers = summary["hit_tokens"].items()
    by_tier = ", ".join(f"{tier} {rate(hit / max(tokens, 1))}" for tier, hit in tiers)
    yield f"hits          {rate(summary['hit_rate'] or 0)} of tokens; found in {by_tier}"
    yield f"misses        {_counts(summary['misses'])}"
    yield f"evictions     {_counts(summary['evictions'])} pages; lost {summary['lost_pages']}"
    for index, move in enumerate(records(summary["transfers"])):
        speed = f", {size(move['bytes_per_s'])}/s" if move["bytes_per_s"] else ""
        yield (
            f"{'transfers' if index == 0 else '':<13} {move['kind']:<9} {move['pages']} pages, "
            f"{size(move['bytes'])}{speed}" + (f", {move['failed']} failed" * bool(move["failed"]))
        )


def _proof(
    result: dict[str, Any], summary: dict[str, Any], engine: dict[str, Any]
) -> Iterator[str]:
    equal = result["compared"] - len(result["different"])
    canary = summary["canary"]
    yield f"answers       {equal} of {result['compared']} equal those of a run without a cache"
    yield f"canary        {canary['checks']} pages checked, {canary['violations']} violations"
    same = "as the engine's" if engine["state_hash"] == result["state_hash"] else "NOT the engine's"
    yield (
        f"log           {engine['seq']} rows, {engine['gaps']} gaps; "
        f"folded state {engine['state_hash'][:12]}, {same}"
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{words(name)} {count}" for name, count in counts.items()) or "none"
