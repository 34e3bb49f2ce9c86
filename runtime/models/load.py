"""Load a model by name, preparing its folder the first time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import ModelError
from runtime.models import smollm2, tiny
from runtime.models.folder import built

NAMES = ("smollm2", "tiny")


@dataclass(frozen=True)
class Model:
    """A causal language model in float32 on the CPU, in evaluation mode."""

    name: str
    revision: str
    """Changes whenever weights or tokenizer do; part of the cache's namespace."""
    network: Any
    """transformers.LlamaForCausalLM"""
    tokenizer: Any
    """transformers tokenizer with <|im_start|> and <|im_end|> as special tokens"""

    @property
    def stop_token(self) -> int:
        return self.tokenizer.eos_token_id

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def decode(self, tokens: list[int]) -> str:
        return self.tokenizer.decode(tokens)


def default_folder() -> Path:
    """$KVCTL_MODELS, else kvctl/models in the user's cache folder."""
    if chosen := os.environ.get("KVCTL_MODELS"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvctl" / "models"


def prepare(name: str, texts: Path, folder: Path | None = None) -> Path:
    """Make the model's folder if it is not there yet, and return it.

    texts: the workload's folder; `tiny` learns its vocabulary from the files in it.
    """
    # Read by transformers when it is imported: nothing is downloaded, and no bars on stderr.
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")
    folder = folder or default_folder()
    if name == "smollm2":
        return built(folder / f"smollm2-{smollm2.revision()}", smollm2.build)
    if name == "tiny":
        corpus = tiny.corpus(texts)
        return built(folder / f"tiny-{tiny.revision(corpus)}", lambda at: tiny.build(at, corpus))
    raise ModelError(f"no model named {name!r}; there are: {', '.join(NAMES)}")


def config(path: Path) -> Any:
    """The transformers.LlamaConfig of a prepared folder: geometry without weights."""
    from transformers import LlamaConfig

    return LlamaConfig.from_pretrained(path)


def load(name: str, texts: Path, folder: Path | None = None) -> Model:
    """Load a model ready to run; see `prepare` for the arguments."""
    path = prepare(name, texts, folder)

    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

    network = LlamaForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(path)
    return Model(name, path.name.removeprefix(f"{name}-"), network, tokenizer)
