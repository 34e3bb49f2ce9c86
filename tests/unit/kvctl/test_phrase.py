import pytest

from kvctl.phrase import outcome, phrase


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"kind": "match", "tokens": 640, "device_tokens": 128, "host_tokens": 64}
            | {"storage_tokens": 0, "reason": "evicted", "cause": 88},
            "hit 192 of 640 tokens (device 128 + host 64), evicted, because of #88",
        ),
        ({"kind": "match", "tokens": 12}, "hit 0 of 12 tokens"),
        (
            {"kind": "backup", "tier_from": "device", "tier_to": "host", "pages": 12}
            | {"bytes": 3 << 20, "duration": 4_500_000},
            "device → host, 12 pages, 3.0 MiB, 4.5 ms",
        ),
        (
            {"kind": "evict", "tier_from": "host", "pages": 1, "reason": "pressure"}
            | {"policy": "lru", "skipped": 3, "cause": 9},
            "from host, 1 page, pressure, by lru, 3 skipped, because of #9",
        ),
        (
            {"kind": "hint", "pages": 4, "reason": "budget", "detail": "pin by op: 4 of 9 pages"},
            "pin by op: 4 of 9 pages, budget",
        ),
        ({"kind": "tool", "detail": "\x1b[2J"}, "\\x1b[2J"),
        (
            {"kind": "canary", "phase": "violation", "reason": "sweep", "pages": 1}
            | {"detail": '{"tier": "host", "page": 4, "position": 3, "what": ["content"]}'},
            "1 page, sweep, page 4 of host, position 3 of its path: content",
        ),
        (
            {"kind": "canary", "phase": "inject"}
            | {"detail": '{"hop": "device", "page": 4, "position": 3, "byte": 0}'},
            "page 4 of device, position 3 of its path: one byte flipped",
        ),
        ({"kind": "canary", "phase": "violation", "detail": "[] \n"}, "[] \\n"),
        (
            {"kind": "request", "phase": "start", "tokens": 64, "duration": 2_000_000},
            "64 tokens from the cache, 2.0 ms",
        ),
        ({"kind": "request", "phase": "start", "tokens": None}, "0 tokens from the cache"),
        ({"kind": "lock"}, ""),
    ],
)
def test_a_row_in_words(row, said):
    assert phrase(row) == said


def test_an_outcome_names_what_was_asked_and_what_was_done():
    answer = {"outcome": "clipped", "reason": "no_room", "pages": 3, "asked": 9, "pending": 2}
    assert outcome("pin", "[s]\n", answer | {"lease": 7}) == (
        "pin [s]\\n: clipped, no room; 3 of 9 pages, 2 on their way; lease 7"
    )
