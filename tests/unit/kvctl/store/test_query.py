import pyarrow as pa
import pytest

from kvctl.errors import SqlError, SqlRefused, TimedOut
from kvctl.store.database import Database
from kvctl.store.query import run


@pytest.fixture
def con():
    return Database(None).cursor()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS a",
        "WITH t AS (SELECT 1) SELECT * FROM t",
        "FROM events",
        "DESCRIBE events",
        "SHOW TABLES",
        "SUMMARIZE engines",
        "VALUES (1), (2)",
        "  SELECT 1 ; ",
        "SELECT 1 -- a comment",
    ],
)
def test_reading_statements_run(con, query):
    assert run(con, query, 100, 10)["columns"]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE events",
        "INSERT INTO progress VALUES (1, 1)",
        "UPDATE engines SET rows = 0",
        "CREATE TABLE x (a INT)",
        "COPY events TO 'out.csv'",
        "ATTACH 'other.duckdb'",
        "SET threads = 9",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "EXPORT DATABASE 'x'",
        "CHECKPOINT",
        "BEGIN",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE events",
        "",
        "-- nothing",
    ],
)
def test_everything_else_is_refused(con, query):
    with pytest.raises(SqlRefused):
        run(con, query, 100, 10)
    assert run(con, "SELECT count(*) FROM events", 1, 10)["rows"] == [[0]]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('https://example.org/x.csv')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT 1) ; DROP TABLE events; SELECT * FROM (SELECT 1",
        "SELEC 1",
        "SELECT nope FROM events",
    ],
)
def test_files_network_and_nonsense_are_errors_of_the_statement(con, query):
    with pytest.raises((SqlError, SqlRefused)):
        run(con, query, 100, 10)


def test_variables_of_this_program_are_not_tables(con):
    secret = pa.table({"a": [42]})
    assert secret is not None
    with pytest.raises(SqlError, match="secret"):
        run(con, "SELECT * FROM secret", 10, 10)


def test_rows_are_bounded_and_it_says_so(con):
    result = run(con, "SELECT * FROM range(1000000000000)", 10, 10)
    assert len(result["rows"]) == 10
    assert result["truncated"]
    assert not run(con, "SELECT * FROM range(10)", 10, 10)["truncated"]


def test_a_statement_that_takes_too_long_is_stopped_and_the_next_one_runs(con):
    endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = 7"
    with pytest.raises(TimedOut, match=r"longer than 0\.2 s"):
        run(con, endless, 10, 0.2)
    assert run(con, "SELECT 1", 10, 10)["rows"] == [[1]]


def test_every_type_becomes_json(con):
    result = run(
        con,
        "SELECT 'a'::BLOB AS b, 1.5::DECIMAL(4, 1) AS d, 'nan'::DOUBLE AS n, 2 ** 100 AS big,"
        " TIMESTAMP '2026-01-02 03:04:05' AS t, INTERVAL 1 DAY AS i, [1, NULL] AS l,"
        " {'x': 1} AS s, MAP {1: 2} AS m, true AS y, uuid() AS u, 7::HUGEINT AS h",
        1,
        10,
    )
    row = dict(zip(result["columns"], result["rows"][0], strict=True))
    assert isinstance(row.pop("u"), str)
    assert row == {
        "b": "61",
        "d": 1.5,
        "n": None,
        "big": 2.0**100,
        "t": "2026-01-02T03:04:05",
        "i": 86400.0,
        "l": [1, None],
        "s": {"x": 1},
        "m": {"1": 2},
        "y": True,
        "h": 7,
    }
