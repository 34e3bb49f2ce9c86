"""What every storage backend is: a batch interface with one result per key."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

Failure = str
"""Why one key failed; "" is success. A backend may answer

missing    there is no such object
length     there is one, of another length
no_space   full
denied     not allowed
closed     the store is not open
io         anything else
"""


class Store(ABC):
    """Objects under 32-byte keys. An object is a header (opaque, of fixed length) followed by a
    page.

    Atomicity: an object is absent or whole; a reader, in this process or after a crash, never sees
      part of one. Putting a key again replaces its object at once for those who open it afterwards.
    Partial results: every call answers for each key, in the order asked; one key's failure changes
      no other.
    Failure: results say so. Nothing but `open` raises for what the outside world does.
    Order: a call that has returned is seen by every later call. Calls that overlap have no order.
    Threads: all methods may be called from several threads between `open` and `close`.
    Length: all pages of a store have the same length; so have all headers.
    """

    @abstractmethod
    def open(self) -> None:
        """Take hold of the store; StorageError (StorageLocked) when that cannot be."""

    @abstractmethod
    def close(self) -> None:
        """Let go. Closing a closed store changes nothing."""

    @abstractmethod
    def exists(self, keys: Sequence[bytes]) -> list[bool]:
        """Whether each key has an object. Says nothing about its bytes."""

    @abstractmethod
    def put(
        self, keys: Sequence[bytes], headers: Sequence[bytes], pages: Sequence[memoryview]
    ) -> list[Failure]:
        """Store objects. Pages are contiguous bytes, read before the call returns and not kept."""

    @abstractmethod
    def get(
        self, keys: Sequence[bytes], headers: Sequence[bytearray], pages: Sequence[memoryview]
    ) -> list[Failure]:
        """Read objects into the buffers given. After a failure a key's buffers hold anything."""

    @abstractmethod
    def remove(self, keys: Sequence[bytes]) -> list[Failure]:
        """Remove objects; removing what is not there succeeds."""

    @abstractmethod
    def list(self) -> Iterator[bytes]:
        """The keys that have objects, in no order."""

    def clear(self) -> None:
        """Remove every object."""
        self.remove([*self.list()])

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Counters since `open`: puts, gets, removes (keys), and failures by reason as
        `failed_REASON`."""
