"""What a damaged page is called: one `Violation`, and its form in a log row's `detail`."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """A page whose bytes or identity are not those that were stamped. It is never served."""

    hop: str
    """Where the check ran: backup | load | offload | prefetch | read | sweep."""
    tier: str
    """The tier whose copy was found damaged: device | host | storage."""
    session: str
    owner: int
    """generation << 32 | slot of the logical page."""
    page: int
    """The copy's page in the tier's pool."""
    position: int
    """Index of the page in its sequence, in pages."""
    differs: dict[str, tuple[int, int]]
    """Sentinel field -> (expected, found); empty when the stored object itself was unreadable."""
    reason: str = ""
    """For a stored object that failed before its sentinel could be read: checksum, length, key ...
    """

    @property
    def slot(self) -> int:
        return self.owner & 0xFFFF_FFFF

    @property
    def generation(self) -> int:
        return self.owner >> 32

    def detail(self) -> str:
        """JSON for the row's `detail`; integers of 64 bits as hex, which no JSON reader rounds."""
        return json.dumps(
            {
                "hop": self.hop,
                "tier": self.tier,
                "page": self.page,
                "position": self.position,
                "slot": self.slot,
                "generation": self.generation,
                "what": [*self.differs] or [self.reason],
                "expected": {field: f"{pair[0]:#x}" for field, pair in self.differs.items()},
                "found": {field: f"{pair[1]:#x}" for field, pair in self.differs.items()},
            }
        )
