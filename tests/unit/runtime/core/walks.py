"""Long random walks through a machine's rules. Hypothesis draws them evenly, and most of it changes
nothing; here requests, moves and releases come as often as in an engine's life."""

import time
from inspect import signature
from random import Random
from typing import Any

from complete_machine import BLOCKS, CompleteMachine
from machine import NAMES
from model import TIERS, Config

Step = tuple[str, dict[str, Any]]
WORDS = [(), (0,), (0, 0), (0, 1), (0, 0, 0, 1), (1, 0, 1, 1), (0, 1, 0, 1, 1, 1), (1,) * 8]
WEIGHTS = {
    **dict.fromkeys(["turn", "next_turn"], 6),
    **dict.fromkeys(["turn_that_holds", "release", "complete_many", "observe"], 5),
    **dict.fromkeys(["complete_well", "commit"], 4),
    **dict.fromkeys(["complete_badly", "acquire", "restore", "restore_into"], 3),
    **dict.fromkeys(["turn_from_cursor", "hint", "pin"], 3),
    **dict.fromkeys(["reserve", "forget", "fork"], 2),
    **{"fold": 0.3, "retire": 0.15, "close_group": 0.5},
}
"""How often a rule comes; 1 for the others."""


def argument(draw: Random, name: str) -> Any:
    drawn = {
        "back": lambda: draw.randint(-1, 4),
        "batch": lambda: draw.randint(1, 50),
        "blocks": lambda: draw.sample(range(BLOCKS + 1), draw.randint(0, 6)),
        "component": lambda: draw.choice(["full", "swa"]),
        "cut": lambda: draw.randint(0, 9),
        "forks": lambda: draw.randint(0, 3),
        "grid": lambda: draw.choice([1, 1, 2, 3]),
        "group": lambda: draw.choice("op"),
        "index": lambda: draw.choice([0, 0, 1, 2, draw.randint(0, 30)]),
        "late": lambda: draw.random() < 0.1,
        "many": lambda: draw.randint(1, 9),
        "more": lambda: draw.choice(WORDS),
        "name": lambda: draw.choice([*NAMES[:3] * 4, NAMES[3]]),
        "number": lambda: draw.choice([0, 0, 0, 1, 2]),
        "other": lambda: draw.choice(NAMES),
        "others": lambda: draw.choices(NAMES, k=2),
        "owner": lambda: draw.choice("op"),
        "pages": lambda: draw.randint(0, 5),
        "parent": lambda: draw.choice(["", *NAMES]),
        "priority": lambda: draw.randint(0, 3),
        "prompt": lambda: draw.randint(0, 30),
        "results": lambda: [draw.choice([0, 1, 1, 1, 2]) for _ in range(24)],
        "short": lambda: draw.randint(-1, 2),
        "start": lambda: draw.randint(0, 3),
        "sure": lambda: draw.randint(0, 3),
        "tier": lambda: draw.choice(TIERS),
        "ttl": lambda: draw.choice([0, draw.randint(1, 30), draw.randint(1, 300)]),
        "verb": lambda: draw.choice(["demote", "prefetch", "flush"]),
        "wait": lambda: draw.randint(0, 40),
        "which": lambda: draw.randint(0, 30),
    }
    return drawn[name]()


def rules() -> dict[str, Any]:
    known = {name: getattr(CompleteMachine, name) for name in dir(CompleteMachine)}
    found = {n: getattr(f, "hypothesis_stateful_rule", None) for n, f in known.items()}
    return {name: rule for name, rule in found.items() if rule}


class Walk:
    def __init__(self, config: Config, batch: int = 20):
        self.config, self.batch = config, batch
        self.rules = rules()

    def wander(self, draw: Random, steps: int) -> list[Step]:
        """A random walk. What was done, with what went wrong last; empty when all agreed."""
        machine, done = self.begin(), []
        try:
            for _ in range(steps):
                names = [name for name in self.rules if self.may(machine, name)]
                (name,) = draw.choices(names, [WEIGHTS.get(name, 1) for name in names])
                options = signature(getattr(machine, name)).parameters
                done.append((name, {option: argument(draw, option) for option in options}))
                self.do(machine, done[-1])
            machine.teardown()
        except Exception:
            return done
        return []

    def begin(self) -> CompleteMachine:
        machine = CompleteMachine()
        machine.start(self.config, self.batch)
        machine.open_sessions()
        return machine

    def may(self, machine: CompleteMachine, name: str) -> bool:
        return all(condition(machine) for condition in self.rules[name].preconditions)

    def do(self, machine: CompleteMachine, step: Step) -> None:
        name, options = step
        if self.may(machine, name):
            getattr(machine, name)(**options)

    def again(self, steps: list[Step]) -> Exception | None:
        machine = self.begin()
        try:
            for step in steps:
                self.do(machine, step)
            machine.teardown()
        except Exception as error:
            return error
        return None

    def shortest(self, steps: list[Step], seconds: float = 30) -> list[Step]:
        """Steps that fail still, with as many left out as there is time for."""
        until, size = time.monotonic() + seconds, max(1, len(steps) // 2)
        while size and time.monotonic() < until:
            at, shorter = 0, False
            while at < len(steps):
                fewer = steps[:at] + steps[at + size :]
                if self.again(fewer):
                    steps, shorter = fewer, True
                else:
                    at += size
            if size > 1 or not shorter:
                size //= 2
        return steps
