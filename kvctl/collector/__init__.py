"""From the engines' streams to segments and tables.

Owns: one subscriber per engine, the segments (durable before acknowledged), folding every epoch
with `runtime._core.Replica`, and what a restart does: fold the segments again, write what the
tables lack, ask each engine for what came since.
Does not know: who asks questions, or what the rows mean beyond gaps and trust.
May import: telemetry, runtime._core, kvctl.store, kvctl.errors.

The order is always: segment, fsync, fold, tables. A kill between any two loses nothing
acknowledged, because the tables say which record they end at and everything after it is folded
again.
"""
