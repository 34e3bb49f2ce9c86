"""Engines that serve through `runtime.TieredCache`, one module each.

Owns: how an engine's own cache objects become [layers, 2, kv_heads, tokens, head_dim] tensors and
back.
Does not know: how pages move, or who watches. May import: the engine's package, torch, runtime.
"""
