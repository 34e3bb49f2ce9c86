"""`kvctl demo`: a real model serves a real workload, watched and steered as an operator would.

Owns: starting and ending the engine and a private server, the story, the verdict, the summary.
Does not know: models, pools, tensors; the engine is `python -m runtime.demo`, a process of its own.
May import: kvctl.source, kvctl.tui, kvctl.table, kvctl.text, kvctl.errors, rich (lazily).
"""

from kvctl.demo.command import run

__all__ = ["run"]
