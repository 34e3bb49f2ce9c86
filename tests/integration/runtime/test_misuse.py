"""Bad input is refused with what was wrong, and costs nothing: the cache serves on, and `check`
holds."""

import pytest
import torch
from toy import LAYOUT, make, serve, state_of

from runtime import TieredCache, errors
from runtime.layout import Layout
from runtime.storage.file import FileStore

TOKENS = [*range(16)]


@pytest.fixture
def cache():
    with make(host_pages=8) as cache:
        yield cache
        assert serve(cache, "after", [*range(100, 116)]) == 0
        assert serve(cache, "after", [*range(100, 116)]) == 16
        cache.drain(10)
        cache.core.check()
        assert all(pool.fenced == 0 for pool in cache.core.pools())


def test_a_request_ends_once(cache):
    request = cache.begin("r", "a", TOKENS)
    request.finish()
    for use in (
        request.finish,
        request.abort,
        request.restore,
        request.read,
        request.first_token,
        lambda: request.write(0, state_of(TOKENS)),
    ):
        with pytest.raises(errors.RequestEnded, match="'r'"):
            use()


def test_an_exception_aborts_and_releases(cache):
    request = cache.begin("r", "a", TOKENS)
    with pytest.raises(errors.LayoutError), request:
        request.write(0, None)
    with pytest.raises(errors.UnknownReceipt):
        cache.core.release(cache.now(), request.match.receipt)
    assert cache.stats()["requests_open"] == 0


def test_leaving_the_block_after_finish_releases_nothing_twice(cache):
    with cache.begin("r", "a", TOKENS) as request:
        request.finish()
    with cache.begin("r", "a", TOKENS) as request:
        request.abort("client went away")


@pytest.mark.parametrize(
    "state",
    [
        state_of(TOKENS).double(),
        state_of(TOKENS)[:1],
        state_of(TOKENS)[..., :3],
        state_of(TOKENS).flatten(),
        None,
    ],
)
def test_a_state_that_does_not_fit_is_refused_before_anything_is_reserved(cache, state):
    with cache.begin("r", "a", TOKENS) as request:
        with pytest.raises(errors.LayoutError):
            request.write(0, state)
        assert all(pool.used == pool.fenced == 0 for pool in cache.core.pools())


@pytest.mark.parametrize("start", [-4, 1, 4])
def test_a_stretch_outside_the_tokens_or_off_the_pages_is_refused(cache, start):
    with cache.begin("r", "a", TOKENS) as request, pytest.raises(errors.LayoutError):
        request.write(start, state_of(TOKENS))


def test_a_hole_before_the_written_pages_is_refused_and_frees_the_reservation(cache):
    with cache.begin("r", "a", TOKENS) as request:
        with pytest.raises(errors.BadArgument, match="locked path"):
            request.write(8, state_of(TOKENS, 8))
        assert all(pool.used == pool.fenced == 0 for pool in cache.core.pools())


@pytest.mark.parametrize("tokens", [[-1], [1 << 32], ["a"], None, [1.5], torch.zeros(2, 2)])
def test_tokens_that_are_none_are_refused(cache, tokens):
    with pytest.raises(errors.BadArgument):
        cache.begin("r", "a", tokens)
    assert cache.stats()["requests_open"] == 0


def test_an_unknown_session_is_refused(cache):
    with pytest.raises(errors.UnknownSession, match="nobody"):
        cache.close_session("nobody")
    with pytest.raises(errors.UnknownSession, match="nobody"):
        cache.inject("device", "nobody")


def test_an_endpoint_that_is_taken_is_said():
    with make(publish="tcp://127.0.0.1:*", replay="tcp://127.0.0.1:*") as first:
        for taken in ("publish", "replay"):
            at = {"publish": "tcp://127.0.0.1:*", "replay": "tcp://127.0.0.1:*"}
            with pytest.raises(errors.ControlError, match="in use"):
                make(**at | {taken: first.endpoints[taken]})


def test_a_tool_call_starts_and_ends_and_does_nothing_else(cache):
    with pytest.raises(errors.BadArgument, match="commit"):
        cache.tool("a", "commit")


def test_nothing_to_damage_is_said(cache):
    serve(cache, "a", TOKENS)
    with pytest.raises(errors.NotResident, match="storage"):
        cache.inject("storage", "a")


def test_a_closed_cache_refuses_and_closing_again_is_nothing():
    cache = make()
    request = cache.begin("r", "a", TOKENS)
    cache.close()
    cache.close()
    with pytest.raises(errors.RequestEnded):
        request.finish()
    for use in (cache.step, lambda: cache.begin("r", "a", TOKENS), cache.sweep):
        with pytest.raises(errors.CacheClosed, match="'toy'"):
            use()
    cache.core.check()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"canary": "some"}, errors.ConfigError, "'some'"),
        ({"storage_pages": 4}, errors.ConfigError, "storage"),
        ({"device_pages": -1}, errors.ConfigError, "device_pages is -1"),
        ({"host_pages": 1.5}, errors.ConfigError, "host_pages is 1.5"),
        ({"storage": FileStore("unused")}, errors.ConfigError, "0 pages"),
        (
            {"storage": FileStore("unused"), "storage_pages": 4},
            errors.ConfigError,
            "host_pages",
        ),
        ({"replay": "tcp://127.0.0.1:*"}, errors.ConfigError, "replay"),
        *(
            (
                {"publish": "tcp://127.0.0.1:*", which: "tcp://0.0.0.0:*"},
                errors.ControlError,
                "0.0.0.0",
            )
            for which in ("publish", "replay", "control")
        ),
        ({"device_pages": 0}, errors.BadArgument, "device"),
    ],
)
def test_a_cache_that_cannot_be_built_says_why(options, error, said):
    with pytest.raises(error, match=said):
        make(**options)


def test_two_caches_do_not_share_a_store_unknowingly(tmp_path):
    options = {"host_pages": 4, "storage_pages": 4}
    refused = pytest.raises(errors.StorageLocked, match="in use by process")
    with make(storage=FileStore(tmp_path), **options), refused:
        make(storage=FileStore(tmp_path), **options)
    with make(storage=FileStore(tmp_path), **options) as cache:
        serve(cache, "a", TOKENS)


def test_a_cache_that_fails_to_start_lets_go_of_its_store(tmp_path):
    options = {"host_pages": 4, "storage_pages": 4}
    with pytest.raises(errors.ControlError):
        make(storage=FileStore(tmp_path), control="tcp://0.0.0.0:*", **options)
    make(storage=FileStore(tmp_path), **options).close()


def test_digests_do_not_confirm_a_guess_at_the_text_unless_asked_to():
    def first_key(**options):
        with make(**options) as cache:
            serve(cache, "a", TOKENS)
            return cache.guard.copies("device", "a")[0].key

    assert first_key() != first_key()
    assert first_key(secret=b"") == first_key(secret=b"")


def test_pages_of_another_layout_never_meet():
    """storage-16: the layout is part of every key."""
    keys = []
    for layout in (LAYOUT, Layout(2, 2, 4, 4, "bfloat16"), Layout(4, 1, 4, 4, "float32")):
        options = {"engine": "e", "namespace": "n", "device_pages": 4, "secret": b""}
        with TieredCache(layout, **options) as cache, cache.begin("r", "a", TOKENS) as request:
            request.write(0, state_of(TOKENS, layout=layout))
            keys.append(cache.core.keys(request.match.receipt)[0])
    assert len({*keys}) == 3
