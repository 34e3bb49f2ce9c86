"""Faults on the way: at every hop they are found and named, and the answer is computed again."""

import errno
import json
import os
import random
import shutil
import subprocess
import threading
from collections import Counter

import pyarrow as pa
import pytest
import torch
from toy import make, serve, state_of

from runtime import errors
from runtime._core import Replica
from runtime.storage.file import FileStore
from runtime.storage.header import HEADER_BYTES

A, B, C = [*range(16)], [*range(100, 116)], [*range(200, 216)]


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "store")


def rows(cache) -> list[dict]:
    """The whole log so far. It folds, too: what these tests do to the bytes leaves the log true."""
    log, replica, rows = cache.core.log(), Replica(), []
    while message := log.drain():
        replica.fold(message.payload)
        rows += pa.ipc.open_stream(message.payload).read_all().to_pylist()
    assert replica.state_hash() == cache.core.state_hash()
    return rows


def violations(rows: list[dict]) -> list[dict]:
    return [row for row in rows if (row["kind"], row["phase"]) == ("canary", "violation")]


def bring_down(cache, tier: str) -> None:
    """Leave session a's pages in `tier` and in no faster one."""
    serve(cache, "a", A)
    assert cache.drain(10)
    for session, tokens in {"device": [], "host": [("b", B)], "storage": [("b", B), ("c", C)]}[
        tier
    ]:
        serve(cache, session, tokens)
        assert cache.drain(10)


SIZES = {
    "device": {"device_pages": 8},
    "host": {"device_pages": 4, "host_pages": 8},
    "storage": {"device_pages": 4, "host_pages": 4, "storage_pages": 32},
}
FOUND_AT = {"device": "read", "host": "load", "storage": "prefetch"}


@pytest.mark.parametrize("tier", ["device", "host", "storage"])
def test_a_flipped_byte_is_found_named_and_computed_again(store, tier):
    """canary-03, canary-05: one violation, with hop, page and session; none in the clean part."""
    with make(**SIZES[tier], storage=store if tier == "storage" else None) as cache:
        bring_down(cache, tier)
        assert cache.guard.violations == 0
        flipped = cache.inject(tier, "a")
        assert serve(cache, "a", A) == 12
        log = rows(cache)
        [row] = violations(log)
        assert (row["reason"], row["session"], row["tier_from"]) == (FOUND_AT[tier], "a", tier)
        detail = json.loads(row["detail"])
        assert detail["position"] == flipped["position"] == 3
        assert detail["slot"] == flipped["slot"]
        assert detail["what"] == (["checksum"] if tier == "storage" else ["content"])
        assert cache.drain(10)
        assert cache.sweep()[tier]["damaged"] == 0
        # On the device, the request that found the damage held the page; the next one heals it.
        assert serve(cache, "a", A) == (12 if tier == "device" else 16)
        assert serve(cache, "a", A) == 16
        assert cache.guard.violations == 1
        cache.core.check()
        [injected] = [r for r in log if (r["kind"], r["phase"]) == ("canary", "inject")]
        assert injected["session"] == "a"


def test_checks_are_counted_in_rows():
    with make(**SIZES["host"]) as cache:
        bring_down(cache, "host")
        serve(cache, "a", A)
        counts: Counter[str] = Counter()
        for row in rows(cache):
            if (row["kind"], row["phase"]) == ("canary", "check"):
                counts[row["reason"]] += row["pages"]
        assert counts["backup"] >= 8
        assert counts["load"] == 4
        assert counts["read"] >= 4
        assert sum(counts.values()) == cache.guard.checked


def test_damage_between_restore_and_read_is_not_served():
    with make() as cache:
        serve(cache, "a", A)
        with cache.begin("r", "a", A) as request:
            assert request.restore() == 16
            cache.inject("device", "a")
            with pytest.raises(errors.DamagedPage, match="'r'"):
                request.read()
            assert request.restore() == 12
            assert torch.equal(request.read(), state_of(A)[:, :, :, :12])
        assert serve(cache, "a", A) == 12
        assert serve(cache, "a", A) == 16


def test_damage_before_a_backup_is_found_by_the_backup():
    """The damaged page is not written down: no tier below ever has it."""
    with make(device_pages=8, host_pages=8, write_through=False) as cache:
        serve(cache, "a", A)
        cache.inject("device", "a")
        cache.core.pin(cache.now(), "a", "host", 10**12, "test")
        assert cache.drain(10)
        [row] = violations(rows(cache))
        assert (row["reason"], row["tier_from"]) == ("backup", "device")
        info = cache.core.session("a")
        assert (info.device_pages, info.host_pages) == (3, 3)
        assert serve(cache, "a", A) == 12


def test_damage_on_the_host_is_found_by_the_offload(store, monkeypatch):
    with make(**SIZES["storage"], storage=store) as cache:
        offload = cache._storage._offload

        def damage_first(done):
            cache._storage._host.flip(done.action.runs[0][1], 100)
            offload(done)

        monkeypatch.setattr(cache._storage, "_offload", damage_first)
        serve(cache, "a", A)
        assert cache.drain(10)
        found = violations(rows(cache))
        assert {(row["reason"], row["tier_from"]) for row in found} == {("offload", "host")}
        info = cache.core.session("a")
        assert info.host_pages == info.storage_pages == 4 - len(found)
        assert serve(cache, "a", A) == 16


def test_a_sweep_finds_damage_that_lies_still():
    """canary-02: every copy is visited once, no lock is taken."""
    with make(**SIZES["host"]) as cache:
        serve(cache, "a", A)
        assert cache.drain(10)
        cache.inject("host", "a")
        clean, damaged = {"checked": 4, "damaged": 0}, {"checked": 4, "damaged": 1}
        assert cache.sweep() == {"device": clean, "host": damaged}
        assert cache.sweep() == {"device": clean, "host": {"checked": 3, "damaged": 0}}
        [row] = violations(rows(cache))
        assert (row["reason"], row["tier_from"]) == ("sweep", "host")
        cache.core.check()


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda file, _: _flip(file, HEADER_BYTES + 100), "checksum"),
        (lambda file, _: _flip(file, 40), "header"),
        (lambda file, _: os.truncate(file, file.stat().st_size - 1), "length"),
        (lambda file, other: shutil.copy(other, file), "key"),
        (lambda file, _: _flip(file, 8), "version"),
    ],
    ids=["flipped", "header", "truncated", "swapped", "old-version"],
)
def test_a_damaged_file_is_a_miss_with_its_reason(store, harm, reason):
    """canary-01, storage-19"""
    with make(**SIZES["storage"], storage=store) as cache:
        bring_down(cache, "storage")
        keys = {row[2]: row[3] for row in cache.core.resident("storage") if row[3] in path(cache)}
        files = [file_of(store, keys[position]) for position in range(4)]
        harm(files[2], files[0])
        assert serve(cache, "a", A) == 8
        [row] = violations(rows(cache))
        assert json.loads(row["detail"])["what"] == [reason]
        assert row["reason"] == "prefetch"
        assert cache.drain(10)
        assert serve(cache, "a", A) == 16
        cache.core.check()


def path(cache) -> set[bytes]:
    return {copy.key for copy in cache.guard.copies("storage", "a")}


def file_of(store, key: bytes):
    return store.directory / key.hex()[:2] / f"{key.hex()}.page"


def _flip(file, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(data)


def test_a_file_that_is_gone_is_a_miss_and_no_violation(store):
    with make(**SIZES["storage"], storage=store) as cache:
        bring_down(cache, "storage")
        for key in path(cache):
            file_of(store, key).unlink()
        assert serve(cache, "a", A) == 0
        assert cache.guard.violations == 0
        assert cache.stats()["failures"]["missing"] == 4


def test_a_store_whose_directory_vanished_costs_hits_only(store):
    with make(**SIZES["storage"], storage=store) as cache:
        bring_down(cache, "storage")
        shutil.rmtree(store.directory)
        assert serve(cache, "a", A) == 0
        assert serve(cache, "d", [*range(300, 316)]) == 0
        assert cache.drain(10)
        assert cache.stats()["failures"]["io"] >= 4
        cache.core.check()


@pytest.mark.parametrize(
    ("error", "reason"), [(errno.ENOSPC, "no_space"), (errno.EACCES, "denied"), (errno.EIO, "io")]
)
def test_a_disk_that_refuses_costs_offloads_and_nothing_else(store, monkeypatch, error, reason):
    def refuse(*_):
        raise OSError(error, os.strerror(error))

    with make(**SIZES["storage"], storage=store) as cache:
        monkeypatch.setattr(os, "fsync", refuse)
        serve(cache, "a", A)
        assert cache.drain(10)
        assert cache.core.session("a").storage_pages == 0
        assert cache.stats()["failures"][reason] >= 4
        assert serve(cache, "a", A) == 16
        monkeypatch.undo()
        serve(cache, "b", B)
        assert cache.drain(10)
        assert cache.core.session("b").storage_pages == 4
        cache.core.check()


def test_an_engine_serves_on_a_disk_that_is_really_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        sizes = {"device_pages": 4, "host_pages": 4, "storage_pages": 64}
        with make(**sizes, storage=FileStore(disk)) as cache:
            for session in range(12):
                serve(cache, f"s{session}", [session * 100 + i for i in range(16)])
                assert cache.drain(10)
            assert cache.stats()["failures"]["no_space"] > 0
            stored = cache.core.resident("storage")
            assert stored
            assert cache.sweep()["storage"] == {"checked": len(stored), "damaged": 0}
            cache.core.check()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, SystemExit, KeyboardInterrupt])
def test_whatever_a_worker_meets_it_answers_and_goes_on(monkeypatch, error):
    with make(**SIZES["host"]) as cache:
        broken = threading.Event()
        broken.set()
        move = type(cache._pipelines["backup"])._move

        def stumble(*args):
            if broken.is_set():
                raise error("stumbled")
            move(*args)

        monkeypatch.setattr(type(cache._pipelines["backup"]), "_move", stumble)
        serve(cache, "a", A)
        assert cache.drain(10)
        assert cache.core.session("a").host_pages == 0
        assert cache.stats()["failures"] == {error.__name__: 4}
        broken.clear()
        serve(cache, "b", B)
        assert cache.drain(10)
        assert cache.core.session("b").host_pages == 4
        cache.core.check()


def test_a_slow_worker_holds_up_no_step_and_every_move_is_answered(monkeypatch):
    """Backpressure: what the queue does not take waits; nothing is lost, nothing blocks."""
    with make(device_pages=256, host_pages=256) as cache:
        gate = threading.Event()
        move = type(cache._pipelines["backup"])._move

        def held(*args):
            gate.wait()
            move(*args)

        monkeypatch.setattr(type(cache._pipelines["backup"]), "_move", held)
        for session in range(40):
            serve(cache, f"s{session}", [session * 100 + i for i in range(16)])
        assert cache.stats()["moves_open"] == 40
        assert not cache.drain(0.01)
        gate.set()
        assert cache.drain(10)
        assert len(cache.core.resident("host")) == 160
        assert cache.sweep()["host"] == {"checked": 160, "damaged": 0}


def test_a_restore_that_takes_too_long_gives_what_is_there(monkeypatch):
    with make(**SIZES["host"]) as cache:
        bring_down(cache, "host")
        gate = threading.Event()
        move = type(cache._pipelines["load"])._move

        def held(*args):
            gate.wait()
            move(*args)

        monkeypatch.setattr(type(cache._pipelines["load"]), "_move", held)
        with cache.begin("r", "a", A) as request:
            assert request.match.pages == 4
            assert request.restore(timeout_s=0.05) == 0
            request.write(0, state_of(A))
        gate.set()
        assert cache.drain(10)
        cache.core.check()
        assert serve(cache, "a", A) == 16
        assert cache.guard.violations == 0


def test_close_answers_moves_that_will_not_happen(monkeypatch, store):
    cache = make(device_pages=256, host_pages=256, storage_pages=256, storage=store)
    for session in range(40):
        serve(cache, f"s{session}", [session * 100 + i for i in range(16)])
    cache.close()
    cache.core.check()
    assert all(pool.fenced == 0 for pool in cache.core.pools())


def test_random_flips_on_every_tier_are_never_served(store):
    """What `serve` reads is compared with what the model computes, each time."""
    draw = random.Random(5)
    sizes = {"device_pages": 8, "host_pages": 8, "storage_pages": 32}
    with make(**sizes, storage=store) as cache:
        injected = 0
        for turn in range(120):
            session = draw.randrange(5)
            serve(cache, f"s{session}", [session * 100 + i for i in range(4 * draw.randint(1, 5))])
            if draw.random() < 0.5:
                cache.drain(10)
            if turn % 2:
                try:
                    cache.inject(draw.choice(["device", "host", "storage"]), f"s{session}")
                    injected += 1
                except errors.NotResident:
                    pass
        cache.drain(10)
        cache.sweep()
        assert injected > 20
        assert cache.guard.violations > 0
        assert all(count["damaged"] == 0 for count in cache.sweep().values())
        cache.core.check()
