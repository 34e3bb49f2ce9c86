"""Answers through the cache are exactly the answers without one, whatever happens to the pages."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime import FileStore, TieredCache, models

adapter = pytest.importorskip("runtime.adapters.transformers")

EXAMPLE = Path(__file__).parents[3] / "examples" / "agents"
GRID = adapter.GRID_TOKENS
PAGE = 16
NEW = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return models.load("tiny", EXAMPLE, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def text(model):
    """Tokens of real text, enough for several prompts."""
    return model.encode("\n".join(file.read_text() for file in sorted(EXAMPLE.rglob("*.md"))))


@pytest.fixture
def serving(model, tmp_path):
    @contextmanager
    def serve(device=64, host=0, storage=0, **options):
        with TieredCache(
            adapter.layout_of(model.network.config, PAGE),
            engine="test",
            namespace="tiny",
            device_pages=device,
            host_pages=host,
            storage=FileStore(tmp_path / "store") if storage else None,
            storage_pages=storage,
        ) as cache:
            yield (
                cache,
                adapter.TransformersEngine(model.network, cache, stop=model.stop_token, **options),
            )
            cache.core.check()

    return serve


def plain(model, prompt):
    return adapter.generate_plain(model.network, prompt, NEW, stop=model.stop_token).tokens


def test_answers_are_equal_while_pages_wander_through_all_tiers(model, text, serving):
    prompts = [text[start : start + 300] for start in (0, 1000, 2000, 3000, 0, 1000, 0)]
    with serving(device=24, host=32, storage=200) as (cache, engine):
        for number, prompt in enumerate(prompts):
            done = engine.generate(f"r{number}", f"s{number}", prompt, NEW)
            cache.drain(10)
            assert done.tokens == plain(model, prompt)
        moved = cache.stats()["moved"]
        assert all(moved[kind] > 0 for kind in ("backup", "offload", "prefetch", "load"))


def test_a_conversation_hits_what_it_said_before(model, text, serving):
    with serving() as (_, engine):
        prompt, before = text[:200], 0
        for turn in range(4):
            done = engine.generate(f"r{turn}", "s", prompt, NEW)
            assert done.tokens == plain(model, prompt)
            assert done.hit_tokens == before // GRID * GRID
            before = len(prompt)
            prompt = prompt + done.tokens + text[500 + 90 * turn :][:90]


@pytest.mark.parametrize("length", [1, GRID - 1, GRID, GRID + 1, 3 * GRID - 1, 3 * GRID])
def test_a_prompt_asked_again_computes_at_least_its_last_token(model, text, serving, length):
    prompt = text[:length]
    with serving() as (_, engine):
        assert engine.generate("r1", "s", prompt, NEW).hit_tokens == 0
        again = engine.generate("r2", "s", prompt, NEW)
    assert again.hit_tokens == (length - 1) // GRID * GRID
    assert again.tokens == plain(model, prompt)


def test_only_whole_prefilled_chunks_are_stored(text, serving):
    """Neither the partial chunk at the prompt's end nor a decoded token."""
    with serving() as (cache, engine):
        done = engine.generate("r1", "s", text[: GRID + PAGE + 1], NEW)
        assert len(done.tokens) == NEW
        assert cache.core.session("s").pages == GRID // PAGE
        with cache.begin("r2", "s", text[: GRID + PAGE + 1] + done.tokens) as held:
            assert held.match.pages == GRID // PAGE


def test_decoded_pages_are_stored_when_asked_for_and_give_the_same_tokens(model, text, serving):
    prompt = text[: 2 * GRID - NEW + 1]
    with serving(keep_decoded=True) as (cache, engine):
        said = engine.generate("r0", "s", prompt, NEW).tokens
        assert cache.core.session("s").pages == 2 * GRID // PAGE
        following = prompt + said + text[5000:5020]
        done = engine.generate("r1", "s", following, NEW)
    assert done.hit_tokens == 2 * GRID
    assert done.tokens == plain(model, following)


def test_an_answer_ends_at_the_stop_token(model, text):
    full = adapter.generate_plain(model.network, text[:100], 16, stop=-1).tokens
    ended = adapter.generate_plain(model.network, text[:100], 16, stop=full[3]).tokens
    assert ended == full[: full.index(full[3])]


def test_a_request_too_large_for_the_device_still_gets_its_answer(model, text, serving):
    prompt = text[:500]
    with serving(device=8, host=8) as (_, engine):
        for number in range(2):
            done = engine.generate(f"r{number}", "s", prompt, NEW)
            assert done.tokens == plain(model, prompt)


@pytest.mark.parametrize(
    ("hop", "host", "others"), [("device", 24, 0), ("host", 64, 1), ("storage", 24, 2)]
)
def test_a_damaged_page_is_found_and_computed_again(model, text, serving, hop, host, others):
    """`others` ask in between, so that the page's best copy is the one in the damaged tier."""
    prompt = text[:300]
    with serving(device=24, host=host, storage=100) as (cache, engine):
        engine.generate("r1", "s", prompt, NEW)
        cache.drain(10)
        for number in range(others):
            engine.generate(f"o{number}", f"o{number}", text[1000 * (number + 2) :][:300], NEW)
            cache.drain(10)
        cache.inject(hop, "s")
        again = engine.generate("r2", "s", prompt, NEW)
        assert again.tokens == plain(model, prompt)
        assert again.hit_tokens < len(prompt) // GRID * GRID
        assert cache.stats()["violations"] == 1
        cache.drain(10)
        assert engine.generate("r3", "s", prompt, NEW).hit_tokens == len(prompt) // GRID * GRID
