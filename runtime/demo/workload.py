"""A workload: agents' conversations as text, and the order in which they ask.

The format is described in examples/agents/README.md. Nothing here knows a model or a cache.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import WorkloadError

HEADING = re.compile(r"^## (user|tool)(?: (\w+) (\{.*\}))?\n", re.MULTILINE)
INCLUDE = re.compile(r"^\{\{([\w./-]+)\}\}$", re.MULTILINE)


@dataclass(frozen=True)
class Turn:
    """What is added before the model is asked again."""

    text: str
    tool: str = ""
    """The tool whose result `text` is; "" when a user speaks."""
    arguments: str = ""


@dataclass(frozen=True)
class Script:
    """One session's side of its conversation."""

    name: str
    system: str
    turns: tuple[Turn, ...]
    parent: str = ""
    fork: int = 0
    """Starts from the parent's conversation as it was after this many answers."""
    forgets: bool = False
    """Each turn starts a new conversation, from the system prompt."""


@dataclass(frozen=True)
class Phase:
    title: str
    order: tuple[str, ...]
    """Sessions; each time one is named it takes its next turn."""
    barrier: bool = False
    """After this phase the operator has the word."""


@dataclass(frozen=True)
class Pools:
    page_tokens: int
    device_pages: int
    host_pages: int
    storage_pages: int


@dataclass(frozen=True)
class Workload:
    scripts: dict[str, Script]
    phases: tuple[Phase, ...]
    pools: Pools
    answer_tokens: int
    story: str
    """The session that the story is about."""

    @property
    def requests(self) -> int:
        return sum(len(phase.order) for phase in self.phases)


def load(folder: Path) -> Workload:
    """Read a workload's folder. WorkloadError names the file and what is wrong with it."""
    index = folder / "workload.toml"
    try:
        given = tomllib.loads(index.read_text(encoding="utf-8"))
        scripts = {
            name: _script(folder, name, **entry) for name, entry in given["sessions"].items()
        }
        workload = Workload(
            scripts=scripts,
            phases=tuple(
                Phase(phase["title"], tuple(phase["order"]), phase.get("barrier", False))
                for phase in given["phases"]
            ),
            pools=Pools(**given["pools"]),
            answer_tokens=given["answer_tokens"],
            story=given["story"]["session"],
        )
    except (OSError, tomllib.TOMLDecodeError, TypeError) as error:
        raise WorkloadError(f"{index}: {error}") from error
    except KeyError as error:
        raise WorkloadError(f"{index}: {error} is missing") from error
    _check(workload, index)
    return workload


def _script(
    folder: Path,
    name: str,
    text: str = "",
    prompt: str = "agent.md",
    parent: str = "",
    fork: int = 0,
    forgets: bool = False,
) -> Script:
    file = folder / "sessions" / (text or f"{name}.md")
    system = (folder / "prompts" / prompt).read_text(encoding="utf-8").strip()
    source = file.read_text(encoding="utf-8")
    headings = list(HEADING.finditer(source))
    if not headings or headings[0].start() != 0:
        raise WorkloadError(f"{file}: must begin with '## user'")
    ends = [heading.start() for heading in headings[1:]] + [len(source)]
    turns = []
    for heading, end in zip(headings, ends, strict=True):
        speaker, tool, arguments = heading.groups()
        if (speaker == "tool") != bool(tool):
            line = source.count("\n", 0, heading.start()) + 1
            raise WorkloadError(f"{file}:{line}: write '## user' or '## tool NAME {{ARGUMENTS}}'")
        body = INCLUDE.sub(
            lambda found: (folder / "diffs" / found[1]).read_text(encoding="utf-8").strip(),
            source[heading.end() : end].strip(),
        )
        turns.append(Turn(body, tool or "", arguments or ""))
    return Script(name, system, tuple(turns), parent, fork, forgets)


def _check(workload: Workload, index: Path) -> None:
    """Every turn is taken exactly once, and a fork's beginning is there when it is needed."""
    taken = dict.fromkeys(workload.scripts, 0)
    for phase in workload.phases:
        for name in phase.order:
            script = workload.scripts.get(name)
            if script is None:
                raise WorkloadError(f"{index}: the order names {name!r}, which is no session")
            if taken[name] == 0 and script.parent and taken.get(script.parent, 0) < script.fork:
                raise WorkloadError(
                    f"{index}: {name!r} starts before answer {script.fork} of {script.parent!r}"
                )
            taken[name] += 1
    for name, count in taken.items():
        if count != len(workload.scripts[name].turns):
            have = len(workload.scripts[name].turns)
            raise WorkloadError(f"{index}: {name!r} has {have} turns, the order names it {count}x")
    if workload.story not in workload.scripts:
        raise WorkloadError(f"{index}: the story's session {workload.story!r} does not exist")
