"""What can be asked: one function per verb, over a `Store`; the same over a live server and a closed file.

Owns: the meaning and JSON shape of every verb. Knows nothing of sockets, threads or terminals.
May import: kvctl.store, kvctl.errors, telemetry.

`Source.ask(verb, **args)` returns the dict described here, or raises a `kvctl.errors.KvctlError`
(`.code`, `.exit`, `str()` is the message). TABLE = {"columns": [name…], "rows": [[value…]…]}.
Times (`ts`, `*_ts`, `started`, `last_use`, `expires`) are wall-clock ns since 1970, durations ns (`*_ns`)
unless the name says otherwise; binary values are hex text; what is not known is null.
`engine` may always be left out; where it then is ambiguous the error names the candidates.
Unless said otherwise a verb speaks of each engine's latest epoch only.

status {}
  {"mode": "live"|"file", "source": str, "pid": int|null, "started": ns|null, "version": "0.1.0",
   "rows": int, "messages": int, "gaps": int, "lost_rows": int, "dropped": int, "violations": int,
   "lag_ms": float|null (worst of the engines), "problem": str, "engines": [ENGINE…]}
  ENGINE = {"engine", "epoch", "address", "state": "live"|"silent"|"waiting"|"recorded",
   "seq": last row, "number": last message, "rows", "messages", "lag_ms": float|null,
   "dropped": rows the engine itself lost, "gaps": int, "lost_rows": int, "trust": "exact"|"after_gap"|"mismatch",
   "state_hash": folded, "gapless": bool, "first_ts", "last_ts", "problem": ""|str}
  An address that has said nothing yet is listed with engine "" and state "waiting".

engines {all_epochs: bool = false}          TABLE of ENGINE, columns in the order above
sessions {engine, session, limit = 500}     TABLE engine, epoch, session, parent, open, pages, device_pages,
  host_pages, storage_pages, shared_pages, requests, tokens, hit_tokens, hit_rate (0..1|null), last_reason,
  leases (list of {"lease", "tier", "owner", "pages", "expires"}), last_use, seq; most recently used first.
  Closed sessions have open false and zero pages.
pools {engine}                              TABLE engine, epoch, tier, capacity, used, fenced, free, leased, seq
events {after_seq, before_seq, limit = 200, kind, session, request, engine, epoch}
  TABLE engine, epoch, <every column of telemetry.schema>, trust; ascending by time. With neither bound the last
  `limit` rows; with after_seq the first `limit` rows after it; with before_seq the last `limit` before it.
requests {session, engine, limit = 200}     TABLE, the rows of view `requests`, latest last
transfers {engine}                          TABLE kind, tier_from, tier_to, ops, failed, pages, bytes,
  duration_ns, bytes_per_s (|null)
sql {query, limit = 1000, timeout_s = 10}   TABLE + {"types": [str…], "truncated": bool, "elapsed_ms": float}
  One SELECT/WITH/DESCRIBE/SHOW/FROM statement. Errors: sql_refused, sql_error, timeout.

why {session | request, engine}
  {"engine", "epoch", "session", "request", "found": bool, "certain": bool,
   "miss": null | {"seq", "ts", "tokens", "hit_tokens", "missed_tokens", "device_tokens", "host_tokens",
                   "storage_tokens", "reason", "offset": int|null},
   "took": [{"seq", "ts", "tier", "kept": bool, "reason", "policy", "pages", "before_ns", "idle_ns": int|null,
             "last_user", "skipped", "cause"}…]   latest first: the rows that took the missing page away
   "for": null | {"seq", "ts", "kind", "phase", "session", "request"}   the one that needed the room
   "gaps": [{"first", "last"}…]                  lost rows that could hide the answer
   "sentences": [str…]}                          the same for people, first the answer
  found false: the session (request) exists but missed nothing. certain false: some link is unknown.
summary {}
  {"requests": int, "finished": int, "aborted": int, "tokens": int, "computed_tokens": int, "saved_tokens": int,
   "hit_rate": float|null, "hit_tokens": {"device": int, "host": int, "storage": int},
   "misses": {reason: int…}, "evictions": {"tier/reason": int pages…}, "lost_pages": int,
   "transfers": TABLE as in transfers, "canary": {"checks": int, "violations": int, "injected": int},
   "ttft_ns": {"p50": int|null, "p95": int|null}, "actions": int, "gaps": int, "lost_rows": int,
   "engines": [{"engine", "epoch", "seq", "state_hash", "gapless": bool, "trust"}…]}
canary {engine, limit = 100}
  {"checks": int pages, "violations": int, "injected": int,
   "hops": TABLE hop, checks, violations,
   "violations_table": TABLE engine, seq, ts, hop, session, request, node, slot_from, pages, detail}
actions {limit = 100}                       TABLE id, ts, engine, epoch, operator, verb, args, ok, outcome, reason,
  detail, duration_ns; latest last
gaps {}                                     TABLE engine, epoch, first, last, rows, ts, detail

Acting verbs (live only; over a file: error read_only). Each takes engine?, epoch? (default: the latest known)
and operator? (default user@host), and is recorded in `actions` even when it fails. The result is the engine's
own answer plus {"engine", "epoch", "action": id}:
pin {session, tier = "host", ttl_s = 600}   {"outcome", "reason", "pages", "asked", "pending", "lease", "hint", "seq"}
unpin {lease}                               {…}
demote {session}, prefetch {session}, flush {session}    as pin
sweep {}                                    {"checked": pages, "violations": n}
inject {…as the engine's control takes it}  {…}
Errors: unreachable (engine gone or unknown), stale_epoch, unknown_session, unknown_lease, ambiguous, and
whatever code the engine gives.

attach {address}                            {"address"}: also collect from this engine
shutdown {}                                 {"stopping": true}
"""
