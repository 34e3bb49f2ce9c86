"""The deterministic heart, in Rust (crate: runtime/core).

It does no I/O, reads no clock and knows no tensor. Time comes in as `now` (integer nanoseconds,
never going backwards: a smaller value counts as the last one); what it wants moved goes out as
`Action`s; everything it decides is a row in the `Log`, and folding the rows gives the state.

Words: a *page* is `page_size` tokens; a *slot* is one logical page and keeps its identity while its
bytes move between tiers. Tiers are named "device", "host" and "storage".
Components are the families of state that a page carries: `full` (every core has it) and those
that the core is given (`Component`). Each has slots and pools of its own.
Tokens are passed as any C-contiguous buffer of 32-bit integers (`array("I")`, a numpy int32/uint32
array) or, slower, a list of ints. A core whose key is "pairs" takes two integers a token, one whose
key is "digests" 32 bytes a page; everywhere below, "tokens" then means these.
Every method is safe to call from any thread; calls are serialised by a lock.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, final

from typing_extensions import Buffer

Tier = Literal["device", "host", "storage"]
Tokens = Buffer | Sequence[int] | Sequence[tuple[int, int]] | Sequence[bytes]
Part = tuple[str, int, int, int, int]
"""(component, first slot, first device page, count, position of the first page in its sequence)"""

__version__: str
SCHEMA: list[tuple[str, str, str]]
"""Each column of the log: (name, Arrow type, meaning). The one table that the documentation
prints."""
KINDS: list[str]
PHASES: list[str]
REASONS: list[str]
"""The words of the columns kind, phase and reason. New ones are appended; some have no use yet."""
POLICIES: list[str]
"""Eviction policies by name: lru, fifo, lfu, slru, s3fifo, tlru, priority, cost, session. tlru also
takes its settings, as in "tlru(threshold=4096,next_prompt_estimate=512)"."""

class CoreError(Exception):
    """The root of everything the core refuses. The state is as it was before the call."""

class BadArgument(CoreError, ValueError):
    """A wrong type, shape, size, name or range; the message has the value. (Numbers that do not fit
    into their 32 or 64 bits are OverflowError, other types TypeError, as everywhere in Python.)"""

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
class Component:
    """A family of state beside `full`.

    family: "swa" (sliding window of `window` tokens), "mamba" (recurrent state: a checkpoint every
    `interval` pages, 0 for only where a computation ends or branches), "sidecar" (goes with the
    component that it `follows`, by the same rules), "spans" (one entry for `ratio` tokens at an
    index that follows from full's: no slots and no pools of its own). device, host, storage: its
    pools, in pages; a mamba page is one checkpoint. A component without a lower tier is lost with
    its device copy.
    """

    def __init__(
        self,
        name: str,
        family: Literal["swa", "mamba", "sidecar", "spans"],
        *,
        follows: str = "",
        window: int = 0,
        interval: int = 0,
        ratio: int = 0,
        device: int = 0,
        host: int = 0,
        storage: int = 0,
        page_bytes: int = 0,
    ) -> None: ...

@final
class Facts:
    """What an eviction policy of the user's own is told of one candidate: a node's end for path
    components, one page for the others. Times in ns."""

    now: int
    created: int
    last_use: int
    uses: int
    pages: int
    """Copies in this tier."""
    depth: int
    """Pages before it on its path."""
    page_tokens: int
    page_bytes: int
    priority: int
    """Of the session that used it last; the lowest goes first."""
    sessions: int
    """Open sessions whose path covers it."""
    superseded: bool
    """Its session went another way, and nobody has used it since."""
    returns_at: int
    """When somebody whose path it is on is expected back; 0 when nobody said."""
    identity: int
    """Of its content: the same when the same pages come again."""

@final
class Match:
    """How much of a token sequence the cache holds. All lengths count from the start of the
    sequence."""

    node: int
    """Node where the match ends, as the log numbers it; the root when nothing matched."""
    pages: int
    """The longest length that every component can be resumed at, from any tier."""
    device_pages: int
    """Of those, leading or not, the ones whose best (fastest) copy is on the device ..."""
    host_pages: int
    """... on the host ..."""
    storage_pages: int
    """... or in storage only. The three add up to `pages`; they count `full`."""
    full_pages: int
    """What `full` alone would have given ..."""
    clipped_by: str
    """... and the component that gave less, or ""."""
    branch: int
    """A length at which others leave this path and that no component but `full` can be resumed at:
    worth a checkpoint, and `reserve` plans one. 0: none."""
    reason: str
    """Why the first page after the match missed: "" when nothing was missing, else one of
    never_stored, diverged, evicted, load_failed, pending_write, below_page, namespace_changed,
    component_gap (full goes on, `clipped_by` does not), admission (lost because it had not been
    used often enough to be written down), unknown."""
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
    """The longest length, at most the locked one, that can be resumed from the device alone, and is
    held: when the window or checkpoint at the lock's end did not come, the lock becomes shorter.
    0 while that is open (`pending`, or a reservation of this lock's)."""
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
    """`full`'s: (first slot, first device page, count), in order."""
    parts: list[Part]
    """Every component's. A recurrent state's pages are checkpoints, each for the one position that
    it names; the others are for the whole computation, in order."""

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
    parts: list[Part]
    """What the other components have on the device in that range, gaps or not."""

@final
class Outcome:
    """The one answer to a hint (pin, retain, share, demote, prefetch, flush)."""

    hint: int
    """Number of this hint in the log (column op)."""
    outcome: str
    """accepted | clipped | deferred | rejected. A deferred one is later completed in the log."""
    reason: str
    """"" or why it was clipped, rejected or covers less: no_room, budget, locked, leased, shared,
    not_stored, in_flight, nothing_to_do."""
    pages: int
    """Pages that the hint now covers (pinned), moved or has dropped at once."""
    asked: int
    """Pages that the hint is about: the session's path (pin, prefetch), what of it is on the
    device (demote), what of it has bytes anywhere (flush)."""
    pending: int
    """Pages in flight on its behalf."""
    lease: int
    """For pin, retain and share: the lease. Else 0."""
    seq: int

@final
class Action:
    """Bytes to move. The shell moves them and answers with `Core.complete`."""

    op: int
    kind: str
    """backup (device to host) | offload (host to storage) | prefetch (storage to host) | load (host
    to device). Without a host tier, offload and load go between device and storage."""
    component: str
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
    component: str
    tier: str
    capacity: int
    used: int
    fenced: int
    """Pages being written by an operation. free + used + fenced = capacity."""
    free: int
    leased: int

class Core:
    """The state machine of one engine process.

    page_size: tokens per page. device, host, storage: capacity of each owned tier in pages of
    `full`; 0 = absent. Any subset: without a host tier, pages go between device and storage
    directly. observed_device: the engine owns its device pages and tells of them (`observe`,
    `forget`); `device` is 0 then. components: beside `full`. key: what the tree's keys are made of.
    namespace: name of the first namespace, number 0: what identifies the model's state (name,
    weights revision, dtype, page size ...); part of every digest. secret: cluster secret mixed into
    digests (any bytes; b"" shares keys with everybody). page_bytes: bytes of one page of `full`.
    engine: name shown to operators. wall_offset: added to `now` to give the log's `ts` (wall clock,
    ns since 1970). write_through: back up new pages to the host, and offload backed-up pages to
    storage, as they appear; admit_host, admit_storage: what has been used so often, when next a
    request commits on its path (a tier that is not there has neither). policies: eviction policy by
    tier, of those that are ours, one of `POLICIES` or "module.path:Class", a class of the user's
    with on_insert(item, facts) -> int, on_hit(item, facts) -> int, on_remove(item, identity,
    evicted) and, if it wants, on_victim(item, facts) -> int | None (a new score is a second
    chance); the lowest score goes first. One that raises is not asked again: the last use decides
    then (see `policy_faults`). move_timeout: ns that a move may take before it is given up; 0 for
    ever. defer_digests: make digests when somebody asks for them; by default at a page size of 1.
    pin_share: largest share of a tier that leases may hold. ghosts: lost pages remembered for
    `reason`. log_rows: rows kept for the drain, and as many again that a drain has begun to hand
    out; when nobody drains, the oldest of the others are dropped and
    counted. 0: there is no log. journal: keep every command until it is drained, without limit.
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
        key: Literal["tokens", "pairs", "digests"] = "tokens",
        components: Sequence[Component] = (),
        observed_device: bool = False,
        secret: bytes = b"",
        wall_offset: int = 0,
        now: int = 0,
        write_through: bool = True,
        policies: Mapping[str, str] = {},
        admit_host: int = 1,
        admit_storage: int = 1,
        move_timeout: int = 0,
        defer_digests: bool | None = None,
        pin_share: float = 0.5,
        ghosts: int = 4096,
        log_rows: int = 1 << 16,
        journal: bool = False,
    ) -> None: ...

    # namespaces
    def open_namespace(self, now: int, name: str) -> int:
        """The number of a namespace, new unless one of that name is open."""

    def retire(self, now: int, namespace: int) -> int:
        """Nothing matches under it any more, in any tier; asking for it is refused. Its pages are
        dropped now, those that somebody holds when they are let go. Returns how many went now."""

    # sessions
    def open_session(
        self, now: int, session: str, parent: str = "", *, group: str = "", priority: int = 0
    ) -> None:
        """Start a session; opening an open one again changes nothing. An unknown parent is
        refused. group: forks that end together. priority: for the policy of that name."""

    def close_session(self, now: int, session: str) -> int:
        """End a session and drop at once what only it held, on every tier; pages that are locked,
        leased, in flight or shared stay as ordinary cache. Returns the pages whose last copy was
        dropped."""

    def close_group(self, now: int, group: str) -> int:
        """Close all open sessions of a group; returns how many."""

    def expect(self, now: int, session: str, at: int) -> None:
        """The session's next turn is expected at `at` (ns), until its path is used again."""

    # finding and holding
    def match(
        self,
        now: int,
        session: str,
        request: str,
        tokens: Tokens,
        *,
        skip: int = 0,
        namespace: int = 0,
    ) -> Match:
        """Look only: takes no lock and does not count as a use. skip: the tokens begin at this page
        of the session's own path, at most its length; what comes before is not compared."""

    def acquire(
        self,
        now: int,
        session: str,
        request: str,
        tokens: Tokens,
        *,
        grid: int = 1,
        skip: int = 0,
        namespace: int = 0,
    ) -> Match:
        """Match, then lock what matched, on a length that is a multiple of `grid` pages, against
        eviction from any tier until `release(receipt)`. Counts as a use. `pages` and the tier
        counts are of that length, `reason` is for the page where the match itself ended."""

    def hold(self, now: int, receipt: int) -> int:
        """One more lock on what a lock holds; returns its own receipt. Counts as a use."""

    def release(self, now: int, receipt: int) -> None:
        """Give a lock back, exactly once. Its reservations that are open end as aborted."""

    def restore(self, now: int, receipt: int, into: Sequence[int] | None = None) -> Restore:
        """Start what is needed to bring the locked path to the device: prefetch for pages that only
        storage has, load for pages on the host. Call again after completions, until `pending` is
        0. into: with an observed device, and only then, the engine's pages to load into, for each
        component from the start of this list; nothing else is in them from now on."""

    def table(self, receipt: int, component: str = "full") -> list[tuple[int, int, int]]:
        """(first slot, first device page, count) of the locked path's leading pages that are on the
        device; of a window or a recurrent state, of the pages that the lock holds."""

    def copies(self, receipt: int, component: str = "full") -> list[tuple[int, int, int, bytes]]:
        """(generation << 32 | slot, device page, position, digest) of all the path's pages that are
        on the device, in order; those of `table` come first."""

    def keys(self, receipt: int) -> list[bytes]:
        """32-byte digests of all the locked path's pages, in order, wherever they are."""

    # computing
    def reserve(
        self, now: int, receipt: int, pages: int, *, start: int | None = None
    ) -> Reservation:
        """Device pages for what the request will compute from page `start` on (the end of its
        locked prefix unless given, and at most that), evicting what nobody holds. The request and
        session are the receipt's."""

    def commit(
        self, now: int, op: int, tokens: Tokens, start: int, pages: int, *, skip: int = 0
    ) -> Commit:
        """The first `pages` reserved pages hold computed state for tokens[start*page_size ...]: put
        them in the tree, visible to all. What no later request could need (outside a window, a
        checkpoint beyond the end) and the rest of the reservation is freed, and the operation ends.
        The receipt's lock grows to cover them and the session's path becomes this one. `start` must
        be at or before the end of the locked path; with write_through, backups of new pages start.
        skip: the tokens begin at this page, at or before the end of the locked path."""

    def evict(self, now: int, tier: Tier, pages: int, component: str = "full") -> int:
        """Make `pages` more pages of a tier free ahead of need, as far as nobody holds them.
        Returns how many went."""

    # a device that the engine owns
    def observe(
        self,
        now: int,
        receipt: int,
        tokens: Tokens,
        start: int,
        blocks: Sequence[int],
        *,
        skip: int = 0,
        component: str = "full",
    ) -> Commit:
        """The engine's own pages `blocks` hold this state for the pages from `start` on, and
        nothing else from now on. As `commit`, without a reservation; the other components come
        after `full`. Blocks named twice, or being loaded into, are refused."""

    def forget(self, now: int, blocks: Sequence[int], component: str = "full") -> int:
        """The engine has other things in these pages now; returns how many copies were believed
        there. A move that reads one of them has failed for it, whatever its completion says."""

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

    def resident(
        self, tier: Tier, session: str = "", component: str = "full"
    ) -> list[tuple[int, int, int, bytes]]:
        """(generation << 32 | slot, page in the tier's pool, position, digest) of every settled
        copy in the tier that no operation writes: what a sweep checks. With `session`, only those
        of its path, in order."""

    def user(self, slot: int) -> str:
        """The last session that used the slot's page; "" when there is none."""

    # hints from operator or router; each answered by exactly one outcome
    def pin(self, now: int, session: str, tier: Tier, ttl: int, owner: str) -> Outcome:
        """Lease: the session's path keeps its copies in `tier` until `now + ttl` (ns). Pages not
        there yet are brought (backup or prefetch for host, load for device). A second pin by the
        same owner on the same session and tier renews it, and so does an acquire of that session
        that covers the path, once a sixteenth of its time has passed."""

    def unpin(self, now: int, lease: int) -> None:
        """End a lease early."""

    def retain(self, now: int, session: str, ttl: int, owner: str) -> Outcome:
        """Advice: in every tier, the session's path goes only after everything that is not retained
        or shared, until `now + ttl`. Needs no budget, holds nothing."""

    def share(self, now: int, session: str, forks: int, ttl: int, owner: str) -> Outcome:
        """The same, until `forks` acquires by sessions that this one spawned have covered the path,
        at most for `ttl` ns."""

    def demote(self, now: int, session: str, owner: str) -> Outcome:
        """Take the session's own pages off the device, backing up first what has no copy below."""

    def prefetch(self, now: int, session: str, owner: str) -> Outcome:
        """Bring the session's path from storage to the host."""

    def flush(self, now: int, session: str, owner: str) -> Outcome:
        """Drop the session's own pages from every tier."""

    # time and notes
    def tick(self, now: int) -> int:
        """Let time pass: leases expire, and moves that have taken longer than `move_timeout` are
        given up (their pages stay fenced until `complete`). Returns how many leases expired."""

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

    def observed_hash(self) -> str:
        """The same of what is believed about a device that the engine owns; no part of that."""

    def policy_faults(self) -> list[tuple[str, Tier, str, str]]:
        """Policies of the user's own that are not asked any more, since they raised or answered
        what is no score: (component, tier, policy, why). The log has each once, as config/fail."""

    def check(self) -> None:
        """Prove every invariant of the state and of every index derived from it; CoreError names
        the first that does not hold."""

    def keyframe_begin(self) -> int:
        """Begin a keyframe of the state as of the row whose number is returned. Copies nothing yet;
        commands go on as usual, and what they change before its turn is saved first. One that is
        under way is given up."""

    def keyframe_slice(self, max_records: int = 4096) -> bytes | None:
        """The keyframe's next part, in which at most `max_records` records were looked at; None
        after the last, and when none was begun. All parts in order are what
        `Replica.from_keyframe` reads. BadArgument for 0."""

    def log(self) -> Log: ...
    def journal(self) -> bytes:
        """Every command so far with its `now`, less what was drained, as the journal's next piece;
        empty when there is none, and unless journal=True."""

    def drain_journal(self) -> bytes:
        """The same, and forget it. The pieces, one after the other, are one journal; each has its
        number, its length and a checksum."""

    @staticmethod
    def replay(journal: bytes, *, policies: bool = False) -> Core:
        """Run a journal again from nothing. LogError, which names the piece, when one is missing,
        cut or damaged, and when it was no journal. A journal may name classes of somebody's own as
        policies; BadArgument unless policies=True, which imports and calls them."""

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

    @staticmethod
    def from_keyframe(parts: list[bytes]) -> Replica:
        """A replica that goes on where a keyframe was begun: `seq()` is its number, and messages
        with later rows can be folded. LogError when the parts are not all there and in order, are
        of another version, or do not give the state that they promise (`state_hash`, `check()`)."""

    def keyframe_begin(self) -> int:
        """As Core.keyframe_begin, of what has been folded. LogError when nothing has been, or when
        this replica has stopped for good."""

    def keyframe_slice(self, max_records: int = 4096) -> bytes | None:
        """As Core.keyframe_slice. Releases the GIL."""

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

def whole_pieces(journal: bytes) -> tuple[int, int]:
    """How many whole pieces a journal has, and the bytes that they take; what follows is a piece
    that a crash cut off. LogError when one is missing or damaged, or cut and others follow it."""

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
