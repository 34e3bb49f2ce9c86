"""The deterministic heart, in Rust (crate: runtime/core).

It does no I/O, reads no clock and knows no tensor. Time comes in as `now` (integer nanoseconds,
never going backwards: a smaller value counts as the last one); what it wants moved goes out as
`Action`s; everything it decides is a row in the `Log`, and folding the rows gives the state.

Words: a *page* is `page_size` tokens; a *slot* is one logical page and keeps its identity while its
bytes move between tiers. Tiers are named "device", "host" and "storage".
Tokens are passed as any C-contiguous buffer of 32-bit integers (`array("I")`, a numpy int32/uint32
array) or, slower, a list of ints. Every method is safe to call from any thread; calls are
serialised by a lock.
"""

from collections.abc import Sequence
from typing import Literal, final

from typing_extensions import Buffer

Tier = Literal["device", "host", "storage"]
Tokens = Buffer | Sequence[int]

__version__: str
SCHEMA: list[tuple[str, str, str]]
"""Each column of the log: (name, Arrow type, meaning). The one table that the documentation
prints."""
KINDS: list[str]
PHASES: list[str]
REASONS: list[str]
"""The words of the columns kind, phase and reason. New ones are appended; some have no use yet."""

class CoreError(Exception):
    """The root of everything the core refuses. The state is as it was before the call."""

class BadArgument(CoreError, ValueError):
    """A wrong type, shape, size, name or range; the message has the value."""

class UnknownSession(CoreError): ...

class UnknownOperation(CoreError):
    """No such operation, or it has ended already (a late or double completion)."""

class UnknownLease(CoreError):
    """No such lease: never granted, released, or expired."""

class UnknownReceipt(CoreError):
    """No such lock: never given, or released already (a double release)."""

class LogError(CoreError):
    """A message that cannot be folded: broken bytes, another epoch, or rows missing before it."""

@final
class Match:
    """How much of a token sequence the cache holds. All lengths count from the start of the
    sequence."""

    node: int
    """Node where the match ends, as the log numbers it; the root when nothing matched."""
    pages: int
    """Leading pages of which at least one tier has the bytes."""
    device_pages: int
    """Of those, leading or not, the ones whose best (fastest) copy is on the device ..."""
    host_pages: int
    """... on the host ..."""
    storage_pages: int
    """... or in storage only. The three add up to `pages`."""
    reason: str
    """Why the first page after the match missed: "" when nothing was missing, else one of
    never_stored, diverged, evicted, load_failed, pending_write, below_page, namespace_changed,
    unknown."""
    offset: int
    """For "diverged": the first token that differs from the session's earlier path. Else -1."""
    lost_seq: int
    """For "evicted" and "load_failed": the log row that took the page away. Else 0."""
    seq: int
    """The log row of this match; pass it as a cause."""
    receipt: int
    """The lock taken by `acquire`; 0 from `match`."""

@final
class Restore:
    """How far a locked path has come up to the device."""

    ready: int
    """Leading pages that are on the device now."""
    pending: int
    """Pages for which a move is in flight. When 0, `ready` grows no further."""
    ops: list[int]
    """Operations that this call started."""

@final
class Reservation:
    """Device pages for tokens about to be computed."""

    op: int
    pages: int
    """Granted; may be fewer than asked, 0 when everything is in use."""
    runs: list[tuple[int, int, int]]
    """(first slot, first device page, count), in order."""

@final
class Commit:
    """What became of computed pages."""

    node: int
    inserted: int
    """Pages that are new in the tree."""
    healed: int
    """Pages whose place was known but whose bytes were not on the device; they are now."""
    duplicate: int
    """Pages that the tree already had on the device; ours were freed."""
    runs: list[tuple[int, int, int]]
    """(first slot, first device page, count) of the committed range as the tree has it now, up to
    the first page whose device copy is still on its way or damaged. Read from these: a duplicate's
    own pages are no longer the caller's."""

@final
class Outcome:
    """The one answer to a hint (pin, demote, prefetch, flush)."""

    hint: int
    """Number of this hint in the log (column op)."""
    outcome: str
    """accepted | clipped | deferred | rejected. A deferred one is later completed in the log."""
    reason: str
    """"" or why it was clipped or rejected: no_room, budget, locked, leased, shared, not_stored,
    nothing_to_do."""
    pages: int
    """Pages that the hint now covers (pinned), moved or has dropped at once."""
    asked: int
    """Pages that the hint is about: the session's path (pin, prefetch), what of it is on the
    device (demote), what of it has bytes anywhere (flush)."""
    pending: int
    """Pages in flight on its behalf."""
    lease: int
    """For pin: the lease. Else 0."""
    seq: int

@final
class Action:
    """Bytes to move. The shell moves them and answers with `Core.complete`."""

    op: int
    kind: str
    """backup (device to host) | offload (host to storage) | prefetch (storage to host) | load (host
    to device)."""
    tier_from: str
    tier_to: str
    session: str
    """For whom, or ""."""
    pages: int
    runs: list[tuple[int, int, int, int]]
    """(first slot, first source page, first destination page, count), in order; counts add up to
    `pages`. Source and destination pages index the tiers' pools. In storage a page is found by its
    key instead."""
    keys: list[bytes]
    """32-byte page digest of each page, in order: the storage key within the namespace, and the
    token chain that the canary stamps."""
    owners: list[int]
    """Slot with its generation, `generation << 32 | slot`, of each page, in order."""
    positions: list[int]
    """Index of each page in its sequence (first token = position * page_size)."""

@final
class SessionInfo:
    name: str
    parent: str
    pages: int
    """Length of the session's last committed path."""
    device_pages: int
    host_pages: int
    storage_pages: int
    """Pages of that path that have a copy in the tier (a page may count in several)."""
    fastest: tuple[int, int, int]
    """Pages whose fastest copy is on the device, on the host, in storage; the rest have none."""
    shared_pages: int
    """Pages of the path that another open session's path has too."""
    leases: list[tuple[int, str, str, int, int]]
    """(lease, tier, owner, pages, expiry in ns)."""
    last_use: int

@final
class PoolInfo:
    tier: str
    capacity: int
    used: int
    fenced: int
    """Pages being written by an operation. free + used + fenced = capacity."""
    free: int
    leased: int

class Core:
    """The state machine of one engine process.

    page_size: tokens per page. device, host, storage: capacity of each owned tier in pages; 0 =
    absent. namespace: what identifies the model's state (name, weights revision, dtype, page size
    ...); part of every digest. secret: cluster secret mixed into digests (any bytes; b"" shares
    keys with everybody). page_bytes: bytes of one page on any tier, for the log. engine: name shown
    to operators. wall_offset: added to `now` to give the log's `ts` (wall clock, ns since 1970).
    write_through: back up new pages to the host, and offload backed-up pages to storage, as they
    appear. pin_share: largest share of a tier that leases may hold. ghosts: lost pages remembered
    for `reason`. log_rows: rows kept for the drain; when nobody drains, the oldest are dropped and
    counted.
    """

    def __init__(
        self,
        *,
        engine: str,
        epoch: str,
        namespace: str,
        page_size: int,
        device: int,
        host: int = 0,
        storage: int = 0,
        page_bytes: int = 0,
        secret: bytes = b"",
        wall_offset: int = 0,
        now: int = 0,
        write_through: bool = True,
        pin_share: float = 0.5,
        ghosts: int = 4096,
        log_rows: int = 1 << 16,
        journal: bool = False,
    ) -> None: ...

    # sessions
    def open_session(self, now: int, session: str, parent: str = "") -> None:
        """Start a session; opening an open one again changes nothing. An unknown parent is
        refused."""

    def close_session(self, now: int, session: str) -> int:
        """End a session and drop at once what only it held, on every tier; pages that are locked,
        leased, in flight or shared stay as ordinary cache. Returns the pages whose last copy was
        dropped."""

    # finding and holding
    def match(self, now: int, session: str, request: str, tokens: Tokens) -> Match:
        """Look only: takes no lock and does not count as a use."""

    def acquire(
        self, now: int, session: str, request: str, tokens: Tokens, *, grid: int = 1
    ) -> Match:
        """Match, then lock what matched, rounded down to a multiple of `grid` pages, against
        eviction from any tier until `release(receipt)`. Counts as a use. `pages` and the tier
        counts are after rounding, `reason` is for the page where the match itself ended."""

    def release(self, now: int, receipt: int) -> None:
        """Give a lock back, exactly once."""

    def restore(self, now: int, receipt: int) -> Restore:
        """Start what is needed to bring the locked path to the device: prefetch for pages that only
        storage has, load for pages on the host. Call again after completions, until `pending` is
        0."""

    def table(self, receipt: int) -> list[tuple[int, int, int]]:
        """(first slot, first device page, count) of the locked path's leading pages that are on the
        device."""

    def copies(self, receipt: int) -> list[tuple[int, int, int, bytes]]:
        """(generation << 32 | slot, device page, position, digest) of all the path's pages that are
        on the device, in order; those of `table` come first."""

    def keys(self, receipt: int) -> list[bytes]:
        """32-byte digests of all the locked path's pages, in order, wherever they are."""

    # computing
    def reserve(self, now: int, receipt: int, pages: int) -> Reservation:
        """Device pages for what the request will compute after its locked prefix, evicting what
        nobody holds. The request and session are the receipt's."""

    def commit(self, now: int, op: int, tokens: Tokens, start: int, pages: int) -> Commit:
        """The first `pages` reserved pages hold computed state for tokens[start*page_size ...]: put
        them in the tree, visible to all. The rest of the reservation is freed and the operation
        ends. The receipt's lock grows to cover them and the session's path becomes this one.
        `start` must be at or before the end of the locked path; at write_through, backups of new
        pages start."""

    def abort(self, now: int, op: int, reason: str = "aborted") -> None:
        """End an operation. A reservation's pages are free at once (its caller is the only writer).
        A move's pages stay fenced until the shell's `complete` arrives, and are freed then."""

    # moving
    def actions(self) -> list[Action]:
        """Moves wanted since the last call, in order. Nothing else tells of them."""

    def complete(
        self,
        now: int,
        op: int,
        results: bytes,
        *,
        bytes: int = 0,
        duration: int = 0,
        detail: str = "",
    ) -> None:
        """The shell's answer to an Action: one byte a page, in the action's order. 0 = it did not
        arrive; 1 = it did; 2 = it did not, and the source is damaged (the source copy is dropped,
        never served). `detail` is for people: why pages did not arrive."""

    def damaged(self, now: int, tier: Tier, slot: int, generation: int) -> bool:
        """A check outside any move (the sweep) found this copy damaged: drop it, or mark it
        unusable until whoever holds it lets go. False when the slot has moved on meanwhile."""

    def resident(self, tier: Tier, session: str = "") -> list[tuple[int, int, int, bytes]]:
        """(generation << 32 | slot, page in the tier's pool, position, digest) of every settled
        copy in the tier that no operation writes: what a sweep checks. With `session`, only those
        of its path, in order."""

    def user(self, slot: int) -> str:
        """The last session that used the slot's page; "" when there is none."""

    # hints from operator or router; each answered by exactly one outcome
    def pin(self, now: int, session: str, tier: Tier, ttl: int, owner: str) -> Outcome:
        """Lease: the session's path keeps its copies in `tier` until `now + ttl` (ns). Pages not
        there yet are brought (backup or prefetch for host, load for device). A second pin by the
        same owner on the same session and tier renews it."""

    def unpin(self, now: int, lease: int) -> None:
        """End a lease early."""

    def demote(self, now: int, session: str, owner: str) -> Outcome:
        """Take the session's own pages off the device, backing up first what has no copy below."""

    def prefetch(self, now: int, session: str, owner: str) -> Outcome:
        """Bring the session's path from storage to the host."""

    def flush(self, now: int, session: str, owner: str) -> Outcome:
        """Drop the session's own pages from every tier."""

    # time and notes
    def tick(self, now: int) -> int:
        """Let time pass: leases expire. Returns how many did."""

    def note(
        self,
        now: int,
        kind: str,
        phase: str,
        *,
        session: str = "",
        request: str = "",
        reason: str = "",
        cause: int = 0,
        op: int = 0,
        slot: int | None = None,
        pages: int = 0,
        tokens: int = 0,
        bytes: int = 0,
        duration: int = 0,
        tier_from: str = "",
        tier_to: str = "",
        detail: str = "",
    ) -> int:
        """Append a row that changes no state: kinds request, tool, canary. Returns its seq."""

    # looking
    def pools(self) -> list[PoolInfo]: ...
    def sessions(self) -> list[SessionInfo]: ...
    def session(self, name: str) -> SessionInfo: ...
    def seq(self) -> int:
        """Number of the last row; rows count from 1."""

    def state_hash(self) -> str:
        """128-bit multiset hash of all records, as 32 hex digits."""

    def check(self) -> None:
        """Prove every invariant of the state and of every index derived from it; CoreError names
        the first that does not hold."""

    def log(self) -> Log: ...
    def journal(self) -> bytes:
        """Every command so far, encoded; empty unless journal=True."""

    @staticmethod
    def replay(journal: bytes) -> Core:
        """Run a journal again from nothing."""

@final
class Message:
    """One self-contained batch of the log."""

    payload: bytes
    """Arrow IPC stream, one record batch; schema metadata: v, engine, epoch, first (seq of the
    first row), rows, dropped (rows lost before this batch), state_hash (after the last row)."""
    first: int
    rows: int
    state_hash: str

@final
class Log:
    """The drain end of the core's log. Safe from another thread; holds no lock while it encodes."""

    def drain(self, max_rows: int = 4096) -> Message | None:
        """The oldest rows not drained yet, or None. Releases the GIL."""

    def pending(self) -> int: ...
    def dropped(self) -> int:
        """Rows that were lost because nobody drained."""

class Replica:
    """The state of an engine, rebuilt from its log alone. Runs no policy."""

    def __init__(self) -> None: ...
    def fold(self, payload: bytes) -> str:
        """Apply a message; returns state_hash after it. Rows applied before are skipped. LogError
        when it cannot be read, is of another epoch, or rows are missing before it: nothing has
        changed. LogError for good when it does not fit what came before, or its own state_hash does
        not come out."""

    @property
    def engine(self) -> str: ...
    @property
    def epoch(self) -> str: ...
    def seq(self) -> int: ...
    def state_hash(self) -> str: ...
    def pools(self) -> list[PoolInfo]: ...
    def sessions(self) -> list[SessionInfo]: ...
    def check(self) -> None: ...

def page_digests(
    tokens: Tokens, page_size: int, namespace: str, secret: bytes = b""
) -> list[bytes]:
    """sha256(parent digest || token ids as u32 little-endian) of each whole page; SGLang's scheme,
    seeded with the namespace and the secret."""

def content_hash(data: Buffer) -> int:
    """XXH3-64 of any C-contiguous buffer. Releases the GIL."""

def copy_pages(
    destination: Buffer,
    source: Buffer,
    page_bytes: int,
    runs: Sequence[tuple[int, int, int]],
    threads: int,
) -> None:
    """Copy runs (first source page, first destination page, count) between two C-contiguous
    buffers that do not overlap, on up to `threads` threads. BadArgument, and nothing copied, when a
    run leaves its buffer or a page would be written twice. Releases the GIL."""
