"""Golden output: programs read it, so a change here is a change of an API."""

import json

import pytest

from kvctl.output import print_object, print_table

TABLE = {
    "columns": ["session", "digest", "hit_rate", "open", "leases", "n", "n"],
    "rows": [
        ["pl\x1b[31m\ud800é", b"\x00\xff", None, True, [{"lease": 1, "tier": "host"}], 1, 2],
        ["a,b", b"", 0.25, False, [], 2**63, -1],
    ],
}
GOLDEN_JSON = (
    '{"v": 1, "rows": [{"session": "pl\\u001b[31m\\ud800\\u00e9", "digest": "00ff", '
    '"hit_rate": null, "open": true, "leases": [{"lease": 1, "tier": "host"}], "n": 1, "n_2": 2}, '
    '{"session": "a,b", "digest": "", "hit_rate": 0.25, "open": false, "leases": [], '
    '"n": 9223372036854775808, "n_2": -1}]}\n'
)
GOLDEN_CSV = (
    'session,digest,hit_rate,open,leases,n,n\n"a,b",,0.25,false,[],9223372036854775808,-1\n'
)


def test_json_is_versioned_ascii_and_in_the_order_of_the_columns(capsys):
    print_table(TABLE, "json", shown=["session"])
    assert capsys.readouterr().out == GOLDEN_JSON


def test_csv_has_all_columns_and_plain_values(capsys):
    print_table({**TABLE, "rows": TABLE["rows"][1:]}, "csv", shown=["session"])
    assert capsys.readouterr().out == GOLDEN_CSV


def test_bytes_are_hex_everywhere(capsys):
    print_table({"columns": ["digest"], "rows": [[b"\xab\xcd"]]}, "csv")
    assert capsys.readouterr().out == "digest\nabcd\n"


def test_an_object_is_its_own_fields(capsys):
    print_object({"found": True, "sentences": ["x"]}, "json", [])
    assert json.loads(capsys.readouterr().out) == {"v": 1, "found": True, "sentences": ["x"]}


def test_the_table_for_people_has_the_chosen_columns_and_obeys_no_name(capsys):
    print_table(
        {"columns": ["session", "x"], "rows": [["[bold]b\x1b[0m", 1], ["y" * 300, 2]]},
        "table",
        shown=["session"],
    )
    out = capsys.readouterr().out
    assert "[bold]b\\x1b[0m" in out
    assert "\x1b" not in out
    assert "y" * 300 in out, "what goes to a pipe is never cut"
    assert "x" not in out.splitlines()[0]


@pytest.mark.parametrize("output", ["json", "csv", "table"])
def test_no_row_is_no_error(output, capsys):
    print_table({"columns": ["session"], "rows": []}, output)
    assert capsys.readouterr().out
