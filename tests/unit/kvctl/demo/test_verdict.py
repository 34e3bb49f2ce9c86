"""The demo succeeds only when everything it claims was really shown."""

import pytest

from kvctl.demo.verdict import exit_code, findings, unproven
from kvctl.exits import Exit

RESULT = {"different": [], "compared": 36, "seq": 900, "state_hash": "ab"}
SUMMARY = {"canary": {"checks": 500, "violations": 0}}
ENGINE = {"gapless": True, "gaps": 0, "lost_rows": 0, "seq": 900, "state_hash": "ab"}


def judged(result=(), canary=(), engine=()):
    result = {**RESULT, **dict(result)}
    summary = {"canary": {**SUMMARY["canary"], **dict(canary)}}
    engine = {**ENGINE, **dict(engine)}
    found, missing = findings(result, summary), unproven(result, summary, engine)
    return exit_code(found, missing), "\n".join(found + missing)


def test_all_shown_is_ok():
    assert judged() == (Exit.OK, "")


@pytest.mark.parametrize(
    ("changed", "code", "says"),
    [
        ({"result": {"different": ["s1"]}}, Exit.FINDINGS, "'s1' differs"),
        ({"canary": {"violations": 2}}, Exit.FINDINGS, "2 damaged pages"),
        ({"canary": {"checks": 0}}, Exit.NOT_ESTABLISHED, "checked nothing"),
        ({"result": {"compared": 0}}, Exit.NOT_ESTABLISHED, "no answer was compared"),
        ({"engine": {"gapless": False, "gaps": 1, "lost_rows": 7}}, Exit.NOT_ESTABLISHED, "7 rows"),
        ({"engine": {"state_hash": "cd"}}, Exit.NOT_ESTABLISHED, "gives state cd"),
        ({"engine": {"seq": 899}}, Exit.NOT_ESTABLISHED, "row 899"),
    ],
)
def test_anything_less_is_not(changed, code, says):
    got, words = judged(**changed)
    assert got is code
    assert says in words


def test_a_finding_outweighs_what_could_not_be_shown():
    code, words = judged(canary={"checks": 0, "violations": 1})
    assert code is Exit.FINDINGS
    assert "checked nothing" in words
