"""One request's hold on the cache, from its match to its release."""

from array import array
from time import monotonic
from typing import TYPE_CHECKING, Any

from canary import stamp
from runtime._core import REASONS, BadArgument
from runtime.errors import DamagedPage, LayoutError, RequestEnded
from runtime.guard import Copy

if TYPE_CHECKING:
    import torch

    from runtime._core import Match
    from runtime.cache import TieredCache

WAIT_SLICE_S = 0.05
"""An engine that waits for bytes still takes its step this often."""


class Request:
    """Made by `TieredCache.begin`. As a context manager it ends by itself: an exception aborts it.

    Belongs to the engine's thread. Ends exactly once: after `finish` or `abort`, everything but
    leaving the `with` block raises RequestEnded.
    """

    def __init__(
        self,
        cache: "TieredCache",
        name: str,
        session: str,
        tokens: "array[int]",
        match: "Match",
        grid_pages: int,
        begun: int,
    ) -> None:
        self.name = name
        self.session = session
        self.tokens = tokens
        self.match = match
        """What the tree held: the locked prefix, rounded down to the grid."""
        self.ready_tokens = 0
        """What the last `restore` returned."""
        self._cache = cache
        self._grid_pages = grid_pages
        self._begun = begun
        self._ended = False

    def restore(self, timeout_s: float = 30.0) -> int:
        """Bring the matched prefix to the device. Returns the tokens usable there: whole pages,
        checked, a multiple of the grid. Fewer than matched when a move failed, room or time ran
        out, or damage was found; all of `tokens` when they are all there. Takes the engine's
        steps while it waits.
        """
        cache = self._live()
        deadline = monotonic() + timeout_s
        while True:
            progress = cache.core.restore(cache.now(), self.match.receipt)
            left_s = deadline - monotonic()
            if progress.pending and left_s > 0:
                cache.step(min(left_s, WAIT_SLICE_S))
                continue
            intact = self._intact_pages(progress.ready)
            # A damaged copy is gone now; another tier may still have the page.
            if intact == progress.ready or left_s <= 0:
                break
        self.ready_tokens = intact // self._grid_pages * self._grid_pages * cache.page_size
        return self.ready_tokens

    def read(self, limit_tokens: int | None = None) -> "torch.Tensor":
        """Gather the restored tokens' state, or that of the whole pages among the first
        `limit_tokens`: a new tensor [layers, 2, kv_heads, tokens, head_dim] on the device. The log
        takes what is read for what is not computed again, so read no more than that. Raises
        DamagedPage when bytes changed since `restore`: they are dropped, and `restore` may be
        called again.
        """
        cache = self._live()
        usable = self.ready_tokens
        pages = (usable if limit_tokens is None else min(usable, limit_tokens)) // cache.page_size
        if self._intact_pages(pages) < pages:
            raise DamagedPage(
                f"Request {self.name!r}: a page changed after restore and was dropped. "
                "Call restore() again."
            )
        self._note("start", tokens=pages * cache.page_size)
        return cache.device_pool.read((copy.page, 1) for copy in self._copies()[:pages])

    def write(self, start_token: int, state: "torch.Tensor") -> int:
        """Cache computed state [layers, 2, kv_heads, n, head_dim] of tokens[start_token :
        start_token + n].

        `start_token` is a multiple of the page size, at most the end of what this request holds.
        Only whole pages are kept, and when the device has less room, only the leading ones;
        returns the tokens kept. They are visible to everybody, and held by this request, when
        this returns.
        """
        cache = self._live()
        first, asked = self._pages_of(start_token, cache.layout.tokens_of(state))
        if not asked:
            return 0
        core, receipt = cache.core, self.match.receipt
        grant = core.reserve(cache.now(), receipt, asked)
        runs = [(page, count) for _, page, count in grant.runs]
        kept = grant.pages * cache.page_size
        try:
            cache.device_pool.write(runs, state[:, :, :, :kept])
            core.commit(cache.now(), grant.op, self.tokens, first, grant.pages)
        except BaseException:
            core.abort(cache.now(), grant.op, "failed")
            raise
        self._stamp(runs)
        cache.submit()
        return kept

    def extend(self, tokens: Any) -> None:
        """The answer's tokens, as they are decided: `write` may then keep their state as well."""
        self._live()
        self.tokens.extend(as_tokens(tokens))

    def first_token(self) -> None:
        """Note that the answer has begun."""
        self._live()
        self._note("first_token")

    def finish(self) -> None:
        """Release what the request holds; its pages stay cached."""
        self._live()
        self._end("finish", "")

    def abort(self, reason: str = "aborted") -> None:
        """Release what the request holds, because it will not finish."""
        self._live()
        self._end("abort", reason)

    def __enter__(self) -> "Request":
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not self._ended:
            self._end("abort" if error else "finish", repr(error) if error else "")

    def _live(self) -> "TieredCache":
        if self._ended:
            raise RequestEnded(f"Request {self.name!r} has ended; begin a new one.")
        return self._cache

    def _end(self, phase: str, reason: str) -> None:
        self._ended = True
        self._cache.ended(self)
        self._cache.core.release(self._cache.now(), self.match.receipt)
        self._note(phase, reason)

    def _note(self, phase: str, reason: str = "", tokens: int | None = None) -> None:
        """tokens: the prompt's when left out. `reason` may be anybody's words; the log's own go
        into its column, others into the detail."""
        known = reason in REASONS
        now = self._cache.now()
        self._cache.core.note(
            now,
            "request",
            phase,
            session=self.session,
            request=self.name,
            reason=reason if known else "aborted",
            detail="" if known else reason,
            tokens=len(self.tokens) if tokens is None else tokens,
            duration=max(0, now - self._begun),
        )

    def _pages_of(self, start_token: int, count: int) -> tuple[int, int]:
        """(first page, whole pages) of a stretch of this request's tokens."""
        size = self._cache.page_size
        if start_token < 0 or start_token % size:
            raise LayoutError(
                f"start_token is {start_token}; it must be a multiple of the page size, {size}."
            )
        if start_token + count > len(self.tokens):
            raise LayoutError(
                f"state for tokens {start_token} to {start_token + count}, "
                f"but request {self.name!r} has {len(self.tokens)} tokens."
            )
        return start_token // size, count // size

    def _copies(self) -> list[Copy]:
        """The path's copies on the device, in order; what `restore` counts comes first."""
        return [Copy(*row) for row in self._cache.core.copies(self.match.receipt)]

    def _intact_pages(self, pages: int) -> int:
        """Check the leading pages on the device; how many come before the first damaged one."""
        cache = self._cache
        path = self._copies()[:pages]
        damaged = cache.guard.check(
            cache.now(), "device", path, hop="read", session=self.session, request=self.name
        )
        return min((copy.position for copy in damaged), default=len(path))

    def _stamp(self, runs: list[tuple[int, int]]) -> None:
        """Stamp the pages that this request computed and the tree took. Those that it did not
        take, because it had them, are not ours any more.
        """
        cache = self._cache
        pool, ours = cache.device_pool, {first + i for first, count in runs for i in range(count)}
        for copy in self._copies():
            if copy.page in ours:
                token = copy.position * cache.page_size
                mode = cache.guard.mode
                sentinel = stamp(copy.key, token, copy.owner, pool.page(copy.page), mode)
                pool.sentinels[copy.page] = list(sentinel)


def as_tokens(tokens: Any) -> "array[int]":
    """The caller's tokens as a copy of our own; BadArgument when they are not whole numbers of 32
    bits."""
    if hasattr(tokens, "tolist"):
        tokens = tokens.tolist()
    try:
        return array("I", tokens)
    except (TypeError, OverflowError, ValueError) as error:
        raise BadArgument(f"tokens must be whole numbers from 0 to 2**32 - 1: {error}.") from error
