"""What a model is told at the start."""

from dataclasses import dataclass, field

from .families import Checkpoints, Family, Full, Window
from .records import DEVICE, FULL, HOST, STORAGE, TIERS


@dataclass(frozen=True)
class Component:
    name: str
    family: str
    """swa | mamba | sidecar | spans"""
    follows: str = ""
    window: int = 0
    interval: int = 0
    ratio: int = 0
    device: int = 0
    host: int = 0
    storage: int = 0


@dataclass(frozen=True)
class Config:
    page_size: int
    device: int
    host: int = 0
    storage: int = 0
    key: str = "tokens"
    components: tuple[Component, ...] = ()
    policies: dict[str, str] = field(default_factory=dict)
    write_through: bool = True
    pin_share: float = 0.5
    admit_host: int = 1
    admit_storage: int = 1
    move_timeout: int = 0
    observed_device: bool = False

    def families(self) -> dict[str, Family]:
        """Of every component that has slots, `full` first. Spans have none."""
        known: dict[str, Family] = {FULL: Full()}
        for c in self.components:
            if c.family == "swa":
                known[c.name] = Window(-(-c.window // self.page_size))
            elif c.family == "mamba":
                known[c.name] = Checkpoints(c.interval)
            elif c.family == "sidecar":
                known[c.name] = known[c.follows]
        return known

    def capacity(self) -> dict[str, dict[str, int]]:
        own = dict(zip(TIERS, (self.device, self.host, self.storage), strict=True))
        others = {
            c.name: {DEVICE: c.device, HOST: c.host, STORAGE: c.storage}
            for c in self.components
            if c.family != "spans"
        }
        return {FULL: own, **others}
