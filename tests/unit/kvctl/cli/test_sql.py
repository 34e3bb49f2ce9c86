from pathlib import Path

import pytest

from kvctl.cli import main
from kvctl.cli.commands.sql import EXAMPLES
from kvctl.exits import Exit

RECORD = Path(__file__).parents[3] / "golden" / "log_v1.seg"


@pytest.mark.parametrize("query", [query for _, query in EXAMPLES])
def test_the_examples_that_help_shows_have_answers(query, capsys):
    assert main(["sql", query, "--file", str(RECORD), "-o", "csv"]) == Exit.OK
    assert len(capsys.readouterr().out.splitlines()) > 1
