import pytest

from kvctl.duration import seconds
from kvctl.errors import UsageError
from kvctl.text import human, plain, size, span

NOW = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("planner", "planner"),
        ("日本語 ünï", "日本語 ünï"),
        ("[red]x[/]", "[red]x[/]"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
    ],
)
def test_no_name_can_command_the_terminal(name, shown):
    assert plain(name) == shown
    assert plain(name).encode()


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 µs"),
        (1_500, "2 µs"),
        (12_340_000, "12.3 ms"),
        (4_100_000_000, "4.1 s"),
        (59_400_000_000, "59 s"),
        (552_000_000_000, "9m12s"),
        (7_320_000_000_000, "2h02m"),
        (260_000_000_000_000, "3d"),
        (-5_000_000_000, "-5.0 s"),
    ],
)
def test_spans_have_the_unit_a_person_would_choose(ns, shown):
    assert span(ns) == shown


def test_sizes_go_up_to_the_largest_unit():
    assert [size(n) for n in (0, 1023, 1024, 3 << 20, 5 << 50)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "3.0 MiB",
        "5120.0 TiB",
    ]


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("hit_rate", None, "-"),
        ("hit_rate", 0.284, "28%"),
        ("bytes_per_s", 2048.0, "2.0 KiB/s"),
        ("lag_ms", 12.0, "12.0 ms"),
        ("last_reason", "never_stored", "never stored"),
        ("state_hash", "0123456789abcdef", "01234567"),
        ("open", False, "no"),
        ("leases", [{"tier": "host", "expires": NOW + 90_000_000_000}], "host 1m30s"),
        ("leases", [{"tier": "host", "expires": NOW - 1}], "host 0 µs"),
    ],
)
def test_a_column_name_tells_its_unit(column, value, shown):
    assert human(column, value, NOW) == shown


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200)])
def test_durations_as_people_type_them(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "0", "-5m", "10 m", "1.5h", "10x", "m", "²", "9" * 30])
def test_what_is_no_duration_is_refused_with_its_value(text):
    with pytest.raises(UsageError, match="write for example") as refused:
        seconds(text)
    assert repr(text) in str(refused.value)
