"""One command to the core and to its model; then everything is compared.

The core goes first: where a policy has a memory of its own, the model follows its victims.
"""

from array import array
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from comparison import NAMESPACE, SECRET, Comparison
from identity import chain
from model import Config, Model
from model.records import FULL, Lock, Outcome, Path, Refused, length

from runtime import _core

PAGE = 2


class Agreement(Comparison):
    def start(self, config: Config, batch: int) -> None:
        self.model = Model(config)
        self.core = self.launch(config)
        self.log, self.batch = self.core.log(), batch
        self.replica = _core.Replica()
        self.payloads = []
        self.folded = 0
        self.now = 0
        self.rows_of = {}
        self.receipts = {}
        self.ops = {}
        self.leases = {}
        self.slots = {}
        self.deferred = set()
        self.prompts: list[tuple[int, ...]] = [()]
        self.tokens: dict[Lock, tuple[int, ...]] = {}
        self.texts: dict[Path, tuple[int, ...]] = {}
        """Tokens of every path."""

    def launch(self, config: Config) -> _core.Core:
        options = {k: v for k, v in asdict(config).items() if v != getattr(Config(0, 0), k)}
        if config.components:
            options["components"] = [
                _core.Component(**asdict(component)) for component in config.components
            ]
        options.update(page_size=PAGE, device=config.device)
        return _core.Core(
            engine="e", epoch="1", namespace=NAMESPACE, secret=SECRET, journal=True, **options
        )

    def both(
        self, verb: str, *args: Any, model: Callable[[], Any], **options: Any
    ) -> tuple[Any, Any]:
        """Answers of the core and of the model; (None, None) when both refuse alike."""
        self.agreed = False
        self.now += 1
        self.model.now = self.now
        self.model.wanted, self.model.evicted, self.model.completed = [], [], []
        first, before = self.core.seq() + 1, self.core.state_hash()
        answer, refused = None, None
        try:
            answer = getattr(self.core, verb)(self.now, *args, **options)
        except _core.CoreError as error:
            refused = error
        self.rows = list(self.drain())
        self.model.victims = self.victims()
        said: str | None = None
        try:
            expected = model()
        except Refused as error:
            said = error.args[0]
        if said:
            assert type(refused) is getattr(_core, said), refused
            assert (self.core.seq(), self.core.state_hash()) == (first - 1, before)
            self.agreed = True
            return None, None
        assert refused is None, refused
        self.rows_of[self.now] = range(first, self.core.seq() + 1)
        if isinstance(expected, Outcome) and expected.lease is not None:
            self.leases.setdefault(answer.lease, expected.lease)
        self.compare()
        self.agreed = True
        return answer, expected

    # tokens, as the configured key wants them

    def words(self, tokens: tuple[int, ...], skip: int = 0, namespace: int = 0) -> tuple:
        """What pages are known by, from page `skip` on."""
        kind = self.model.config.key
        if kind == "digests":
            return chain(tokens, PAGE, namespace)[skip:]
        return (tokens if kind == "tokens" else tuple(pairwise(tokens)))[PAGE * skip :]

    def path(self, tokens: tuple[int, ...], namespace: int = 0) -> Path:
        """The whole pages of a text; remembers what they say."""
        keys = self.model.keys
        path = keys.path(namespace, self.words(tokens, namespace=namespace))
        for end in range(1, len(path)):
            self.texts[path[: end + 1]] = tokens[: end * PAGE + (keys.kind == "pairs")]
        return path

    def pages(self, tokens: tuple[int, ...]) -> int:
        return length(self.path(tokens))

    def text(self, path: Path) -> tuple[int, ...]:
        return self.texts[path] if length(path) else ()

    def buffer(self, words: tuple) -> array | bytes:
        kind = self.model.config.key
        if kind == "digests":
            return b"".join(words)
        return array("I", words if kind == "tokens" else [t for pair in words for t in pair])

    @staticmethod
    def of(**options: Any) -> dict[str, Any]:
        """Options that are not the default: a core without components has no others."""
        return {name: value for name, value in options.items() if value not in (0, "", FULL, None)}
