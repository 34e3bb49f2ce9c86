"""Version 1 of the log and of the journal can be read for good."""

import json

import pyarrow as pa
import pyarrow.ipc
import pytest
from played import JOURNAL, LOG, STATE, played, state_of

from runtime import _core
from runtime._core import Core, Replica

CHANGES_STATE = {
    ("alloc", "grant"), ("alloc", "done"), ("alloc", "abort"),
    ("insert", "new"), ("insert", "heal"), ("free", None), ("split", None),
    ("evict", "kept"), ("evict", "lost"), ("evict", "marked"),
    ("backup", "reserve"), ("backup", "commit"), ("backup", "fail"), ("backup", "abort"),
    ("backup", "done"), ("offload", "commit"), ("prefetch", "commit"), ("load", "commit"),
    ("load", "fail"), ("lock", "acquire"), ("lock", "extend"), ("lock", "release"),
    ("session", "open"), ("session", "advance"), ("session", "close"),
    ("lease", "grant"), ("lease", "renew"), ("lease", "release"), ("lease", "expire"),
}  # fmt: skip


@pytest.fixture(scope="module")
def state() -> dict[str, object]:
    return json.loads(STATE.read_text())


def plain(source: Core | Replica) -> dict[str, object]:
    return json.loads(json.dumps(state_of(source)))


def table(payload: bytes) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()


def test_the_log_folds_to_the_state_it_was_written_in(state):
    replica = Replica()
    replica.fold(LOG.read_bytes())
    assert plain(replica) == state
    replica.check()


def test_the_journal_replays_to_the_same_state_and_the_same_rows(state):
    core = Core.replay(JOURNAL.read_bytes())
    assert plain(core) == state
    core.check()
    message = core.log().drain(10**6)
    assert message
    old = table(LOG.read_bytes()).to_pylist()
    new = table(message.payload).select(table(LOG.read_bytes()).column_names).to_pylist()
    # The first row names the version that wrote it.
    assert [{**row, "detail": None} for row in new[:1]] == [{**old[0], "detail": None}]
    assert new[1:] == old[1:]


def test_the_commands_of_the_journal_are_still_decided_alike(state):
    core = played()
    assert plain(core) == state
    assert core.journal() == JOURNAL.read_bytes()


def test_columns_and_words_are_only_ever_added():
    old = table(LOG.read_bytes())
    assert [name for name, *_ in _core.SCHEMA][: old.num_columns] == old.column_names
    assert set(old["kind"].to_pylist()) <= set(_core.KINDS)
    assert set(old["phase"].drop_null().to_pylist()) <= set(_core.PHASES)
    assert set(old["reason"].drop_null().to_pylist()) <= set(_core.REASONS)


def test_the_log_has_every_kind_of_row_that_changes_state():
    rows = table(LOG.read_bytes()).select(["kind", "phase"]).to_pylist()
    assert CHANGES_STATE - {(row["kind"], row["phase"]) for row in rows} == set()
