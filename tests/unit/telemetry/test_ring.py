import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.ring import Ring


@given(st.lists(st.binary(max_size=40), max_size=60), st.integers(1, 10), st.integers(1, 100))
def test_a_ring_keeps_the_newest_within_both_bounds(payloads, max_messages, max_bytes):
    ring = Ring(max_messages, max_bytes)
    for number, payload in enumerate(payloads):
        assert ring.append(payload) == number
        ring.check()
        kept = [ring.get(n) for n in range(ring.oldest, ring.next)]
        assert kept == payloads[: number + 1][-len(kept) :]
        full = len(kept) == max_messages or ring.oldest == 0
        assert full or sum(map(len, payloads[ring.oldest - 1 : number + 1])) > max_bytes


def test_a_ring_that_keeps_nothing_is_refused():
    with pytest.raises(ValueError, match="keeps nothing"):
        Ring(0, 10)
