"""The keeper thread: records into segments, then into tables."""

from __future__ import annotations

import queue
import threading
import time
import traceback
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import duckdb

from kvctl.collector.fold import Fold
from kvctl.collector.follower import Follower
from kvctl.collector.segment import Position, Record, SegmentLog
from kvctl.errors import KvctlError, SegmentError, StoreError
from kvctl.store.database import Database
from kvctl.store.writer import Writer
from telemetry.address import EngineAddress

BATCH_S = 0.15
"""DuckDB's price is per transaction; operators see rows this much later at most."""
BATCH_RECORDS = 2000
INBOX_RECORDS = 4000
RETRY_S = 1.0


class Collector:
    """Starts with what the segments hold, then follows engines until `close`.

    A disk that is full or a database that fails stops the intake, says so in `problem` and is tried
    again; the engines' replay rings and then gap rows take it from there.
    """

    def __init__(self, segments: Path, database: Database) -> None:
        self._database = database
        self._writer = Writer(database)
        done = self._writer.position()
        self._log = SegmentLog(segments, after=done[0] if done else 0)
        self._fold = Fold()
        self.problem = ""
        self._inbox: queue.Queue[Record] = queue.Queue(INBOX_RECORDS)
        self._waiting: dict[str, Future[None]] = {}
        self._followers: list[Follower] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._catch_up()
        self._thread = threading.Thread(target=self._run, name="keeper")
        self._thread.start()

    @property
    def notes(self) -> list[str]:
        """What was found wrong with the segments."""
        return self._log.problems

    def follow(self, address: EngineAddress) -> None:
        """Collect from this engine too; once is enough."""
        with self._lock:
            if all(follower.address != address for follower in self._followers):
                resume = self._fold.resume(str(address))
                self._followers.append(Follower(address, self._inbox, resume))

    def followers(self) -> list[Follower]:
        with self._lock:
            return list(self._followers)

    def record(self, action: dict[str, Any], timeout_s: float = 5.0) -> None:
        """Keep what an operator did; returns when it is in segment and table. `action["id"]` is its
        key. Raises StoreError when it could not be kept in time."""
        kept: Future[None] = Future()
        self._waiting[action["id"]] = kept
        try:
            self._inbox.put(Record({"kind": "action", "action": action}), timeout=timeout_s)
            kept.result(timeout_s)
        except (queue.Full, TimeoutError):
            raise StoreError(
                f"action {action['id']} is not on record yet: {self.problem}"
            ) from None
        finally:
            self._waiting.pop(action["id"], None)

    def close(self) -> None:
        """Stop following, keep what has arrived."""
        for follower in self.followers():
            follower.stop()
        self._stop.set()
        self._thread.join()
        self._log.close()

    def _catch_up(self) -> None:
        """Fold every segment; write what the tables lack."""
        done = self._writer.position()
        known: list[tuple[Position, Record]] = []
        new: list[tuple[Position, Record]] = []
        for position, record in self._log.replay():
            batch = known if done and (position.segment, position.offset) <= done else new
            if (batch is new and known) or len(batch) >= BATCH_RECORDS:
                self._catch_up_batch(known, new)
            batch.append((position, record))
        self._catch_up_batch(known, new)

    def _catch_up_batch(
        self, known: list[tuple[Position, Record]], new: list[tuple[Position, Record]]
    ) -> None:
        if known:
            self._fold.apply(known)
            known.clear()
        if new:
            self._writer.write(self._fold.apply(new))
            new.clear()

    def _run(self) -> None:
        try:
            self._keep()
        except Exception as error:
            # Not to be silent about: from here on the engines' rings fill, then gaps open.
            self.problem = f"collecting has stopped, restart the server: {error!r}"
            traceback.print_exc()

    def _keep(self) -> None:
        while batch := self._take():
            positions = self._persist(batch)
            if positions is None:
                return
            self._store(list(zip(positions, batch, strict=True)))
            for record in batch:
                if record.header["kind"] == "action" and (
                    kept := self._waiting.get(record.header["action"]["id"])
                ):
                    kept.set_result(None)

    def _take(self) -> list[Record]:
        """The next batch; empty only when stopped and nothing is left."""
        batch: list[Record] = []
        until = 0.0
        while len(batch) < BATCH_RECORDS:
            stopping = self._stop.is_set()
            try:
                wait = 0.0 if stopping else max(0.0, until - time.monotonic()) if batch else 0.1
                batch.append(self._inbox.get(timeout=wait) if wait else self._inbox.get_nowait())
            except queue.Empty:
                if batch or stopping:
                    break
            if len(batch) == 1:
                until = time.monotonic() + BATCH_S
        return batch

    def _persist(self, batch: list[Record]) -> list[Position] | None:
        while True:
            try:
                positions = self._log.append(batch)
                self.problem = ""
                return positions
            except SegmentError as error:
                self.problem = str(error)
                if self._stop.wait(RETRY_S):
                    return None

    def _store(self, batch: list[tuple[Position, Record]]) -> None:
        rows = self._fold.apply(batch)
        while True:
            try:
                self._writer.write(rows)
                self.problem = ""
                return self._tell()
            except duckdb.FatalException as error:
                # The open database is void. What it lost is in the segments.
                self.problem = f"the database failed and was opened again: {error}"
                if self._reopen():
                    return self._tell()
            except duckdb.Error as error:
                self.problem = f"the tables cannot be written, segments can: {error}"
            if self._stop.wait(RETRY_S):
                return

    def _tell(self) -> None:
        """Whoever measures how far the tables are behind learns what they have."""
        for follower in self.followers():
            if stored := self._fold.resume(str(follower.address)):
                follower.lag.stored(*stored)

    def _reopen(self) -> bool:
        try:
            self._database.reopen()
            self._writer, self._fold = Writer(self._database), Fold()
            self._catch_up()
        except (duckdb.Error, KvctlError) as error:
            self.problem = f"the database cannot be opened again: {error}"
            return False
        return True
