"""State goes device → host → file → host → device and is, bit for bit, what was computed."""

import pyarrow as pa
import pytest
import torch
from toy import LAYOUT, make, serve, state_of

from runtime import errors
from runtime.storage.file import FileStore


def tokens(seed: int, count: int = 16) -> list[int]:
    return [seed * 1000 + i for i in range(count)]


def tiers(cache, session: str) -> tuple[int, int, int]:
    info = cache.core.session(session)
    return info.device_pages, info.host_pages, info.storage_pages


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "store")


def test_a_second_turn_finds_the_first_on_the_device():
    with make() as cache:
        assert serve(cache, "a", tokens(1)) == 0
        assert serve(cache, "a", tokens(1) + tokens(2, 8)) == 16
        cache.core.check()


def test_pages_evicted_from_the_device_load_back_from_the_host():
    with make(device_pages=4, host_pages=16) as cache:
        serve(cache, "a", tokens(1))
        assert cache.drain(10)
        serve(cache, "b", tokens(2))
        assert cache.drain(10)
        assert tiers(cache, "a") == (0, 4, 0)
        assert serve(cache, "a", tokens(1)) == 16
        assert cache.stats()["moved"]["load"] == 4 * LAYOUT.page_bytes


def test_pages_evicted_from_the_host_come_back_from_files(store):
    with make(device_pages=4, host_pages=4, storage=store, storage_pages=16) as cache:
        serve(cache, "a", tokens(1))
        assert cache.drain(10)
        serve(cache, "b", tokens(2))
        assert cache.drain(10)
        assert tiers(cache, "a") == (0, 0, 4)
        assert serve(cache, "a", tokens(1)) == 16
        assert cache.drain(10)
        cache.core.check()
        moved = cache.stats()["moved"]
        assert moved["prefetch"] == moved["load"] == 4 * LAYOUT.page_bytes
        assert cache.guard.violations == 0
        assert cache.guard.checked > 0


@pytest.mark.parametrize("canary", ["all", "partial", "none"])
def test_every_canary_mode_serves_the_same(store, canary):
    options = {"host_pages": 4, "storage": store, "storage_pages": 16, "canary": canary}
    with make(device_pages=4, **options) as cache:
        for _ in range(2):
            for session in range(4):
                serve(cache, f"s{session}", tokens(session))
                assert cache.drain(10)
        assert cache.guard.violations == 0
        assert cache.stats()["moved"]["load"]


def test_matches_are_rounded_to_the_grid():
    with make(device_pages=16) as cache:
        serve(cache, "a", tokens(1, 20))
        assert serve(cache, "a", tokens(1, 20), grid_tokens=16) == 16
        with pytest.raises(errors.ConfigError, match="6"):
            cache.begin("r", "a", tokens(1), grid_tokens=6)


def test_only_whole_pages_are_kept():
    with make() as cache, cache.begin("r", "a", tokens(1, 11)) as request:
        assert request.write(0, state_of(tokens(1, 11))) == 8


def test_the_log_says_how_much_was_read_and_not_how_much_was_found():
    with make() as cache:
        serve(cache, "a", tokens(1))
        with cache.begin("r", "a", tokens(1)) as request:
            assert request.restore() == 16
            assert torch.equal(request.read(10), state_of(tokens(1))[:, :, :, :8])
        rows = pa.ipc.open_stream(cache.core.log().drain().payload).read_all().to_pylist()
    (start,) = [row for row in rows if row["phase"] == "start" and row["request"] == "r"]
    assert (start["kind"], start["tokens"]) == ("request", 8)


def test_when_room_is_short_the_leading_part_is_kept():
    with make(device_pages=4) as cache:
        with cache.begin("r", "a", tokens(1, 24)) as request:
            assert request.write(0, state_of(tokens(1, 24))) == 16
            assert request.write(16, state_of(tokens(1, 24), 16)) == 0
            cache.core.check()
        assert serve(cache, "a", tokens(1, 24)) == 16


def test_what_two_requests_computed_is_kept_once():
    with make(device_pages=16) as cache:
        first = cache.begin("r1", "a", tokens(1))
        second = cache.begin("r2", "b", tokens(1))
        assert first.write(0, state_of(tokens(1))) == 16
        assert second.write(0, state_of(tokens(1))) == 16
        first.finish()
        second.finish()
        device = next(pool for pool in cache.core.pools() if pool.tier == "device")
        assert device.used == 4
        assert serve(cache, "c", tokens(1)) == 16
        assert cache.guard.violations == 0


def test_a_sub_agent_shares_its_parents_prefix():
    with make(device_pages=16) as cache:
        serve(cache, "parent", tokens(1))
        assert serve(cache, "child", tokens(1) + tokens(2, 4), parent="parent") == 16
        assert cache.core.session("child").parent == "parent"
        with pytest.raises(errors.UnknownSession):
            cache.begin("r", "orphan", tokens(3), parent="nobody")


def test_closing_a_session_removes_its_files(store):
    with make(host_pages=8, storage=store, storage_pages=16) as cache:
        serve(cache, "a", tokens(1))
        serve(cache, "b", tokens(2))
        assert cache.drain(10)
        assert len([*store.list()]) == 8
        cache.close_session("a")
        assert len([*store.list()]) == 4
        assert serve(cache, "b", tokens(2)) == 16


def test_files_never_outnumber_the_capacity(store):
    with make(device_pages=4, host_pages=4, storage=store, storage_pages=6) as cache:
        for session in range(8):
            serve(cache, f"s{session}", tokens(session))
            assert cache.drain(10)
            stored = {key for _, _, _, key in cache.core.resident("storage")}
            kept = {*store.list()}
            assert stored <= kept
            assert len(kept) <= 6


def test_what_an_earlier_epoch_stored_is_removed(store):
    with make(host_pages=8, storage=store, storage_pages=16) as cache:
        serve(cache, "a", tokens(1))
        assert cache.drain(10)
    with make(host_pages=8, storage=store, storage_pages=16) as cache:
        assert [*store.list()] == []
        assert serve(cache, "a", tokens(1)) == 0


def test_read_before_restore_is_a_state_of_no_tokens():
    with make() as cache, cache.begin("r", "a", tokens(1)) as request:
        assert request.read().shape == (2, 2, 2, 0, 4)


def test_tokens_may_come_in_any_form():
    with make() as cache:
        serve(cache, "a", tokens(1))
        assert serve(cache, "a", torch.tensor(tokens(1)).tolist()) == 16
        for form in (torch.tensor(tokens(1)), torch.tensor(tokens(1)).numpy()):
            with cache.begin("r", "a", form) as request:
                assert request.restore() == 16
