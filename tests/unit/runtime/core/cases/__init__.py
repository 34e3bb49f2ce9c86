"""Failures that real caches had in public, played against the core: one file per file of cases.

A test's docstring begins with the number of its case. Where a case cannot arise by construction,
the test is of the construction. After every command the core proves its invariants and a replica
folds the log (scenario.py).

The core owns all of tree, pools, hybrid and session. Of the others it owns what speaks of the tree,
operations, log rows, digests and arguments. What it does not own:

| case | belongs to | tested in |
|---|---|---|
| storage-01, -04, -13 | the file store | unit/runtime/storage |
| storage-24 | the file store, which is cleared when opened today | - |
| storage-03, -05 | stores of peers, with leases and epochs of their own | - |
| storage-08, -11, -21 | names of shards in a store | - |
| storage-14, -23 | ranks: collectives, results intersected before they are numbered | - |
| events-04, -20 | keyframes, for a reader without history | - |
| events-02, -08, -26 | decoders of other engines' streams, and routers | - |
| events-18, -19, -21, -23, -24, -27 | publisher and subscriber | integration/telemetry |
| events-25 | the subscriber: one topic an engine, and heartbeats | unit/telemetry |
| security-03, -04 | sockets | unit/telemetry, integration/telemetry |
| security-08, -09, -10 | identities of media, which adapters make | - |
"""
