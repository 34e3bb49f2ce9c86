import json

from canary import Violation, judge


def test_no_checks_is_not_established_whatever_else_is_clean():
    assert judge(checked_pages=0, violations=0).exit_code == 5


def test_checks_without_violation_pass():
    assert judge(checked_pages=12, violations=0).exit_code == 0


def test_a_violation_fails_even_with_rows_lost():
    assert judge(checked_pages=12, violations=1, lost_rows=100).exit_code == 1


def test_lost_rows_leave_a_clean_count_not_established():
    verdict = judge(checked_pages=12, violations=0, lost_rows=3)
    assert verdict.exit_code == 5
    assert "3 log row(s)" in verdict.message


def test_violation_detail_names_hop_page_and_what_differs():
    violation = Violation(
        hop="load",
        tier="host",
        session="s",
        owner=3 << 32 | 7,
        page=11,
        position=5,
        differs={"content": (0xDEAD_BEEF_DEAD_BEEF, 1)},
    )
    detail = json.loads(violation.detail())
    assert detail == {
        "hop": "load",
        "tier": "host",
        "page": 11,
        "position": 5,
        "slot": 7,
        "generation": 3,
        "what": ["content"],
        "expected": {"content": "0xdeadbeefdeadbeef"},
        "found": {"content": "0x1"},
    }
