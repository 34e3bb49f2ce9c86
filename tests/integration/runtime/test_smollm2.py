"""The trained model of the demo: what it says is sense, and the same with the cache as without."""

import os
from pathlib import Path

import pytest

from runtime import TieredCache, models
from runtime.adapters.transformers import GRID_TOKENS, TransformersEngine, generate_plain, layout_of

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "agents"
FOLDER = Path(os.environ.get("KVCTL_MODELS", ROOT / "build" / "models"))
NEW = 8


@pytest.fixture(scope="module")
def model():
    return models.load("smollm2", EXAMPLE, FOLDER)


def test_a_trained_model_answers_from_the_cache_as_it_does_without(model):
    system = (EXAMPLE / "prompts" / "agent.md").read_text()[:400]
    talk = model.encode(f"<|im_start|>system\n{system}<|im_end|>\n")
    before = 0
    with TieredCache(
        layout_of(model.network.config, 16), engine="test", namespace="smollm2", device_pages=32
    ) as cache:
        engine = TransformersEngine(model.network, cache, stop=model.stop_token)
        for turn, country in enumerate(("France", "Italy")):
            question = f"What is the capital of {country}?"
            talk += model.encode(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")
            done = engine.generate(f"r{turn}", "s", talk, NEW)
            plain = generate_plain(model.network, talk, NEW, stop=model.stop_token)
            assert done.tokens == plain.tokens
            assert done.hit_tokens == before // GRID_TOKENS * GRID_TOKENS
            assert ("Paris", "Rome")[turn] in model.decode(done.tokens)
            before = len(talk)
            talk += [*done.tokens, model.stop_token, *model.encode("\n")]
    assert done.hit_tokens > 0
