"""The README's picture: the real screen on a real run. `python -m tests.e2e.screenshot FILE.svg`"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from kvctl.demo.engine import Engine
from kvctl.demo.server import served
from kvctl.demo.story import play
from kvctl.source import Source
from kvctl.tui.app import KvctlApp

ROOT = Path(__file__).parents[2]
SIZE = (112, 30)
START_S = 120.0


async def picture(source: Source, session: str, target: Path) -> None:
    """The sessions' screen with the cursor on `session` and the reason of its last miss."""
    app = KvctlApp(source)
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(200):
            await pilot.pause(0.1)
            record = app.view.grid.current if app.view else None
            if record and record["session"] == session:
                break
            await pilot.press("j")
        else:
            raise SystemExit(f"session {session!r} never came under the cursor")
        await pilot.pause(2.0)
        app.save_screenshot(target.name, str(target.parent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, metavar="FILE.svg")
    parser.add_argument("--model", choices=("smollm2", "tiny"), default="tiny")
    args = parser.parse_args()
    workload = ROOT / "examples" / "agents"
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(args.model, workload, lambda event: None) as engine,
    ):
        home = Path(folder) / "demo"
        with served(engine.wait("hello", START_S)["address"], home) as source:
            story = play(engine, source)
            asyncio.run(picture(source, story.session, args.target))


if __name__ == "__main__":
    main()
