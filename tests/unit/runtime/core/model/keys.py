"""What pages are told apart by: tokens, pairs of neighbouring tokens, or digests of whole pages.

Callers pass a sequence of such units.
"""

from dataclasses import dataclass

from .records import Path


@dataclass(frozen=True)
class Keys:
    kind: str
    page_size: int

    @property
    def per_page(self) -> int:
        return 1 if self.kind == "digests" else self.page_size

    def path(self, namespace: int, units: tuple) -> Path:
        n = self.per_page
        whole = range(0, len(units) - n + 1, n)
        return (namespace, *(units[i : i + n] for i in whole))

    def flat(self, path: Path) -> tuple:
        """The units of a path's pages."""
        return tuple(unit for page in path[1:] for unit in page)

    def offset(self, earlier: tuple, later: tuple, same: int) -> int:
        """The first token that differs, when the first `same` units do not."""
        if self.kind == "digests":
            return same * self.page_size
        if self.kind == "pairs" and same < len(later) and earlier[same][0] == later[same][0]:
            return same + 1
        return same
