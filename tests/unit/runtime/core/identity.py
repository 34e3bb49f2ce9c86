"""Digests of the model's paths, computed from their definition and not by the core."""

import hashlib
from functools import cache

from model.records import Path


def root(namespace: str, secret: bytes) -> bytes:
    sha = hashlib.sha256(b"kvctl-namespace-v1")
    for part in (namespace.encode(), secret):
        sha.update(len(part).to_bytes(8, "little") + part)
    return sha.digest()


def words(numbers: tuple) -> bytes:
    return b"".join(n.to_bytes(4, "little") for n in numbers)


@cache
def page_digest(path: Path, key: str, namespace: str, secret: bytes) -> bytes:
    """Of the last page of a path: sha256(parent digest || its tokens, or its pairs' tokens), or the
    digest that it is known by."""
    if len(path) == 1:
        return root(namespace, secret)
    page = path[-1]
    if key == "digests":
        return page[0]
    tokens = page if key == "tokens" else tuple(token for pair in page for token in pair)
    parent = page_digest(path[:-1], key, namespace, secret)
    return hashlib.sha256(parent + words(tokens)).digest()


def chain(tokens: tuple[int, ...], page_size: int, namespace: int) -> tuple[bytes, ...]:
    """What a caller that knows pages by digests has instead of tokens."""
    sha, found = bytes([namespace]), []
    for start in range(0, len(tokens) - page_size + 1, page_size):
        sha = hashlib.sha256(sha + words(tokens[start : start + page_size])).digest()
        found.append(sha)
    return tuple(found)
