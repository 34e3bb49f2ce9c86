"""TieredCache: the one object an engine holds.

It joins the core, which decides, to the pools, pipelines, store, publisher and control endpoint,
which act. Only the engine's thread may call it; the threads behind it hand over what they have
through one inbox, which `step` empties.
"""

import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from canary import MODES, Mode
from runtime._core import Action, BadArgument, Core
from runtime.commands import Refused, execute
from runtime.control import Command, ControlServer
from runtime.errors import CacheClosed, ConfigError, ControlError
from runtime.guard import Guard
from runtime.journal import JournalFile
from runtime.layout import Layout
from runtime.pools.device import DevicePool
from runtime.pools.host import HostPool
from runtime.request import Request, as_tokens
from runtime.storage.base import Store
from runtime.transfer.device_host import DeviceHostPipeline
from runtime.transfer.pipeline import Completion, Pipeline, pages_of
from runtime.transfer.storage import StoragePipeline
from telemetry.errors import BadAddress

if TYPE_CHECKING:
    from runtime._core import Tier
    from runtime.pools.pool import Pool
    from telemetry.publisher import Publisher


class TieredCache:
    """A KV cache of up to three tiers for one engine.

    namespace: what identifies the model's state (name, weights revision, adapter ...); the layout
    is added. device_pages, host_pages, storage_pages: capacities. Storage needs a `storage` store
    (opened and closed here; one engine at a time; what it held before is removed) and a host tier
    to pass through. device: a torch device. secret: mixed into page digests, so that those
    in the log do not confirm a guess at the text; drawn for this cache unless given. b"" leaves it
    out, as SGLang does. publish, replay, control: loopback endpoints (`tcp://127.0.0.1:*`), or None
    for none; `endpoints` has the real ones. canary: how much of each page's bytes the sentinels
    cover. pin_share: largest share of a tier that leases may hold. write_through: back up and
    offload pages as they appear. policies: eviction policy by tier ("lru" unless given), one of
    `runtime._core.POLICIES` or "module.path:Class". move_timeout_s: how long a move may take before
    the core gives it up; 0 for ever. journal: a new file that records every command, for
    `python -m runtime.journal`. clock: wall clock in ns.

    Raises ConfigError, StorageError, ControlError and the core's BadArgument; nothing stays open
    when it does.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        engine: str,
        namespace: str,
        device_pages: int,
        host_pages: int = 0,
        storage: Store | None = None,
        storage_pages: int = 0,
        device: str = "cpu",
        secret: bytes | None = None,
        publish: str | None = None,
        replay: str | None = None,
        control: str | None = None,
        canary: Mode = "all",
        pin_share: float = 0.5,
        write_through: bool = True,
        policies: Mapping[str, str] | None = None,
        move_timeout_s: float = 0.0,
        journal: Path | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        if canary not in MODES:
            raise ConfigError(f"canary is {canary!r}; it must be one of {', '.join(MODES)}.")
        sizes = {
            "device_pages": device_pages,
            "host_pages": host_pages,
            "storage_pages": storage_pages,
        }
        for name, pages in sizes.items():
            if not isinstance(pages, int) or pages < 0:
                raise ConfigError(f"{name} is {pages!r}; it must be a whole number from 0.")
        if (storage is None) != (storage_pages == 0):
            raise ConfigError(
                f"storage is {storage!r} with {storage_pages} pages; give both or neither."
            )
        if storage and not host_pages:
            raise ConfigError("storage without host_pages: stored pages pass through the host.")
        if replay and not publish:
            raise ConfigError(
                f"replay is {replay!r} without publish: there would be nothing to replay."
            )

        self.layout = layout
        self.engine = engine
        self.page_size = layout.page_size
        self.epoch = secrets.token_hex(8)
        self.now = clock
        self.endpoints: dict[str, str] = {}
        self.stop_requested = False
        """An operator asked the engine to end; its loop decides when."""
        namespace = f"{namespace} {layout.identity}"
        self.core = Core(
            engine=engine,
            epoch=self.epoch,
            namespace=namespace,
            page_size=layout.page_size,
            device=device_pages,
            host=host_pages,
            storage=storage_pages,
            page_bytes=layout.page_bytes,
            secret=secrets.token_bytes(32) if secret is None else secret,
            now=clock(),
            write_through=write_through,
            pin_share=pin_share,
            policies=policies or {},
            move_timeout=round(move_timeout_s * 1e9),
            journal=journal is not None,
        )
        self._inbox: SimpleQueue[Completion | Command] = SimpleQueue()
        self._pipelines: dict[str, Pipeline] = {}
        self._waiting: dict[Pipeline, deque[Action]] = {}
        self._flying: dict[int, Action] = {}
        self._open: set[Request] = set()
        self._moved: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._publisher: Publisher | None = None
        self._control: ControlServer | None = None
        self._storage: StoragePipeline | None = None
        self._closed = False
        self._journal = JournalFile(self.core, journal) if journal else None

        self.device_pool = DevicePool(layout, device_pages, device)
        pools: dict[Tier, Pool] = {"device": self.device_pool}
        with ExitStack() as stack:
            if self._journal:
                stack.callback(self._journal.close)
            if publish:
                from telemetry import publisher

                try:
                    self._publisher = publisher.Publisher(self.core.log(), publish, replay)
                except BadAddress as error:
                    raise ControlError(f"Cannot publish at {publish}: {error}.") from error
                stack.callback(self._publisher.close)
                self.endpoints["publish"] = self._publisher.endpoint
                self.endpoints["replay"] = self._publisher.replay_endpoint
            stack.callback(self._settle)
            if host_pages:
                pools["host"] = host = HostPool(layout, host_pages)
                self._run(
                    stack, DeviceHostPipeline(self.device_pool, host, self._inbox.put, canary)
                )
                if storage:
                    storage.open()
                    stack.callback(storage.close)
                    self._storage = StoragePipeline(
                        host, storage, namespace, self._inbox.put, canary
                    )
                    self._run(stack, self._storage)
            if control:
                self._control = ControlServer(control, self._inbox.put)
                stack.callback(self._control.close)
                self.endpoints["control"] = self._control.endpoint
            self.guard = Guard(self.core, pools, self._storage, canary)
            self._closers = stack.pop_all()

    def open_session(self, session: str, parent: str = "") -> None:
        """Start a session; an open one stays as it is. UnknownSession when its parent is not."""
        self._live().open_session(self.now(), session, parent)

    def close_session(self, session: str) -> int:
        """End a session and drop what only it held, on every tier; returns how many pages."""
        dropped = self._live().close_session(self.now(), session)
        self.forget_dropped()
        return dropped

    def begin(
        self,
        request: str,
        session: str,
        tokens: Any,
        *,
        parent: str = "",
        grid_tokens: int | None = None,
    ) -> Request:
        """Match `tokens` and hold what matched until the request ends. `request` names it in the
        log, once in a session: the log's readers take two of one name for one. A new session is
        opened, under `parent`. grid_tokens: the engine prefills on this grid, so matches are
        rounded down to it; a multiple of the page size, which is also the default.
        """
        core = self._live()
        grid = self.page_size if grid_tokens is None else grid_tokens
        if grid < 1 or grid % self.page_size:
            raise ConfigError(
                f"grid_tokens is {grid}; it must be a multiple of the page size, {self.page_size}."
            )
        tokens = as_tokens(tokens)
        self.step()
        now = self.now()
        core.open_session(now, session, parent)
        core.note(now, "request", "arrival", session=session, request=request, tokens=len(tokens))
        match = core.acquire(now, session, request, tokens, grid=grid // self.page_size)
        held = Request(self, request, session, tokens, match, grid // self.page_size, now)
        self._open.add(held)
        return held

    def step(self, wait_s: float = 0.0) -> int:
        """Once per engine step, also when idle: take in completions and operators' commands, let
        time pass, send new moves off. Waits up to `wait_s` seconds for the first of them. Returns
        how many it took in.
        """
        core = self._live()
        self.submit()
        taken = self._take_all(wait_s)
        core.tick(self.now())
        self.submit()
        if self._journal:
            self._journal.flush()
        return taken

    def drain(self, timeout_s: float) -> bool:
        """Step until nothing moves; False when that takes longer than `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.step()
            if not self._flying:
                return True
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            self.step(left_s)

    def tool(self, session: str, phase: str, detail: str = "") -> None:
        """Note that a session's tool call starts or ends (`phase` start | end)."""
        if phase not in ("start", "end"):
            raise BadArgument(f"phase is {phase!r}; a tool call has start and end")
        self._live().note(self.now(), "tool", phase, session=session, detail=detail)

    def sweep(self) -> dict[str, dict[str, int]]:
        """Check every copy that lies still, on every tier, at once: tier -> checked, damaged."""
        self._live()
        return self.guard.sweep(self.now())

    def inject(self, hop: "Tier", session: str) -> dict[str, Any]:
        """Damage one byte of a copy of the session's deepest page in a tier, to see the canary
        find it. Returns what was flipped; NotResident when the session has nothing there.
        """
        self._live()
        return self.guard.inject(self.now(), hop, session)

    def stats(self) -> dict[str, Any]:
        """Counters since the start: what moved, what failed and why, what was checked."""
        publisher = self._publisher
        return {
            "requests_open": len(self._open),
            "moves_open": len(self._flying),
            "moved": dict(self._moved),
            "failures": dict(self._failures),
            "checked": self.guard.checked,
            "violations": self.guard.violations,
            "storage": self._storage.stats() if self._storage else {},
            "rows": self.core.seq(),
            "journal_fault": self._journal.fault if self._journal else "",
            "policy_faults": self.core.policy_faults(),
            "rows_dropped": publisher.dropped if publisher else 0,
        }

    def close(self) -> None:
        """Abort open requests, stop every thread, send the last rows, let go of the store. Again:
        nothing."""
        if self._closed:
            return
        for request in [*self._open]:
            request.abort("closed")
        self._closed = True
        self._take_all()
        self._closers.close()

    def __enter__(self) -> "TieredCache":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self) -> None:
        """Hand the core's new moves to the pipelines, in order, while their queues have room."""
        for action in self.core.actions():
            self._flying[action.op] = action
            self._waiting[self._pipelines[action.kind]].append(action)
        for pipeline, waiting in self._waiting.items():
            while waiting and pipeline.submit(waiting[0]):
                waiting.popleft()

    def ended(self, request: Request) -> None:
        self._open.discard(request)

    def forget_dropped(self) -> None:
        """Remove stored objects that the core no longer knows."""
        if self._storage:
            live = {copy.page for copy in self.guard.copies("storage")}
            for action in self._flying.values():
                if action.tier_to == "storage":
                    live.update(number for _, number in pages_of(action))
            self._storage.forget(live)

    def _live(self) -> Core:
        if self._closed:
            raise CacheClosed(f"The cache of engine {self.engine!r} is closed.")
        return self.core

    def _run(self, stack: ExitStack, pipeline: Pipeline) -> None:
        stack.callback(pipeline.close)
        self._waiting[pipeline] = deque()
        self._pipelines.update(dict.fromkeys(pipeline.kinds, pipeline))

    def _take_all(self, wait_s: float = 0.0) -> int:
        taken = 0
        while True:
            try:
                item = self._inbox.get(timeout=wait_s) if wait_s > 0 else self._inbox.get_nowait()
            except Empty:
                return taken
            if isinstance(item, Completion):
                self._complete(item)
            else:
                self._obey(item)
            taken, wait_s = taken + 1, 0.0

    def _complete(self, done: Completion) -> None:
        now, action = self.now(), done.action
        self.guard.report(now, done)
        self.core.complete(
            now,
            action.op,
            bytes(done.results),
            bytes=done.moved_bytes,
            duration=done.duration_ns,
            detail=", ".join(f"{why}: {n} pages" for why, n in done.failures.items()),
        )
        del self._flying[action.op]
        self._moved[action.kind] += done.moved_bytes
        self._failures.update(done.failures)

    def _obey(self, command: Command) -> None:
        assert self._control
        try:
            if self._closed:
                raise Refused("closing", f"Engine {self.engine!r} is shutting down.")
            self._control.reply(command, execute(self, command.verb, command.args))
        except Refused as error:
            self._control.refuse(command, error)
        except Exception as error:  # an operator's command must not end the engine
            self._control.refuse(command, Refused("internal", f"{type(error).__name__}: {error}"))

    def _settle(self) -> None:
        """The workers have stopped: tell the core about every move that will not happen."""
        self._take_all()
        while self._flying:
            for action in [*self._flying.values()]:
                self._complete(Completion(action, bytearray(action.pages)))
            self._flying.update((action.op, action) for action in self.core.actions())
