"""Moves bytes between pools and storage, beside the engine's loop.

A pipeline takes the core's actions on one thread and answers with completions. It checks the
sentinel at its hop and reports what it finds; it decides nothing, calls no command of the core
and never raises into the engine.
"""
