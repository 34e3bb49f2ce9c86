"""What can be asked: one function per verb over a `Store`, the same live and over a recording.

Owns: the meaning and JSON shape of every verb. Knows nothing of sockets, threads or terminals.
May import: kvctl.store, kvctl.table, kvctl.text, kvctl.errors, telemetry.

`Source.ask(verb, **args)` returns the dict described here, or raises a `kvctl.errors.KvctlError`
(`.code`, `.exit`, `str()` is the message). TABLE = {"columns": [name…], "rows": [[value…]…]}.
Times (`ts`, `*_ts`, `started`, `last_use`, `expires`) are wall-clock ns since 1970, durations
(`*_ns`) ns; binary values are hex text; what is not known is null. `engine` may always be left out;
where it then is ambiguous the error names the candidates. A name that nothing bears is an error
(kvctl.exits has the rule), never an empty answer. Unless said otherwise a verb speaks of
each engine's latest epoch only.

status {}
  {"mode": "live"|"file", "source": str, "pid": int|null, "started": ns|null, "version": str,
   "rows": int, "messages": int, "gaps": int, "lost_rows": int, "dropped": int, "violations": int,
   "lag_ms": float|null (the worst engine's), "problem": str, "engines": [ENGINE…]}
  ENGINE = {"engine", "epoch", "address", "state": "live"|"silent"|"waiting"|"recorded",
   "seq": last row, "number": last message, "rows", "messages", "lag_ms": float|null,
   "dropped": rows the engine itself lost, "gaps": int, "lost_rows": int,
   "trust": "exact"|"after_gap"|"mismatch", "state_hash": folded, "gapless": bool,
   "first_ts", "last_ts", "problem": ""|str}
  lag_ms: how long the tables have been behind what the engine has said; 0 when they have all of it,
  null when nobody follows it. An address that has said nothing yet is listed with engine "" and
  state "waiting".

engines {all_epochs: bool = false}     TABLE of ENGINE, columns in the order above
sessions {engine, session, limit = 500}
  TABLE engine, epoch, session, parent, open, pages, device_pages, host_pages, storage_pages
  (copies: a page may count in several), fastest_device, fastest_host, fastest_storage (pages by
  their fastest copy; the rest of pages has none), shared_pages, requests, tokens, hit_tokens,
  saved_tokens, hit_rate (0..1|null, the share of tokens that was not computed again), last_reason,
  leases (list of {"lease", "tier", "owner", "pages", "expires"}), last_use, seq; most recently
  used first.
  Closed sessions have open false and zero pages.
pools {engine}
  TABLE engine, epoch, tier, capacity, used, fenced, free, leased, seq
events {after_seq, before_seq, limit = 200, kind, session, request, engine, epoch}
  TABLE engine, epoch, <every column of telemetry.schema>, trust; ascending by time. With neither
  bound the last `limit` rows; with after_seq the first `limit` rows after it; with before_seq the
  last `limit` before it.
requests {session, engine, limit = 200}
  TABLE, the rows of view `requests`: engine, epoch, request, session, arrival_ts, tokens,
  hit_tokens, device_tokens, host_tokens, storage_tokens, saved_tokens (|null), reason, ttft_ns,
  duration_ns, state ("running"|"finished"|"aborted"), seq; latest last
transfers {engine}
  TABLE kind, tier_from, tier_to, ops, failed, pages, bytes, duration_ns, bytes_per_s (|null)
sql {query, limit = 1000, timeout_s = 10}
  TABLE + {"types": [str…], "truncated": bool, "elapsed_ms": float}
  One SELECT/WITH/DESCRIBE/SHOW/FROM statement. Errors: sql_refused, sql_error, timeout.

why {session | request, engine}
  Of a session: its latest miss but never_stored and below_page, in which every growing conversation
  ends; else its latest such miss, else its latest request.
  {"engine", "epoch", "session", "request", "found": bool, "certain": bool,
   "miss": null | {"seq", "ts", "tokens", "hit_tokens", "missed_tokens", "device_tokens",
                   "host_tokens", "storage_tokens", "reason", "offset": int|null},
   "took": [{"seq", "ts", "tier", "kept": bool, "reason", "policy", "pages", "before_ns",
             "idle_ns": int|null, "last_user", "skipped", "cause"}…]
            the rows that took the missing page away, latest first
   "for": null | {"seq", "ts", "kind", "phase", "session", "request"}   who needed the room
   "gaps": [{"first", "last"}…]        lost rows that could hide the answer
   "sentences": [str…]}                the same for people, first the answer
  found false: the session (request) exists but missed nothing. certain false: a link is unknown.
summary {}
  {"requests": int, "finished": int, "aborted": int, "tokens": int, "computed_tokens": int,
   "saved_tokens": int, "hit_rate": float|null,     found is not yet saved: see view `requests`
   "hit_tokens": {"device": int, "host": int, "storage": int}, "misses": {reason: requests…},
   "evictions": {"tier/reason": pages…}, "lost_pages": int, "transfers": TABLE as in transfers,
   "canary": {"checks": int, "violations": int, "injected": int},
   "ttft_ns": {"p50": int|null, "p95": int|null}, "actions": int, "gaps": int, "lost_rows": int,
   "engines": [{"engine", "epoch", "seq", "state_hash", "gapless": bool, "trust"}…]}
canary {engine, limit = 100}
  {"checks": pages, "violations": int, "injected": int, "hops": TABLE hop, checks, violations,
   "violations_table": TABLE engine, seq, ts, hop, session, request, node, slot_from, pages, detail}
actions {limit = 100}
  TABLE id, ts, engine, epoch, operator, verb, args, ok, outcome, reason, detail, duration_ns;
  latest last
gaps {}
  TABLE engine, epoch, first, last, rows, ts, detail

Acting verbs (live only; over a file: error read_only). Each takes engine, epoch (default: the
latest known) and operator (default user@host), and is recorded in `actions` even when it fails. The
result is the engine's own answer plus {"engine", "epoch", "action": id}:
pin {session, tier = "host", ttl_s = 600}
  {"outcome", "reason", "pages", "asked", "pending", "lease", "hint", "seq"}
unpin {lease}                            {"lease"}
demote {session}, prefetch {session}, flush {session}      as pin
sweep {}                                 {"tiers": {tier: {"checked": pages, "damaged": pages}}}
inject {session, hop}                    as the engine answers
Errors: unreachable (engine gone or unknown), stale_epoch, unknown_session, unknown_lease,
ambiguous, and whatever code the engine gives.

attach {address}      {"address"}: also collect from this engine
shutdown {}           {"stopping": true}
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from kvctl.errors import KvctlError, ReadOnly, UsageError
from kvctl.verbs import check

if TYPE_CHECKING:
    from kvctl.store.store import Store

READING = {
    "status": "engines",
    "engines": "engines",
    "sessions": "sessions",
    "pools": "pools",
    "events": "events",
    "requests": "requests",
    "transfers": "transfers",
    "sql": "sql",
    "why": "why",
    "summary": "summary",
    "canary": "canary",
    "actions": "actions",
    "gaps": "gaps",
}
"""Verb → module of this package that has the function of its name."""
ACTING: dict[str, tuple[str, ...]] = {
    "pin": ("session", "tier", "ttl_s"),
    "unpin": ("lease",),
    "demote": ("session",),
    "prefetch": ("session",),
    "flush": ("session",),
    "sweep": (),
    "inject": ("session", "hop"),
}
"""Verb → its own arguments; an engine's control endpoint knows the same."""
DEFAULTS: dict[str, dict[str, Any]] = {"pin": {"tier": "host", "ttl_s": 600}}
SERVING = ("attach", "shutdown")


def answer(store: Store, verb: str, args: dict[str, Any]) -> dict[str, Any]:
    """A reading verb's result."""
    if verb in ACTING or verb in SERVING:
        raise ReadOnly(f"{verb} needs a running server; {store.about()['source']} is a recording")
    if verb not in READING:
        known = ", ".join((*READING, *ACTING, *SERVING))
        raise UsageError(f"no verb {verb!r}; there are: {known}")
    check.names(args)
    if (engine := args.get("engine")) is not None:
        check.engine(store, engine)
    function = getattr(importlib.import_module(f"kvctl.verbs.{READING[verb]}"), verb)
    try:
        inspect.signature(function).bind(store, **args)
    except TypeError as error:
        raise UsageError(f"{verb}: {error}") from None
    try:
        result: dict[str, Any] = function(store, **args)
    except KvctlError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(f"{verb} with {args}: {error}") from error
    return result
