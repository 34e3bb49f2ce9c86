"""Host and storage: offload goes down, prefetch comes back.

The core gives every stored page a number within its capacity, and a number that is given again
says that the page it had is gone. So this side keeps number -> key: it removes the old key's
object before it writes the new one, and never serves a key whose number has moved on.
"""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from canary import Mode, Violation
from runtime.pools.host import HostPool
from runtime.storage import header
from runtime.storage.base import Store
from runtime.transfer.pipeline import ARRIVED, DAMAGED, Completion, Pipeline, pages_of

if TYPE_CHECKING:
    from runtime._core import Action


class StoragePipeline(Pipeline):
    kinds = ("offload", "prefetch")

    def __init__(
        self,
        host: HostPool,
        store: Store,
        namespace: str,
        done: Callable[[Completion], None],
        mode: Mode,
    ) -> None:
        """`store` is open. What it holds from an earlier epoch is removed: this epoch's core does
        not know it."""
        self._host = host
        self._store = store
        self._namespace = hashlib.sha256(namespace.encode()).digest()[:16]
        self._keys: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] = {}
        self._scratch = memoryview(bytearray(host.layout.page_bytes))
        store.clear()
        super().__init__(done, host.layout.page_size, mode)

    def forget(self, live: set[int]) -> None:
        """Remove the objects of every number that is not in `live` (the core's, with those being
        written)."""
        gone = [self._release(number) for number in [*self._keys] if number not in live]
        self._store.remove([key for key in gone if key is not None])

    def stats(self) -> dict[str, int]:
        """The store's counters, and `stored`: objects that this epoch knows."""
        return {**self._store.stats(), "stored": len(self._numbers)}

    def fault(self, key: bytes) -> str:
        """Why a stored object is not the page it should be: one of header.FAULTS, or "missing";
        "" when it is, or when it cannot be read just now. Reads it on the caller's thread."""
        head, page = bytearray(header.HEADER_BYTES), self._scratch
        failure = self._store.get([key], [head], [page])[0]
        if failure:
            return failure if failure in ("missing", *header.FAULTS) else ""
        return header.fault(head, key, self._namespace, page)

    def flip(self, key: bytes, byte: int) -> None:
        """Damage a stored page on purpose."""
        head, page = bytearray(header.HEADER_BYTES), self._scratch
        self._store.get([key], [head], [page])
        page[byte] ^= 0xFF
        self._store.put([key], [bytes(head)], [page])

    def _release(self, number: int) -> bytes | None:
        """Give up a number; its key when no other number holds the same object."""
        key = self._keys.pop(number, None)
        if key is None or self._numbers.get(key) != number:
            return None
        del self._numbers[key]
        return key

    def _prepare(self, action: "Action") -> object:
        """offload: keys to remove first. prefetch: which numbers still stand for their keys."""
        if action.kind == "prefetch":
            return [
                self._keys.get(number) == key
                for (number, _), key in zip(pages_of(action), action.keys, strict=True)
            ]
        replaced = []
        for (_, number), key in zip(pages_of(action), action.keys, strict=True):
            if self._keys.get(number) != key and (old := self._release(number)):
                replaced.append(old)
            self._keys[number] = key
            self._numbers[key] = number
        return replaced

    def _move(self, done: Completion, prepared: Any) -> None:
        if done.action.kind == "offload":
            self._store.remove(prepared)
            self._offload(done)
        else:
            self._prefetch(done, prepared)
        done.moved_bytes = done.results.count(ARRIVED) * self._host.layout.page_bytes

    def _offload(self, done: Completion) -> None:
        keys, headers, pages, places = [], [], [], []
        for index, (page, _) in enumerate(pages_of(done.action)):
            if self._check(done, index, self._host, page, "host"):
                data, key = self._host.page(page), done.action.keys[index]
                sentinel = self._host.sentinels[page].tobytes()
                keys.append(key)
                headers.append(header.pack(key, self._namespace, sentinel, data))
                pages.append(data)
                places.append(index)
        for index, failure in zip(places, self._store.put(keys, headers, pages), strict=True):
            if failure:
                done.failures[failure] += 1
            else:
                done.results[index] = ARRIVED

    def _prefetch(self, done: Completion, known: list[bool]) -> None:
        sources = [*pages_of(done.action)]
        done.results[:] = bytes(0 if ok else DAMAGED for ok in known)
        places = [index for index, ok in enumerate(known) if ok]
        keys = [done.action.keys[index] for index in places]
        headers = [bytearray(header.HEADER_BYTES) for _ in places]
        pages = [self._host.page(sources[index][1]) for index in places]
        failures = self._store.get(keys, headers, pages)
        for index, head, failure in zip(places, headers, failures, strict=True):
            number, page = sources[index]
            failure = failure or header.fault(
                head, done.action.keys[index], self._namespace, self._host.page(page)
            )
            if not failure:
                self._host.sentinels[page] = list(header.sentinel(head))
                if self._check(done, index, self._host, page, "storage"):
                    done.results[index] = ARRIVED
            elif failure == "missing":
                done.failures[failure] += 1
                done.results[index] = DAMAGED
            elif failure in header.FAULTS:
                self._violated(done, index, self._unreadable(done, index, number, failure))
            else:
                done.failures[failure] += 1

    def _unreadable(self, done: Completion, index: int, number: int, reason: str) -> Violation:
        done.checked += 1
        action = done.action
        return Violation(
            action.kind,
            "storage",
            action.session,
            action.owners[index],
            number,
            action.positions[index],
            {},
            reason,
        )
