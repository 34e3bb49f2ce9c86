"""What an operator can ask of an engine: verbs, their arguments, and what they answer.

Runs on the engine's thread, from `TieredCache.step`. The socket is `runtime.control`'s.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime import errors

if TYPE_CHECKING:
    from runtime._core import Outcome
    from runtime.cache import TieredCache

Args = dict[str, Any]
Result = dict[str, Any]

TIERS = ("device", "host", "storage")
NAME_MAX = 256
"""Characters of a session's or an owner's name."""
TTL_MAX_DAYS = 30
TTL_MAX_S = TTL_MAX_DAYS * 24 * 3600


class Refused(Exception):
    """An answer that is an error: a code for programs, a message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Verb(NamedTuple):
    run: "Callable[[TieredCache, Args], Result]"
    args: tuple[str, ...] = ()
    acts: bool = False
    """Changes something, so it must say which epoch of the engine it means."""


def validate(verb: Any, args: Args) -> None:
    """Refuse what no engine could run, before the engine is bothered."""
    if not isinstance(verb, str) or verb not in VERBS:
        raise Refused("unknown_verb", f"verb is {verb!r}; it must be one of {', '.join(VERBS)}.")
    spec = VERBS[verb]
    for name in (*spec.args, *(("epoch",) if spec.acts else ())):
        if name not in args:
            raise Refused("bad_request", f"{verb} needs {name!r}.")
        problem = _CHECKS[name](args[name])
        if problem:
            raise Refused("bad_request", f"{name} is {args[name]!r:.80}; it must be {problem}.")


def execute(cache: "TieredCache", verb: str, args: Args) -> Result:
    """Run a validated command; Refused when the engine cannot."""
    spec = VERBS[verb]
    if spec.acts and args["epoch"] != cache.epoch:
        raise Refused(
            "stale_epoch",
            f"epoch {args['epoch']!r} is over; the engine is at {cache.epoch!r}. Look again.",
        )
    try:
        return spec.run(cache, args)
    except errors.UnknownSession as error:
        raise Refused("unknown_session", str(error)) from error
    except errors.UnknownLease as error:
        raise Refused("unknown_lease", str(error)) from error
    except errors.NotResident as error:
        raise Refused("not_resident", str(error)) from error
    except errors.BadArgument as error:
        raise Refused("bad_request", str(error)) from error


def _ping(cache: "TieredCache", _: Args) -> Result:
    return {
        "engine": cache.engine,
        "epoch": cache.epoch,
        "page_size": cache.page_size,
        "seq": cache.core.seq(),
        "endpoints": cache.endpoints,
    }


def _sessions(cache: "TieredCache", _: Args) -> Result:
    names = ("lease", "tier", "owner", "pages", "expires")
    return {
        "sessions": [
            {
                "session": s.name,
                "parent": s.parent,
                "pages": s.pages,
                "device_pages": s.device_pages,
                "host_pages": s.host_pages,
                "storage_pages": s.storage_pages,
                "shared_pages": s.shared_pages,
                "last_use": s.last_use,
                "leases": [dict(zip(names, lease, strict=True)) for lease in s.leases],
            }
            for s in cache.core.sessions()
        ]
    }


def _pools(cache: "TieredCache", _: Args) -> Result:
    names = ("tier", "capacity", "used", "fenced", "free", "leased")
    return {"pools": [{n: getattr(pool, n) for n in names} for pool in cache.core.pools()]}


def _pin(cache: "TieredCache", args: Args) -> Result:
    ttl = int(args["ttl_s"] * 1e9)
    return _outcome(cache.core.pin(cache.now(), args["session"], args["tier"], ttl, args["owner"]))


def _unpin(cache: "TieredCache", args: Args) -> Result:
    cache.core.unpin(cache.now(), args["lease"])
    return {"lease": args["lease"]}


def _demote(cache: "TieredCache", args: Args) -> Result:
    return _outcome(cache.core.demote(cache.now(), args["session"], args["owner"]))


def _prefetch(cache: "TieredCache", args: Args) -> Result:
    return _outcome(cache.core.prefetch(cache.now(), args["session"], args["owner"]))


def _flush(cache: "TieredCache", args: Args) -> Result:
    outcome = _outcome(cache.core.flush(cache.now(), args["session"], args["owner"]))
    cache.forget_dropped()
    return outcome


def _sweep(cache: "TieredCache", _: Args) -> Result:
    return {"tiers": cache.sweep()}


def _inject(cache: "TieredCache", args: Args) -> Result:
    return cache.inject(args["hop"], args["session"])


def _check(cache: "TieredCache", _: Args) -> Result:
    try:
        cache.core.check()
    except errors.CoreError as error:
        raise Refused("check_failed", str(error)) from error
    return {"seq": cache.core.seq(), "state_hash": cache.core.state_hash()}


def _stop(cache: "TieredCache", _: Args) -> Result:
    cache.stop_requested = True
    return {"stopping": True}


def _outcome(outcome: "Outcome") -> Result:
    names = ("hint", "outcome", "reason", "pages", "asked", "pending", "lease", "seq")
    return {name: getattr(outcome, name) for name in names}


VERBS: dict[str, Verb] = {
    "ping": Verb(_ping),
    "sessions": Verb(_sessions),
    "pools": Verb(_pools),
    "check": Verb(_check),
    "pin": Verb(_pin, ("session", "tier", "ttl_s", "owner"), acts=True),
    "unpin": Verb(_unpin, ("lease",), acts=True),
    "demote": Verb(_demote, ("session", "owner"), acts=True),
    "prefetch": Verb(_prefetch, ("session", "owner"), acts=True),
    "flush": Verb(_flush, ("session", "owner"), acts=True),
    "sweep": Verb(_sweep, acts=True),
    "inject": Verb(_inject, ("hop", "session"), acts=True),
    "stop": Verb(_stop, acts=True),
}


def _name(value: Any) -> str:
    ok = isinstance(value, str) and 0 < len(value) <= NAME_MAX and value.isprintable()
    return "" if ok else f"a printable text of 1 to {NAME_MAX} characters"


def _tier(value: Any) -> str:
    return "" if value in TIERS else f"one of {', '.join(TIERS)}"


def _ttl(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    ok = number and 0 < value <= TTL_MAX_S
    return "" if ok else f"seconds, more than 0 and at most {TTL_MAX_S} ({TTL_MAX_DAYS} days)"


def _lease(value: Any) -> str:
    ok = type(value) is int and 0 < value < 1 << 63
    return "" if ok else "the number of a lease"


_CHECKS: dict[str, Callable[[Any], str]] = {
    "session": _name,
    "owner": _name,
    "epoch": _name,
    "tier": _tier,
    "hop": _tier,
    "ttl_s": _ttl,
    "lease": _lease,
}
