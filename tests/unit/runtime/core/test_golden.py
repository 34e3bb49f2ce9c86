"""Version 1 of the log and of the journal can be read for good."""

import json

import pyarrow as pa
import pyarrow.ipc
import pytest
from played import GOLDENS, Golden, journal_of, state_of

from runtime import _core
from runtime._core import Core, Replica

CHANGES_STATE = {
    ("config", "engine"), ("config", "component"), ("config", "pool"), ("config", "namespace"),
    ("config", "retire"), ("alloc", "grant"), ("alloc", "done"), ("alloc", "abort"),
    ("insert", "new"), ("insert", "heal"), ("free", None), ("split", None),
    ("evict", "kept"), ("evict", "lost"), ("evict", "marked"), ("evict", "gone"),
    ("backup", "reserve"), ("backup", "commit"), ("backup", "fail"), ("backup", "abort"),
    ("backup", "done"), ("offload", "commit"), ("prefetch", "commit"), ("load", "commit"),
    ("load", "fail"), ("lock", "acquire"), ("lock", "extend"), ("lock", "release"),
    ("session", "open"), ("session", "advance"), ("session", "close"), ("session", "expect"),
    ("lease", "grant"), ("lease", "renew"), ("lease", "release"), ("lease", "expire"),
}  # fmt: skip
OF_COMPONENTS = {
    "swa": {"insert/new", "insert/heal", "free", "evict/kept", "evict/lost", "load/commit"},
    "ssm": {"insert/new", "free", "evict/kept", "evict/lost", "offload/commit", "load/commit"},
    "indexer": {"insert/new", "evict/kept", "backup/commit", "load/commit"},
    "draft": {"insert/new", "evict/lost"},
}
REASONS = {
    "component_gap", "orphaned", "out_of_window", "retired", "retain", "share", "timeout",
    "observed", "forgotten", "pressure", "demote", "flush", "close", "damaged", "failed",
    "duplicate", "unused", "aborted",
}  # fmt: skip


@pytest.fixture(params=GOLDENS, ids=lambda golden: golden.name)
def golden(request) -> Golden:
    return request.param


@pytest.fixture
def state(golden) -> dict[str, object]:
    return json.loads(golden.state.read_text())


def plain(source: Core | Replica) -> dict[str, object]:
    return json.loads(json.dumps(state_of(source)))


def table(payload: bytes) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()


def all_rows(*columns: str) -> list[dict[str, str | None]]:
    logs = (table(golden.log.read_bytes()) for golden in GOLDENS)
    return [row for log in logs for row in log.select(columns).to_pylist()]


def test_the_log_folds_to_the_state_it_was_written_in(golden, state):
    replica = Replica()
    replica.fold(golden.log.read_bytes())
    assert plain(replica) == state
    replica.check()


def test_the_journal_replays_to_the_same_state_and_the_same_rows(golden, state):
    core = Core.replay(golden.journal.read_bytes())
    assert plain(core) == state
    core.check()
    message = core.log().drain(10**6)
    assert message
    before = table(golden.log.read_bytes())
    old = before.to_pylist()
    new = table(message.payload).select(before.column_names).to_pylist()
    # The first row names the version that wrote it.
    assert [{**row, "detail": None} for row in new[:1]] == [{**old[0], "detail": None}]
    assert new[1:] == old[1:]


def test_the_commands_of_the_journal_are_still_decided_alike(golden, state):
    core = golden.play()
    assert plain(core) == state
    assert journal_of(core) == golden.journal.read_bytes()


def test_columns_and_words_are_only_ever_added(golden):
    old = table(golden.log.read_bytes())
    assert [name for name, *_ in _core.SCHEMA][: old.num_columns] == old.column_names
    assert set(old["kind"].to_pylist()) <= set(_core.KINDS)
    assert set(old["phase"].drop_null().to_pylist()) <= set(_core.PHASES)
    assert set(old["reason"].drop_null().to_pylist()) <= set(_core.REASONS)


def test_the_logs_have_every_kind_of_row_that_changes_state():
    rows = {(row["kind"], row["phase"]) for row in all_rows("kind", "phase")}
    assert CHANGES_STATE - rows == set()
    assert REASONS - {row["reason"] for row in all_rows("reason")} == set()


@pytest.mark.parametrize("component", OF_COMPONENTS)
def test_the_logs_have_rows_of_every_family(component):
    rows = all_rows("component", "kind", "phase")
    mine = [row for row in rows if row["component"] == component]
    told = {"/".join(filter(None, (row["kind"], row["phase"]))) for row in mine}
    assert OF_COMPONENTS[component] - told == set()
