"""Eviction policies as a user may write them: named by `user_policies:Class`."""

from runtime._core import Core, CoreError, Facts


class Youngest:
    """The last that came goes first."""

    def on_insert(self, item: int, facts: Facts) -> int:
        return -facts.created

    def on_hit(self, item: int, facts: Facts) -> int:
        return -facts.created

    def on_remove(self, item: int, identity: int, evicted: bool) -> None: ...


class Fraction(Youngest):
    def on_insert(self, item: int, facts: Facts) -> float:
        return facts.created / 2


class Tired(Youngest):
    """Raises from its fifth insert on."""

    def __init__(self) -> None:
        self.inserts = 0

    def on_insert(self, item: int, facts: Facts) -> int:
        self.inserts += 1
        if self.inserts >= 5:
            raise RuntimeError("no more")
        return -facts.created


class Late(Youngest):
    """Answers what is no score when it comes to it."""

    def on_victim(self, item: int, facts: Facts) -> object:
        return None if facts.now == 1 else 0.5


class Caller(Youngest):
    """Calls the core that asks it."""

    core: Core | None = None
    refusals: list[str] = []  # noqa: RUF012

    def on_insert(self, item: int, facts: Facts) -> int:
        core = self.core
        for call in [core.seq, core.check, core.pools, lambda: core.tick(1)] if core else []:
            try:
                call()
            except CoreError as refusal:
                self.refusals.append(str(refusal))
        return -facts.created


class NoHit:
    def on_insert(self, item: int, facts: Facts) -> int:
        return 0


class NeedsMore(Youngest):
    def __init__(self, size: int) -> None: ...
