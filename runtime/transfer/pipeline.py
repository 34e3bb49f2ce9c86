"""One worker thread that moves bytes: what both pipelines share."""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from canary import Mode, Violation, differences
from runtime.pools.pool import Pool

if TYPE_CHECKING:
    from runtime._core import Action

QUEUED_ACTIONS = 16
"""Taken before `submit` refuses; what waits longer waits in the core's order, where it costs
nothing."""

ABSENT, ARRIVED, DAMAGED = 0, 1, 2
"""A page's result, as `Core.complete` takes it."""


@dataclass
class Completion:
    """What became of an action. One is made for every action taken, whatever happens."""

    action: "Action"
    results: bytearray
    """One of ABSENT, ARRIVED, DAMAGED for each page."""
    moved_bytes: int = 0
    duration_ns: int = 0
    checked: int = 0
    """Pages whose sentinel was compared."""
    violations: list[Violation] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    """Why pages did not arrive, other than violations: reason -> pages."""


class Pipeline(ABC):
    """Runs `_move` for one action after another on a thread of its own; completions go to `done`.

    `submit` and `close` belong to the engine's thread. An exception in `_move` leaves the pages
    that had not arrived ABSENT and is counted under its name; the thread goes on.
    """

    kinds: tuple[str, ...]

    def __init__(self, done: Callable[[Completion], None], page_size: int, mode: Mode) -> None:
        self._done = done
        self._page_size = page_size
        self._mode: Mode = mode
        self._jobs: queue.Queue[tuple[Completion, object] | None] = queue.Queue(QUEUED_ACTIONS)
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def submit(self, action: "Action") -> bool:
        """Take an action, or refuse it for now (False): the queue is full."""
        if self._jobs.full():
            return False
        self._jobs.put((Completion(action, bytearray(action.pages)), self._prepare(action)))
        return True

    def close(self) -> None:
        """Stop the thread. The action under way finishes; those behind it complete as ABSENT."""
        self._closing = True
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def _prepare(self, action: "Action") -> object:
        """What `_move` needs to know from the engine's thread, at the moment of submission."""
        return None

    @abstractmethod
    def _move(self, done: Completion, prepared: object) -> None:
        """Move the bytes; fill in `done`. A page is marked ARRIVED only after its bytes have."""

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            done, prepared = job
            started = time.perf_counter_ns()
            try:
                if self._closing:
                    done.failures["closing"] += done.action.pages
                else:
                    self._move(done, prepared)
            except BaseException as error:  # whatever it is, the core is owed an answer
                done.failures[type(error).__name__] += done.results.count(ABSENT)
            done.duration_ns = time.perf_counter_ns() - started
            self._done(done)

    def _check(self, done: Completion, index: int, pool: Pool, page: int, tier: str) -> bool:
        """Compare a host page with its sentinel. When it differs the page is marked DAMAGED."""
        action = done.action
        owner, position = action.owners[index], action.positions[index]
        done.checked += 1
        differs = differences(
            pool.sentinels[page],
            action.keys[index],
            position * self._page_size,
            owner,
            pool.page(page),
            self._mode,
        )
        if differs:
            self._violated(done, index, Violation(
                action.kind, tier, action.session, owner, page, position, differs
            ))  # fmt: skip
        return not differs

    def _violated(self, done: Completion, index: int, violation: Violation) -> None:
        done.results[index] = DAMAGED
        done.violations.append(violation)


def pages_of(action: "Action") -> Iterator[tuple[int, int]]:
    """(source page, destination page) of each page, in the action's order."""
    for _, source, destination, count in action.runs:
        for i in range(count):
            yield source + i, destination + i
