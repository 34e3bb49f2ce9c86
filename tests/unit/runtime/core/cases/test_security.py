"""Cases of security, as far as they are about what two contents may share."""

from array import array

import pytest

from cases.scenario import Case, key
from runtime._core import BadArgument, UnknownSession, page_digests


def test_a_digest_counts_to_its_last_bit():
    """security-01: identities of media are keys of 32 bytes; equal ends do not make them equal."""
    one, other = b"\x01" * 30 + b"\xab\xcd", b"\x02" * 30 + b"\xab\xcd"
    last = b"\x01" * 31 + b"\xcc"
    d = Case("a", device=8, key="digests")
    found = d.core.acquire(d.tick(), "a", "r", one)
    got = d.core.reserve(d.tick(), found.receipt, 1)
    d.core.commit(d.tick(), got.op, one, 0, 1)
    assert [d.core.match(d.tick(), "a", "r", k).pages for k in (one, other, last)] == [1, 0, 0]
    assert d.resident("device") == {one}
    with pytest.raises(BadArgument):
        d.core.match(d.tick(), "a", "r", one[:31])


def test_tokens_count_at_their_full_width():
    """security-02: 321 is 65 in its low byte, and no 65."""
    d = Case("a", device=8, page_size=2)
    d.serve("a", [65, 10])
    for tokens in ([321, 10], [65 + 2**16, 10], [65 + 2**24, 10], [65, 10 + 2**31]):
        assert d.look("a", tokens).pages == 0
        assert page_digests(tokens, 2, "n") != page_digests([65, 10], 2, "n")
    with pytest.raises(BadArgument):
        d.core.match(d.tick(), "a", "r", [65 + 2**32, 10])


def test_adapters_of_one_name_are_as_many_namespaces_as_there_are_ids():
    """security-05: what distinguishes them stands in the namespace's name."""
    d = Case("a", device=8)
    one = d.core.open_namespace(d.tick(), "n#1")
    two = d.core.open_namespace(d.tick(), "n#2")
    assert one != two
    found = d.acquire("a", [1, 2], namespace=one)
    d.write(found, [1, 2])
    for namespace, expected in [(one, 2), (two, 0), (0, 0)]:
        found = d.core.match(d.tick(), "a", "r", array("I", [1, 2]), namespace=namespace)
        assert found.pages == expected
    assert not set(page_digests([1, 2], 1, "n#1")) & set(page_digests([1, 2], 1, "n#2"))


def test_what_is_loaded_again_under_a_name_meets_nothing_of_before():
    """security-06: retired at once in every tier; the name's next opening is another root."""
    d = Case("a", "b", device=8, host=8, storage=8)
    old = d.core.open_namespace(d.tick(), "m")
    d.serve("a", [9])
    reader = d.acquire("b", [1, 2], namespace=old)
    d.write(reader, [1, 2])
    d.finish()
    assert d.core.retire(d.tick(), old) == 0  # one still reads them
    new = d.core.open_namespace(d.tick(), "m")
    assert new != old
    found = d.core.match(d.tick(), "a", "r", array("I", [1, 2]), namespace=new)
    assert (found.pages, found.full_pages) == (0, 0)
    with pytest.raises(BadArgument):
        d.acquire("b", [1, 2], namespace=old)
    d.release(reader)
    for tier in ("device", "host", "storage"):
        assert d.resident(tier) == {key(9)}
    second = d.acquire("b", [1, 2], namespace=new)
    assert second.pages == 0
    d.write(second, [1, 2])
    assert len(d.resident("device")) == 3


def test_name_and_salt_cannot_be_taken_for_each_other():
    """security-07: each field stands with its length before it."""
    fields = [("S", b""), ("S", b"S"), ("SS", b""), ("ab", b"c"), ("a", b"bc"), ("abc", b"")]
    fields += [("a\0", b"b"), ("a", b"\0b"), ("a\x01\0\0\0\0\0\0\0b", b"")]
    found = [page_digests([1], 1, name, salt)[0] for name, salt in fields]
    assert len(set(found)) == len(fields)


def test_what_is_compared_is_the_tokens_and_what_is_stored_is_sha256():
    """security-11: no digest decides a match, and the root follows from configuration alone."""
    first, second = (Case("a", device=8, secret=secret) for secret in (b"one", b"two"))
    for d, secret in ((first, b"one"), (second, b"two")):
        d.serve("a", [1, 2])
        assert d.resident("device") == set(page_digests([1, 2], 1, "n", secret))
        assert d.look("a", [1, 2]).pages == 2
        assert d.look("a", [2, 1]).pages == 0


def test_every_key_that_leaves_for_another_tier_has_the_secret_in_it():
    """security-12: the same tokens of two tenants have no key in common, in whatever store."""
    keys = []
    for secret in (b"one", b"two", b""):
        d = Case("a", device=4, host=4, storage=4, secret=secret)
        d.serve("a", [1, 2], move=False)
        moves = d.finish()
        assert {move.kind for move in moves} == {"backup", "offload"}
        for move in moves:
            assert move.keys == page_digests([1, 2], 1, "n", secret)
        d.demote("a")
        d.lose("full", 0, 1, tier="host")
        found = d.acquire("a", [1, 2])
        d.core.restore(d.tick(), found.receipt)
        (prefetch,) = d.core.actions()
        assert prefetch.keys == moves[0].keys == d.core.keys(found.receipt)
        keys += prefetch.keys
    assert len(set(keys)) == len(keys) == 6


def test_many_pages_side_by_side_are_each_found_as_themselves():
    """security-13: a table of children may collide, its answer is compared token by token."""
    d = Case(device=512, page_size=2)
    prompts = [[a, b] for a in range(16) for b in range(16)]
    for i, prompt in enumerate(prompts):
        d.core.core.open_session(d.tick(), str(i))
        found = d.core.core.acquire(d.tick(), str(i), "r", array("I", prompt))
        assert found.pages == 0
        got = d.core.core.reserve(d.tick(), found.receipt, 1)
        d.core.core.commit(d.tick(), got.op, array("I", prompt), 0, 1)
        d.core.core.release(d.tick(), found.receipt)
    d.core.prove()
    nodes = {d.core.core.match(d.tick(), "0", "r", array("I", prompt)).node for prompt in prompts}
    assert len(nodes) == len(prompts)
    assert d.look("0", [16, 0]).pages == 0


def told(found) -> tuple:
    """All that a tenant learns from a match."""
    return (found.pages, found.full_pages, found.reason, found.offset, found.lost_seq, found.branch)


@pytest.mark.parametrize("state", ["absent", "pending", "there", "evicted"])
def test_a_tenant_learns_nothing_of_anothers_prompt(state):
    """security-14: in a namespace of its own no number and no reason differs."""
    d = Case("a", "b", "flood", device=4, defer_digests=False)
    tenant = d.core.open_namespace(d.tick(), "tenant b")
    prompt = [1, 2, 3]
    if state != "absent":
        found = d.acquire("a", prompt)
        got = d.core.reserve(d.tick(), found.receipt, 3)
        if state != "pending":
            d.core.commit(d.tick(), got.op, array("I", prompt), 0, 3)
            d.release(found)
        if state == "evicted":
            d.release(d.fill("flood", 4))
            assert d.look("a", prompt).reason == "evicted"
    probe = d.core.match(d.tick(), "b", "r", array("I", prompt), namespace=tenant)
    assert told(probe) == (0, 0, "never_stored", -1, 0, 0)
    if state == "there":
        found = d.core.acquire(d.tick(), "b", "r", array("I", prompt), namespace=tenant)
        assert d.core.reserve(d.tick(), found.receipt, 1).pages == 1
        assert d.look("a", prompt).pages == 3
        d.core.close_session(d.tick(), "b")
        with pytest.raises(UnknownSession):
            d.look("b", prompt)
