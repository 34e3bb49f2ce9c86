"""One engine's subscriber on a thread of its own."""

from __future__ import annotations

import queue
import threading
import time
import traceback

from kvctl.collector.lag import Lag
from kvctl.collector.segment import Record
from telemetry.address import EngineAddress
from telemetry.message import Epoch, Gap, Item, Message
from telemetry.subscriber import Subscriber

POLL_S = 0.1


class Follower:
    """Turns what an engine says into records, in order, and puts them on a bounded queue. When the
    queue is full it waits: the engine's stream then backs up to the replay ring, not into
    memory."""

    def __init__(
        self,
        address: EngineAddress,
        inbox: queue.Queue[Record],
        resume: tuple[str, int] | None,
    ) -> None:
        self.address = address
        self._inbox = inbox
        self._epoch = resume[0] if resume else ""
        self._heard = False
        self.problem = ""
        self.lag = Lag(resume)
        self._subscriber = Subscriber(address, resume=resume)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follow {address.events}")
        self._thread.start()

    @property
    def epoch(self) -> str:
        """The epoch that the address speaks in now; "" before the first message."""
        return self._epoch

    @property
    def state(self) -> str:
        if self._subscriber.silent:
            return "silent" if self._heard else "waiting"
        return "live" if self._heard else "waiting"

    @property
    def bad(self) -> int:
        return self._subscriber.bad + self._subscriber.malformed

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._subscriber as subscriber:
                while not self._stop.is_set():
                    items = subscriber.poll(POLL_S)
                    self.lag.said(*subscriber.said)
                    for item in items:
                        self._put(item)
                    self._heard = self._heard or subscriber.heard
        except Exception as error:
            # A thread that ends here must not look like an engine that says nothing.
            self.problem = f"{self.address.events} is not followed any more: {error!r}"
            traceback.print_exc()

    def _put(self, item: Item) -> None:
        record = self._record(item)
        while record is not None and not self._stop.is_set():
            try:
                return self._inbox.put(record, timeout=POLL_S)
            except queue.Full:
                continue

    def _record(self, item: Item) -> Record | None:
        address = str(self.address)
        match item:
            case Message(number, payload):
                header = {
                    "kind": "message",
                    "address": address,
                    "number": number,
                    "received": time.time_ns(),
                }
                return Record(header, payload)
            case Gap(epoch, first, last, reason):
                header = {
                    "kind": "gap",
                    "address": address,
                    "epoch": epoch,
                    "first": first,
                    "last": last,
                    "reason": reason,
                }
                return Record(header)
            case Epoch(_, epoch):
                self._epoch = epoch
        return None
