"""Passes operators' commands on to engines, and keeps what was done."""

from __future__ import annotations

import getpass
import json
import socket
import time
import uuid
from typing import TYPE_CHECKING, Any

import zmq

from kvctl.errors import KvctlError, StoreError, Unreachable, UsageError, from_code
from kvctl.verbs import ACTING, DEFAULTS, check

if TYPE_CHECKING:
    from kvctl.collector.collector import Collector
    from kvctl.store.store import Store

TIMEOUT_S = 5.0
CONNECT_MS = 2000


def operator() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def act(collector: Collector, store: Store, verb: str, args: dict[str, Any]) -> dict[str, Any]:
    """The engine's answer plus engine, epoch and the action's id. What fails is kept as well."""
    check.names(args)
    args = DEFAULTS.get(verb, {}) | args
    who = args.pop("operator", None) or operator()
    engine, epoch = args.pop("engine", None), args.pop("epoch", None)
    known = ACTING[verb]
    if strange := sorted(set(args) - set(known)):
        raise UsageError(f"{verb} takes {', '.join(known) or 'nothing'}, not {', '.join(strange)}")
    begun, begun_ns = time.time_ns(), time.monotonic_ns()
    result: dict[str, Any] = {}
    failure: KvctlError | None = None
    try:
        engine, latest = check.epoch_of(store, engine, args.get("session"))
        epoch = epoch or latest
        where = _control_endpoint(collector, store, engine)
        command = {"v": 1, "verb": verb, **args, "owner": who, "epoch": epoch}
        result = _send(where, command, f"engine {engine!r}")
    except KvctlError as error:
        failure = error
    action = {
        "id": uuid.uuid4().hex[:12],
        "ts": begun,
        "engine": engine or "",
        "epoch": epoch or "",
        "operator": who,
        "verb": verb,
        "args": json.dumps(args, sort_keys=True),
        "ok": failure is None,
        "outcome": failure.code if failure else str(result.get("outcome") or "done"),
        "reason": str(result.get("reason") or ""),
        "detail": str(failure) if failure else json.dumps(result, sort_keys=True),
        "duration_ns": time.monotonic_ns() - begun_ns,
    }
    try:
        collector.record(action)
    except StoreError as error:
        raise StoreError(f"{verb}: {failure or action['outcome']}; but {error}") from error
    if failure is not None:
        raise failure
    return result | {"engine": engine, "epoch": epoch, "action": action["id"]}


def _control_endpoint(collector: Collector, store: Store, engine: str) -> str:
    address = store.one("SELECT address FROM latest WHERE engine = $e", {"e": engine})["address"]
    for follower in collector.followers():
        if str(follower.address) == address:
            return follower.address.control
    raise Unreachable(
        f"engine {engine!r} is a recording only, nobody follows it here; if it runs:"
        f" kvctl serve --detach --engine '{address}'"
    )


def _send(endpoint: str, command: dict[str, Any], name: str) -> dict[str, Any]:
    message_id = uuid.uuid4().hex
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    with context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.setsockopt(zmq.IMMEDIATE, 1)
        dealer.setsockopt(zmq.SNDTIMEO, CONNECT_MS)
        dealer.connect(endpoint)
        try:
            dealer.send(json.dumps(command | {"id": message_id}).encode())
        except zmq.Again:
            raise Unreachable(f"{name} is gone: nobody listens at {endpoint}") from None
        except (TypeError, ValueError) as error:
            raise UsageError(f"{command['verb']}: {error}") from error
        deadline = time.monotonic() + TIMEOUT_S
        while dealer.poll(max(0, int((deadline - time.monotonic()) * 1000))):
            answer = _parse(dealer.recv_multipart()[-1])
            if answer.get("id") != message_id:
                continue
            if answer.get("ok"):
                return answer.get("result") or {}
            refusal = answer.get("error") or {}
            raise from_code(refusal.get("code", "refused"), refusal.get("message", "refused"))
    raise Unreachable(f"{name} did not answer at {endpoint} within {TIMEOUT_S:g} s: stuck or gone")


def _parse(frame: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(frame)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
