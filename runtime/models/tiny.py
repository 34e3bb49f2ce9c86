"""A Llama of 4 M parameters with random weights: wrong answers, quickly, and always the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

from runtime.errors import ModelError

SEED = 20
VOCABULARY = 4096
"""At most; these texts have fewer pairs that occur twice."""
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def corpus(texts: Path) -> list[str]:
    """The texts of a workload's folder, in a fixed order."""
    files = sorted(file for file in texts.rglob("*") if file.suffix in {".md", ".toml", ".diff"})
    if not files:
        raise ModelError(f"no workload texts in {texts} to make the tiny model's vocabulary from")
    return [file.read_text(encoding="utf-8") for file in files]


def revision(corpus: list[str]) -> str:
    """Changes with the texts and with this file: a folder made by another recipe is not used."""
    recipe = Path(__file__).read_text(encoding="utf-8")
    return hashlib.sha256("\0".join([recipe, *corpus]).encode()).hexdigest()[:12]


def build(folder: Path, corpus: list[str]) -> None:
    """Write config, weights and a byte-level BPE tokenizer trained on `corpus` to `folder`."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        corpus, vocab_size=VOCABULARY, special_tokens=list(SPECIAL), show_progress=False
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, eos_token="<|im_end|>", unk_token="<|endoftext|>"
    )
    tokenizer.save_pretrained(folder)

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=6,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=32,
        max_position_embeddings=2048,
        # Wider than a trained model's, so that attention is not flat and a wrong page shows.
        initializer_range=0.08,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network = LlamaForCausalLM(config)
    network.save_pretrained(folder)
