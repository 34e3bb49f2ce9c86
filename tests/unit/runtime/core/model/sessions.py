"""Sessions: their lives, what only they name, and when they come back."""

from .computing import Computing
from .records import FULL, Lock, Path, Session, Slot, steps


class Sessions(Computing):
    def open_session(self, name: str, parent: str, group: str = "", priority: int = 0) -> None:
        if parent:
            self.known(parent)
        if name not in self.sessions:
            self.sessions[name] = Session(parent, self.now, group, priority)

    def close_session(self, name: str) -> int:
        dropped, *_ = self.drop_own(name, "close")
        del self.sessions[name]
        self.settle()
        return dropped

    def close_group(self, group: str) -> int:
        names = [name for name, s in self.sessions.items() if group and s.group == group]
        for name in names:
            self.close_session(name)
        return len(names)

    def expect(self, name: str, at: int) -> None:
        for page in steps(self.known(name).path):
            self.nodes[page].returns_at = at

    def own(
        self, name: str, tier: str | None, without: Lock | None = None
    ) -> tuple[list[Path], str]:
        """The end of a session's path that only it names and nobody holds; and what ends it."""
        own: list[Path] = []
        tiers = [tier] if tier else list(self.capacity[FULL])
        path = self.sessions[name].path if name in self.sessions else ()
        for page in reversed(steps(path)):
            if self.crossed(page, without):
                return own[::-1], "locked"
            if len(self.owners(page)) > 1:
                return own[::-1], "shared"
            if any(self.leased(self.full(page), t) for t in tiers):
                return own[::-1], "leased"
            own.append(page)
        return own[::-1], ""

    def slots_at(self, page: Path) -> list[Slot]:
        return [self.full(page), *self.others(page)]

    def drop_own(self, name: str, reason: str) -> tuple[int, int, str]:
        """(pages dropped, pages left, why); the other components' copies follow as orphans."""
        pages = steps(self.known(name).path)
        present = [page for page in pages if not self.gone(self.full(page))]
        own, obstacle = self.own(name, None)
        dropped = 0
        for slot in map(self.full, own):
            here = [tier for tier in self.owned() if tier in slot.here]
            if here and not self.coming(slot) and not self.read(slot):
                for tier in here:
                    self.drop(slot, tier, reason)
                dropped += not slot.here
        left = len(present) - dropped
        return dropped, left, obstacle or ("in_flight" if left else "")
