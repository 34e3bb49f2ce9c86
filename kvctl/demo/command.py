"""Start everything, play, judge, print; end everything on every path."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from kvctl import tui
from kvctl.demo import story as stories
from kvctl.demo import verdict
from kvctl.demo.child import end_in_order, end_with_terminal
from kvctl.demo.engine import Engine, Event
from kvctl.demo.server import served
from kvctl.demo.story import Story
from kvctl.demo.summary import page
from kvctl.errors import NotEstablished, UsageError
from kvctl.exits import Exit
from kvctl.output import narrate, print_json
from kvctl.source import Source

PLAYED = "workload finished; engine stays until q"
START_S = 120.0
"""The first use of a model prepares its weights, which takes 20 s on a quiet machine."""


def run(model: str, workload: Path, *, screen: bool, output: str = "table") -> Exit:
    """Play the workload and say whether everything was as it must be.

    screen: show the terminal UI meanwhile (stdin and stdout are a terminal), else a progress bar on
    stderr. output: "table" for people, "json" for programs; on stdout, at the end.
    """
    if not (workload / "workload.toml").is_file():
        raise UsageError(
            f"no workload in {workload}: run this in a checkout of kvctl, or name one (--workload)"
        )
    end_in_order()
    with tempfile.TemporaryDirectory(prefix="kvctl-demo-") as home, ExitStack() as stack:
        if screen:
            narrate(f"kvctl: starting an engine with {model}; after the screen comes a summary")
            engine, source = _start(stack, model, workload, Path(home), lambda event: None)
            end_with_terminal(Path(home))
            story = _on_screen(engine, source)
        else:
            from kvctl.demo.progress import Bar

            bar = stack.enter_context(Bar())
            engine, source = _start(stack, model, workload, Path(home), bar.heard)
            story = stories.play(engine, source)
        result = stories.finish(engine, source)
        summary, folded = source.ask("summary"), stories.folded(source)
    found = verdict.findings(result, summary)
    missing = verdict.unproven(result, summary, folded)
    if output == "json":
        document = {
            "ok": not found + missing,
            "problems": found + missing,
            "story": asdict(story),
            "result": result,
            "summary": summary,
            "engine": folded,
        }
        print_json(document)
    else:
        print(page(story, result, summary, folded, found + missing))
    return verdict.exit_code(found, missing)


def _start(
    stack: ExitStack, model: str, workload: Path, home: Path, heard: Callable[[Event], None]
) -> tuple[Engine, Source]:
    engine = stack.enter_context(Engine(model, workload, heard))
    address = engine.wait("hello", START_S)["address"]
    return engine, stack.enter_context(served(address, home))


def _remark(story: Future[Story]) -> str:
    if not story.done():
        return "the workload is being played"
    return "the demo has failed; q says why" if story.exception() else PLAYED


def _on_screen(engine: Engine, source: Source) -> Story:
    """The story runs beside the screen, until the operator closes it."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        story = beside.submit(stories.play, engine, source)
        try:
            tui.run(source, remark=lambda: _remark(story))
        finally:
            end_in_order()
            if early := not story.done():
                engine.end()  # The story waits for it, and the block for the story.
        if early:
            raise NotEstablished("closed before the workload had been played; nothing was proven")
    return story.result()
