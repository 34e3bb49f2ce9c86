"""`python -m runtime.demo`: an engine that serves a written workload through the tiered cache.

Owns: the workload's format, the conversations that come of it, and the process that plays them.
Does not know: kvctl, which starts it and talks to it as to any engine.
May import: the rest of runtime; torch and transformers only once a model is loaded.
"""
