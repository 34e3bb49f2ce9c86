"""`kvctl serve`: one process that collects, keeps and answers."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import zmq

from kvctl.collector.collector import Collector
from kvctl.context import Context
from kvctl.control import act
from kvctl.errors import KvctlError, UsageError
from kvctl.store.database import Database
from kvctl.store.store import Store
from kvctl.verbs import ACTING, answer
from telemetry.address import EngineAddress
from telemetry.errors import BadAddress

REQUEST_BYTES_MAX = 1 << 20
POLL_MS = 200
SLOW = ("sql", *ACTING)
"""Verbs with threads of their own: they may take seconds, and screens must not wait behind them."""


class Server:
    """Owns the context from construction to `run`'s end. UsageError when another server has it."""

    def __init__(self, context: Context, engines: list[str]) -> None:
        addresses = [_address(engine) for engine in engines]
        self.context = context
        self._lock = context.lock()
        self._started = time.time_ns()
        self._stop = threading.Event()
        self._database = Database(context.database)
        self._collector = Collector(context.segments, self._database)
        for address in addresses:
            self._collector.follow(address)
        self.store = Store(self._database.cursor, self._about, self._live)
        self._quick = ThreadPoolExecutor(2, thread_name_prefix="verb")
        self._slow = ThreadPoolExecutor(4, thread_name_prefix="slow-verb")
        self._outbox: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_out.setblocking(False)

    def stop(self, *_: object) -> None:
        """From any thread or signal handler."""
        self._stop.set()

    def run(self, ready: Callable[[str], None] = lambda endpoint: None) -> None:
        """Serve until `stop` or the verb shutdown. `ready` is called once, with the endpoint."""
        endpoint, short = self.context.socket()
        zmq_context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        router = zmq_context.socket(zmq.ROUTER)
        router.setsockopt(zmq.MAXMSGSIZE, REQUEST_BYTES_MAX)
        try:
            router.bind(endpoint)
            self.context.announce(endpoint, self._started)
            ready(endpoint)
            poller = zmq.Poller()
            poller.register(router, zmq.POLLIN)
            poller.register(self._wake_out, zmq.POLLIN)
            while not self._stop.is_set():
                events = dict(poller.poll(POLL_MS))
                if router in events:
                    self._accept(router.recv_multipart())
                self._send(router)
            self._quick.shutdown()
            self._send(router)
        finally:
            self.context.withdraw(short)
            self._close()
            zmq_context.destroy(linger=500)
            os.close(self._lock)

    def _close(self) -> None:
        self._collector.close()
        self._quick.shutdown(cancel_futures=True)
        self._slow.shutdown(cancel_futures=True)
        self._database.close()
        self._wake_in.close()
        self._wake_out.close()

    def _accept(self, frames: list[bytes]) -> None:
        identity, body = frames[0], frames[-1]
        try:
            request = json.loads(body)
            request_id, verb, args = request["id"], request["verb"], request.get("args") or {}
            if not (isinstance(verb, str) and isinstance(args, dict)):
                raise TypeError("verb is text, args an object")
        except (ValueError, KeyError, TypeError) as error:
            self._reply(identity, None, UsageError(f"not a request: {error!r}"))
            return
        pool = self._slow if verb in SLOW else self._quick
        pool.submit(self._answer, identity, request_id, verb, args)

    def _answer(self, identity: bytes, request_id: object, verb: str, args: dict[str, Any]) -> None:
        try:
            self._reply(identity, request_id, self._do(verb, args))
        except KvctlError as error:
            self._reply(identity, request_id, error)
        except Exception as error:
            print(f"{verb} {args}: {error!r}", file=sys.stderr, flush=True)
            self._reply(identity, request_id, KvctlError(f"{verb} failed: {error!r}"))

    def _do(self, verb: str, args: dict[str, Any]) -> dict[str, Any]:
        if verb == "shutdown":
            self.stop()
            return {"stopping": True}
        if verb == "attach":
            address = _address(args.get("address"))
            self._collector.follow(address)
            return {"address": str(address)}
        if verb in ACTING:
            return act(self._collector, self.store, verb, args)
        return answer(self.store, verb, args)

    def _reply(
        self, identity: bytes, request_id: object, result: dict[str, Any] | KvctlError
    ) -> None:
        body: dict[str, Any] = {"v": 1, "id": request_id, "ok": not isinstance(result, KvctlError)}
        if isinstance(result, KvctlError):
            body["error"] = {"code": result.code, "message": str(result)}
        else:
            body["result"] = result
        self._outbox.put((identity, json.dumps(body, allow_nan=False).encode()))
        try:
            self._wake_in.send(b"!")
        except OSError:
            return  # full or closing: the loop wakes up by itself

    def _send(self, router: zmq.Socket[bytes]) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_out.recv(4096)
        while True:
            try:
                router.send_multipart(self._outbox.get_nowait())
            except queue.Empty:
                return

    def _about(self) -> dict[str, Any]:
        problems = [self._collector.problem, self._database.aside, *self._collector.notes]
        problems += [follower.problem for follower in self._collector.followers()]
        return {
            "mode": "live",
            "source": str(self.context.home),
            "pid": os.getpid(),
            "started": self._started,
            "problem": "; ".join(problem for problem in problems if problem),
        }

    def _live(self) -> dict[str, dict[str, Any]]:
        return {
            str(follower.address): {
                "epoch": follower.epoch,
                "state": follower.state,
                "lag_ms": follower.lag.ms(),
                "bad": follower.bad,
            }
            for follower in self._collector.followers()
        }


def _address(text: object) -> EngineAddress:
    if not isinstance(text, str):
        raise UsageError(f"engine address {text!r}: tcp://127.0.0.1:PORT")
    try:
        return EngineAddress.parse(text)
    except BadAddress as error:
        raise UsageError(str(error)) from error


def _attend(server: Server) -> None:
    """Whoever started us holds the other end of stdin, and may be killed without a word."""
    # Not sys.stdin: a thread that waits inside it cannot be left behind when the process ends.
    while os.read(0, 4096):
        pass
    server.stop()


def main(argv: list[str] | None = None) -> int:
    """`python -m kvctl.server --home DIR [ENGINE…]`: what a detached server runs."""
    parser = argparse.ArgumentParser(prog="python -m kvctl.server", description=__doc__)
    parser.add_argument("--home", help="context directory")
    parser.add_argument("--attended", action="store_true", help="end when stdin does")
    parser.add_argument("engines", nargs="*", help="engine addresses")
    args = parser.parse_args(argv)
    try:
        server = Server(Context.find(args.home), args.engines)
    except KvctlError as error:
        print(f"kvctl serve: {error}", file=sys.stderr)
        return int(error.exit)
    signal.signal(signal.SIGTERM, server.stop)
    signal.signal(signal.SIGINT, server.stop)
    if args.attended:
        threading.Thread(target=_attend, args=(server,), name="stdin", daemon=True).start()
    server.run(lambda endpoint: print(f"serving {endpoint}", file=sys.stderr, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
