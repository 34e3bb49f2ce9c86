import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import duckdb
import pytest

from kvctl.errors import StoreError
from kvctl.store.database import Database, connect_reader, event_columns
from kvctl.store.store import Store
from kvctl.verbs.sql import sql

FIRST_BLOCK, BLOCK = 12288, 262144
ROOT = Path(__file__).parents[4]
CRASH = """
import os, sys
from pathlib import Path
from kvctl.store.database import Database
database = Database(Path(sys.argv[1]))
con = database.cursor()
for number in range(50):
    con.execute("INSERT INTO progress VALUES (?, ?)", [number, number])
os._exit(9)
"""


def crashed(path):
    """A database whose writer was killed: its rows are in the write-ahead log."""
    subprocess.run(
        [sys.executable, "-c", CRASH, str(path)], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    wal = path.with_name(path.name + ".wal")
    assert wal.stat().st_size > 1000
    return wal


def test_every_column_is_documented_in_the_database_itself():
    con = Database(None).cursor()
    told = con.execute("SELECT column_name, meaning FROM dictionary WHERE table_name = 'events'")
    assert told.fetchall() == [(name, text) for name, _, text in event_columns()]
    everything = con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    told = con.execute("SELECT table_name, column_name FROM dictionary WHERE length(meaning) > 1")
    assert sorted(told.fetchall()) == sorted(everything)


def test_every_table_and_view_says_what_it_is():
    con = Database(None).cursor()
    silent = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL AND table_name <> 'events'"
        " UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL"
    ).fetchall()
    assert silent == []


def test_what_a_killed_writer_committed_is_there(tmp_path):
    """duckdb-07"""
    path = tmp_path / "k.duckdb"
    crashed(path)
    database = Database(path)
    assert database.aside == ""
    assert database.cursor().execute("SELECT count(*) FROM progress").fetchone() == (50,)


@pytest.mark.parametrize("part", [0.02, 0.3, 0.61, 0.9])
def test_a_cut_write_ahead_log_never_stops_the_start(tmp_path, part):
    """duckdb-01"""
    path = tmp_path / "k.duckdb"
    wal = crashed(path)
    wal.write_bytes(wal.read_bytes()[: int(wal.stat().st_size * part)])
    database = Database(path)
    (count,) = database.cursor().execute("SELECT count(*) FROM progress").fetchone()
    assert count < 50


@pytest.mark.parametrize("junk", [b"", b"junk" * 5000])
def test_a_file_that_is_no_database_is_set_aside_and_said(tmp_path, junk):
    path = tmp_path / "k.duckdb"
    path.write_bytes(junk)
    database = Database(path)
    assert database.cursor().execute("SELECT count(*) FROM events").fetchone() == (0,)
    if junk:
        assert "k.duckdb.damaged-1" in database.aside
        assert (tmp_path / "k.duckdb.damaged-1").read_bytes() == junk


def test_a_file_of_an_older_version_gets_its_new_columns(tmp_path):
    path = tmp_path / "k.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE events (engine VARCHAR, epoch VARCHAR, seq UBIGINT)")
        con.execute("INSERT INTO events VALUES ('a', 'b', 7)")
    database = Database(path)
    assert database.cursor().execute("SELECT seq, kind FROM events").fetchall() == [(7, None)]


def test_a_file_whose_tables_an_older_version_shaped_is_made_again(tmp_path):
    path = tmp_path / "k.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE pool_state (engine VARCHAR, epoch VARCHAR, seq UBIGINT)")
    database = Database(path)
    assert "k.duckdb.damaged-1" in database.aside
    assert database.cursor().execute("SELECT leased FROM pool_state").fetchall() == []


def test_a_file_in_use_by_another_process_is_said_so(tmp_path):
    """duckdb-02: the writer never fails because a reader came, the reader is told whom to ask."""
    path = tmp_path / "k.duckdb"
    Database(path).close()
    hold = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        with pytest.raises(StoreError, match="in use by another process"):
            Database(path)
        with pytest.raises(StoreError, match="ask that server"):
            connect_reader(path)
        other.stdin.close()


@pytest.mark.parametrize("content", [None, b"", b"junk" * 5000])
def test_reading_what_is_no_database_is_a_clear_error(tmp_path, content):
    path = tmp_path / "k.duckdb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreError, match=r"k\.duckdb"):
        connect_reader(path)


def test_damage_in_any_block_is_a_clear_error_or_not_met(tmp_path):
    path = tmp_path / "k.duckdb"
    database = Database(path)
    database.cursor().execute(
        "INSERT INTO events (engine, epoch, seq, detail)"
        " SELECT 'e', 'e1', range, hash(range)::VARCHAR || hash(-range) FROM range(50000)"
    )
    database.close()
    whole = path.read_bytes()
    met = 0
    for at in range(FIRST_BLOCK, len(whole), BLOCK):
        path.write_bytes(whole[: at + 100] + b"X" * 100 + whole[at + 200 :])
        try:
            con = connect_reader(path)
        except StoreError:
            continue
        for read in (lambda store: store.table("FROM events"), partial(sql, query="FROM events")):
            try:
                read(Store(con.cursor, dict))
            except StoreError:
                met += 1
        con.close()
    assert met
