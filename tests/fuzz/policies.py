"""An eviction policy that cannot be relied on."""

import random
from typing import Any

from runtime._core import Core, CoreError, Facts


class Whim:
    """Draws its answers. Some time after its trial it calls back, lies or raises."""

    draw = random.Random(0)
    core: Core | None = None
    """Whom it tries to call back."""

    def __init__(self) -> None:
        self.patience = self.draw.randrange(5, 300)

    def _answer(self) -> Any:
        self.patience -= 1
        if self.core is not None and self.draw.random() < 0.05:
            call = self.draw.choice([self.core.seq, self.core.check, lambda: self.core.tick(1)])
            try:
                call()
            except CoreError:
                pass
            else:
                raise AssertionError("a policy reached into a core that was asking it")
        if self.patience == 0:
            return self.draw.choice([0.5, None, "first", 2**63, True, Whim])
        if self.patience < -3:
            raise RuntimeError("no more")
        return self.draw.choice([0, self.draw.randrange(10), -(2**63), 2**63 - 1])

    def on_insert(self, item: int, facts: Facts) -> Any:
        return self._answer()

    def on_hit(self, item: int, facts: Facts) -> Any:
        return self._answer()

    def on_remove(self, item: int, identity: int, evicted: bool) -> None:
        self.draw.random()

    def on_victim(self, item: int, facts: Facts) -> Any:
        return self._answer() if self.draw.random() < 0.2 else None
