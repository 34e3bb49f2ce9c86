import errno
import os
import subprocess
import sys
import threading

import pytest

from runtime.errors import StorageError, StorageLocked
from runtime.storage.file import FileStore

HEADER, PAGE = 16, 1000


def key(n: int) -> bytes:
    return n.to_bytes(32, "big")


def header(n: int) -> bytes:
    return n.to_bytes(HEADER, "big")


def page(n: int) -> memoryview:
    return memoryview(bytes([n % 256]) * PAGE)


def put(store: FileStore, *numbers: int) -> list[str]:
    return store.put(
        [key(n) for n in numbers], [header(n) for n in numbers], [page(n) for n in numbers]
    )


def get(store: FileStore, *numbers: int) -> list[tuple[str, bytes, bytes]]:
    heads = [bytearray(HEADER) for _ in numbers]
    pages = [memoryview(bytearray(PAGE)) for _ in numbers]
    failures = store.get([key(n) for n in numbers], heads, pages)
    return [(f, bytes(h), bytes(p)) for f, h, p in zip(failures, heads, pages, strict=True)]


def whole(n: int) -> tuple[str, bytes, bytes]:
    return ("", header(n), bytes(page(n)))


@pytest.fixture
def store(tmp_path):
    store = FileStore(tmp_path / "store")
    store.open()
    yield store
    store.close()


def test_objects_come_back_as_they_were_put(store):
    assert put(store, 1, 2, 3) == ["", "", ""]
    assert get(store, 3, 1) == [whole(3), whole(1)]
    assert store.exists([key(1), key(9)]) == [True, False]
    assert sorted(store.list()) == [key(1), key(2), key(3)]


def test_one_missing_key_fails_alone(store):
    put(store, 1, 3)
    assert [result[0] for result in get(store, 1, 2, 3)] == ["", "missing", ""]


def test_removing_is_final_and_removing_nothing_succeeds(store):
    put(store, 1, 2)
    assert store.remove([key(1), key(7)]) == ["", ""]
    assert store.exists([key(1), key(2)]) == [False, True]
    store.clear()
    assert list(store.list()) == []


def test_putting_again_replaces(store):
    put(store, 1)
    store.put([key(1)], [header(5)], [page(6)])
    assert get(store, 1) == [("", header(5), bytes(page(6)))]


def test_an_object_of_another_length_is_refused(store):
    put(store, 1)
    path = next(store.directory.glob("??/*.page"))
    os.truncate(path, path.stat().st_size - 1)
    assert get(store, 1)[0][0] == "length"


def test_objects_outlive_the_store_object(store):
    put(store, 1)
    store.close()
    again = FileStore(store.directory)
    again.open()
    assert get(again, 1) == [whole(1)]
    again.close()


def test_a_full_disk_fails_the_page_and_leaves_no_part_of_it(store, monkeypatch):
    """storage-13: what could not be written whole is not there."""
    put(store, 1)
    real, written = os.write, 0

    def write(file, data):
        nonlocal written
        if written > HEADER:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = real(file, bytes(data)[:100])
        written += count
        return count

    monkeypatch.setattr(os, "write", write)
    assert put(store, 2, 3) == ["no_space", "no_space"]
    monkeypatch.undo()
    assert [r[0] for r in get(store, 1, 2, 3)] == ["", "missing", "missing"]
    assert [*(store.directory / "tmp").iterdir()] == []
    assert store.stats()["failed_no_space"] == 2
    assert put(store, 2) == [""]


def test_a_real_full_disk_fails_pages_and_keeps_those_before(tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount], capture_output=True
    )
    if made.returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        store = FileStore(mount)
        store.open()
        results = put(store, *range(1, 40))
        fitted = results.count("")
        assert 0 < fitted < 39
        assert set(results[fitted:]) == {"no_space"}
        assert get(store, *range(1, fitted + 1)) == [whole(n) for n in range(1, fitted + 1)]
        store.remove([key(1)])
        assert put(store, 39) == [""]
        store.close()
    finally:
        subprocess.run(["umount", mount], check=True)


def test_short_writes_are_continued(store, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, bytes(data)[:7]))
    assert put(store, 1) == [""]
    monkeypatch.undo()
    assert get(store, 1) == [whole(1)]


def test_a_vanished_directory_fails_keys_not_calls(store):
    put(store, 1)
    os.rename(store.directory, store.directory.with_name("elsewhere"))
    assert put(store, 2) == ["io"]
    assert get(store, 1)[0][0] == "missing"
    assert store.remove([key(1)]) == [""]
    assert list(store.list()) == []


def test_a_directory_where_an_object_should_be_fails_that_key(store):
    path = store.directory / key(1).hex()[:2] / f"{key(1).hex()}.page"
    path.mkdir(parents=True)
    assert put(store, 1, 2) == ["io", ""]
    assert [r[0] for r in get(store, 1, 2)] == ["length", ""]


def test_permission_denied_is_named(store, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    assert put(store, 1) == ["denied"]
    assert [*(store.directory / "tmp").iterdir()] == []


def test_a_second_engine_is_refused_and_told_who_has_it(store):
    script = (
        "import sys; from runtime.storage.file import FileStore\n"
        f"FileStore({str(store.directory)!r}).open()"
    )
    second = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert second.returncode == 1
    assert f"StorageLocked: {store.directory} is in use by process {os.getpid()}" in second.stderr
    with pytest.raises(StorageLocked):
        store.open()
    other = FileStore(store.directory)
    with pytest.raises(StorageLocked):
        other.open()


def test_a_killed_holder_leaves_the_store_free_and_its_fragments_are_swept(tmp_path):
    """storage-13, storage-22: a crash in the middle of a write."""
    directory = tmp_path / "store"
    script = (
        "import os; from runtime.storage.file import FileStore\n"
        f"store = FileStore({str(directory)!r}); store.open()\n"
        "os.replace = lambda *_: os.kill(os.getpid(), 9)\n"
        "store.put([bytes(32)], [b'h'], [memoryview(b'page')])"
    )
    killed = subprocess.run([sys.executable, "-c", script])
    assert killed.returncode == -9
    assert len([*(directory / "tmp").iterdir()]) == 1
    store = FileStore(directory)
    store.open()
    assert [*(directory / "tmp").iterdir()] == []
    assert store.exists([bytes(32)]) == [False]
    store.close()


def test_a_directory_that_cannot_be_made_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"Cannot use .* as a store"):
        FileStore(tmp_path / "file" / "store").open()


def test_a_closed_store_fails_keys(store):
    put(store, 1)
    store.close()
    assert put(store, 2) == ["closed"]
    assert get(store, 1)[0][0] == "closed"


def test_files_that_are_not_objects_are_neither_listed_nor_cleared(store):
    put(store, 1)
    strange = store.directory / "ab" / "notes.page"
    strange.parent.mkdir(exist_ok=True)
    strange.write_text("mine")
    store.clear()
    assert list(store.list()) == []
    assert strange.read_text() == "mine"


def test_readers_see_whole_objects_while_writers_replace_them(store):
    """storage-19: every read is one version or another, none is torn or missing."""
    put(store, 1)
    stop = threading.Event()

    def rewrite():
        n = 0
        while not stop.is_set():
            n += 1
            store.put([key(1)], [header(n)], [page(n)])

    writers = [threading.Thread(target=rewrite) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(300):
            failure, head, body = get(store, 1)[0]
            assert failure == ""
            assert body == bytes([int.from_bytes(head, "big") % 256]) * PAGE
    finally:
        stop.set()
        for writer in writers:
            writer.join()
