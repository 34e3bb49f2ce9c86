"""The operator's side: collects the event logs of engines, keeps them, answers questions, passes
commands on.

Owns: the collector, the store (DuckDB), the server and its API, the command line, the terminal UI.
Does not know: tensors, pools, engines' internals. It meets an engine only through its log and its
control endpoint, and starts engine-side programs as `python -m runtime.…`.
May import: canary, telemetry, runtime._core. Never another module of runtime.
Cheap to import: duckdb, pyarrow, textual and rich are loaded by what uses them.
"""

__kvctl__ = "0.1.0"
__version__ = __kvctl__
