"""Commands that make sense, as an engine that has kept track would give them."""

import random
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime._core import Action, Commit, Core, CoreError, Match, Outcome, Reservation, page_digests
from tests.fuzz import hostile

TIERS = ("device", "host", "storage")
Call = tuple[list[Any], dict[str, Any]]


class Commands:
    """Arguments of every method of one core, from what its answers said. `now` is the clock."""

    def __init__(self, core: Core, rng: random.Random, config: dict[str, Any]) -> None:
        self.core, self.rng, self.config = core, rng, config
        self.page_size: int = config["page_size"]
        self.now = 0
        self.texts: list[list[int]] = [[]]
        self.receipts: dict[int, tuple[list[int], int, str]] = {}
        """Receipt -> (text, pages held, session)."""
        self.ops: dict[int, tuple[int, int, int]] = {}
        """Reservation -> (receipt, start, pages)."""
        self.moves: list[Action] = []
        self.leases: list[int] = []
        self.names = sorted(name.removeprefix("plan_") for name in dir(self) if "plan_" in name)
        self.block = 0
        self.journal = b""
        """What has been drained of it."""

    def plan(self, name: str) -> Call:
        self.now += 1
        args, options = getattr(self, f"plan_{name}")()
        return args, {key: value for key, value in options.items() if self.rng.random() < 0.7}

    def heard(self, name: str, args: Sequence[Any], answer: Any) -> None:
        """What an answer to a planned call tells."""
        # An array without dimensions is a number, too.
        args = [arg.item() if isinstance(arg, np.ndarray) and not arg.ndim else arg for arg in args]
        if isinstance(answer, Match) and answer.receipt:
            self.receipts[answer.receipt] = (self.text, answer.pages, args[1])
        elif name == "hold":
            self.receipts[answer] = self.receipts.get(args[1], ([], 0, "s0"))
        elif isinstance(answer, Reservation):
            held = self.receipts.get(args[1], ([], 0, ""))[1]
            self.ops[answer.op] = (args[1], held, answer.pages)
        elif isinstance(answer, Commit) and name == "commit":
            receipt, *_ = self.ops.pop(args[1], (0, 0, 0))
            text, held, session = self.receipts.get(receipt, ([], 0, ""))
            self.receipts[receipt] = (text, max(held, args[3] + args[4]), session)
        elif isinstance(answer, Outcome) and answer.lease not in (0, *self.leases):
            self.leases.append(answer.lease)
        elif name == "drain_journal":
            self.journal += answer
        elif name == "actions":
            self.moves += answer
        elif name == "complete":
            self.moves = [move for move in self.moves if move.op != args[1]]
        elif name == "abort":
            self.ops.pop(args[1], None)
        elif name == "release":
            self.receipts.pop(args[1], None)
        elif name == "unpin":
            self.leases.remove(args[1])

    # what arguments are made of

    def among(self, values: Sequence[Any], otherwise: Any = 0) -> Any:
        return self.rng.choice(values) if values else otherwise

    def session(self) -> str:
        return f"s{self.rng.randrange(4)}"

    def tier(self) -> str:
        return self.rng.choice(TIERS)

    def count(self) -> int:
        return self.rng.choice([0, 1, 1, 2, 3, 5, 9])

    def component(self) -> str:
        return self.rng.choice(["full", *(c for c in self.config["names"])])

    def prompt(self) -> list[int]:
        """One that continues, cuts short or leaves something said before."""
        text = self.rng.choice(self.texts)[: self.rng.randrange(40)]
        text = text + [self.rng.randrange(2) for _ in range(self.rng.randrange(9))]
        self.texts = [*self.texts[-20:], text]
        return text

    def key(self, text: list[int], skip: int = 0) -> Any:
        """A text as the core's key, in one of the shapes that carry it."""
        kind, size = self.config["key"], self.page_size
        if kind == "digests":
            chain = page_digests(array("I", text), size, "n")[skip:]
            return self.rng.choice([chain, b"".join(chain), bytearray(b"".join(chain))])
        if kind == "pairs":
            pairs = [(t, t + 1) for t in text[skip * size :]]
            flat = array("I", [t for pair in pairs for t in pair])
            return self.rng.choice([pairs, flat, np.array(flat).reshape(-1, 2)])
        tokens = array("I", text[skip * size :])
        return self.rng.choice([tokens, list(tokens), np.array(tokens), memoryview(tokens)])

    def blocks(self, count: int) -> list[int]:
        self.block += self.rng.randrange(count + 2)
        return [self.block % 64 + i for i in range(count)]

    # sessions and namespaces

    def plan_open_namespace(self) -> Call:
        return [self.now, f"n{self.rng.randrange(3)}"], {}

    def plan_retire(self) -> Call:
        return [self.now, self.rng.choice([1, 2, 3, 9])], {}

    def plan_open_session(self) -> Call:
        parent = self.rng.choice(["", "", self.session()])
        options = {"group": self.rng.choice(["", "g"]), "priority": self.rng.randrange(-2, 3)}
        return [self.now, self.session(), parent], options

    def plan_close_session(self) -> Call:
        return [self.now, self.session()], {}

    def plan_close_group(self) -> Call:
        return [self.now, "g"], {}

    def plan_expect(self) -> Call:
        return [self.now, self.session(), self.now + self.count()], {}

    # finding and holding

    def plan_match(self) -> Call:
        self.text = self.prompt()
        args = [self.now, self.session(), "r", self.key(self.text)]
        return args, {"namespace": self.rng.choice([0, 0, 0, 1])}

    def plan_acquire(self) -> Call:
        args, options = self.plan_match()
        if self.rng.random() < 0.3 and self.receipts:
            # As a turn does: only what is new since the session's last path.
            text, held, session = self.rng.choice(list(self.receipts.values()))
            self.text = text[: held * self.page_size] + self.prompt()
            args[1], args[3] = session, self.key(self.text, held)
            return args, {"skip": held}
        return args, {**options, "grid": self.rng.choice([1, 1, 2])}

    def plan_hold(self) -> Call:
        return [self.now, self.among(list(self.receipts))], {}

    plan_release = plan_hold

    def plan_restore(self) -> Call:
        args, options = self.plan_hold()
        return args, {"into": self.blocks(6)} if self.config["observed_device"] else options

    def plan_table(self) -> Call:
        return [self.among(list(self.receipts))], {"component": self.component()}

    plan_copies = plan_table

    def plan_keys(self) -> Call:
        return [self.among(list(self.receipts))], {}

    # computing

    def plan_reserve(self) -> Call:
        receipt = self.among(list(self.receipts))
        text, held, _ = self.receipts.get(receipt, ([], 0, ""))
        return [self.now, receipt, max(0, len(text) // self.page_size - held)], {}

    def plan_commit(self) -> Call:
        op = self.among(list(self.ops))
        receipt, start, pages = self.ops.get(op, (0, 0, 0))
        text = self.receipts.get(receipt, ([], 0, ""))[0]
        pages = min(pages, max(0, len(text) // self.page_size - start))
        return [self.now, op, self.key(text), start, pages], {}

    def plan_evict(self) -> Call:
        return [self.now, self.tier(), self.count(), self.component()], {}

    def plan_observe(self) -> Call:
        receipt = self.among(list(self.receipts))
        text, held, _ = self.receipts.get(receipt, ([], 0, ""))
        blocks = self.blocks(max(0, len(text) // self.page_size - held))
        options = {"component": self.component()}
        return [self.now, receipt, self.key(text), held, blocks], options

    def plan_forget(self) -> Call:
        return [self.now, self.blocks(self.count())], {"component": self.component()}

    def plan_abort(self) -> Call:
        op = self.among([*self.ops, *(move.op for move in self.moves)])
        return [self.now, op, self.rng.choice(["aborted", "timeout", ""])], {}

    # moving

    def plan_actions(self) -> Call:
        return [], {}

    def plan_complete(self) -> Call:
        move = self.among(self.moves, None)
        results = bytes(self.rng.choice([1, 1, 1, 0, 2]) for _ in range(move.pages if move else 1))
        options = {"bytes": self.count(), "duration": self.count(), "detail": "late"}
        return [self.now, move.op if move else 0, results], options

    def plan_damaged(self) -> Call:
        tier = self.tier()
        owner = self.among(self.core.resident(tier, "", self.component()), (0,))[0]
        return [self.now, tier, owner & 0xFFFFFFFF, owner >> 32], {}

    def plan_resident(self) -> Call:
        options = {"session": self.session(), "component": self.component()}
        return [self.tier()], options

    def plan_user(self) -> Call:
        return [self.count()], {}

    # hints

    def plan_pin(self) -> Call:
        return [self.now, self.session(), self.tier(), 1 + 7 * self.count(), "o"], {}

    def plan_unpin(self) -> Call:
        return [self.now, self.among(self.leases)], {}

    def plan_retain(self) -> Call:
        return [self.now, self.session(), 1 + self.count(), "o"], {}

    def plan_share(self) -> Call:
        return [self.now, self.session(), 1 + self.count(), 1 + self.count(), "o"], {}

    def plan_demote(self) -> Call:
        return [self.now, self.session(), "o"], {}

    plan_prefetch = plan_flush = plan_demote

    def plan_tick(self) -> Call:
        self.now += self.count()
        return [self.now], {}

    def plan_note(self) -> Call:
        kind, phase = self.rng.choice([("request", "start"), ("tool", "end"), ("canary", "check")])
        options = {
            "session": self.session(), "request": "r", "reason": "read", "cause": 1, "op": 1,
            "slot": 1, "pages": 1, "tokens": 2, "bytes": 3, "duration": 4, "tier_from": "host",
            "tier_to": self.tier(), "detail": "d",
        }  # fmt: skip
        return [self.now, kind, phase], options

    # looking

    def plan_session(self) -> Call:
        return [self.session()], {}

    plan_pools = plan_sessions = plan_seq = plan_state_hash = plan_observed_hash = plan_actions
    plan_check = plan_journal = plan_drain_journal = plan_actions

    def let_go(self) -> None:
        """Give back everything that is held: what a stopping engine does."""
        core = self.core
        sessions = [session.name for session in core.sessions()]
        for verb, names in [
            (core.abort, list(self.ops)),
            (core.release, list(self.receipts)),
            (core.unpin, self.leases),
            (core.close_session, sessions),
        ]:
            for name in names:
                try:
                    verb(self.now, name)
                except CoreError:
                    continue
        self.moves += core.actions()
        while self.moves:
            move = self.moves.pop()
            core.complete(self.now, move.op, bytes(move.pages))
            self.moves += core.actions()

    @staticmethod
    def spoil(rng: random.Random, call: Call) -> Call:
        """The same call with one argument that nobody asked for, one too many or one too few."""
        args, options = list(call[0]), dict(call[1])
        what = rng.random()
        if what < 0.04:
            args.append(hostile.anything(rng))
        elif what < 0.08 and args:
            args.pop()
        elif what < 0.1:
            options["nothing"] = 1
        elif options and what < 0.4:
            options[rng.choice(list(options))] = hostile.anything(rng)
        elif args:
            place = rng.randrange(len(args))
            near = isinstance(args[place], int) and rng.random() < 0.5
            args[place] = rng.choice(hostile.EDGES) if near else hostile.anything(rng)
        return args, options
