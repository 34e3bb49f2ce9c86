from .config import Component, Config
from .hints import Hints as Model
from .policies import POLICIES
from .records import TIERS

__all__ = ["POLICIES", "TIERS", "Component", "Config", "Model"]
