"""Puts an engine's messages in order: the pure half of a subscriber, without sockets or clock.

Live messages above a hole are held back until the hole is filled by replay or known to be lost, so
what comes out is always in order, each once. Whether a hole is lost is decided at the end of an
answer: it is when the answer began above it, or when a later message was already known as the
question was asked. Otherwise the missing message may be younger than the question, and it is asked
again.
"""

from __future__ import annotations

from telemetry.message import Epoch, Gap, Header, Item, Message

HELD_MAX = 20_000
"""Messages held back above a hole before it is given up."""
ATTEMPTS = 3
"""Unanswered questions before a hole is given up."""


class Sequence:
    """`wanted` is the replay to ask for now, or None; `asked()` says that it was."""

    def __init__(self, resume: tuple[str, int] | None = None) -> None:
        """resume: epoch and number of the last message that is safe already."""
        self.epoch, self.next = (resume[0], resume[1] + 1) if resume else ("", 0)
        # The last safe message again: it tells whether the epoch is still the same.
        self.wanted: int | None = max(self.next - 1, 0)
        self.duplicates = 0
        self.bad = 0
        self._known = -1
        self._known_when_asked = -1
        self._answer_first: int | None = None
        self._asking = False
        self._attempts = 0
        self._asked_from = 0
        self._life: bytes | None = None
        self._held: dict[int, Message] = {}
        self._past: set[str] = set()

    def live(self, message: Message) -> list[Item]:
        header = message.header
        if header.epoch in self._past:
            self.duplicates += 1
            return []
        begun = self._begin(header) if header.epoch != self.epoch else []
        self._known = max(self._known, message.number)
        if message.number < self.next or message.number in self._held:
            self.duplicates += 1
        else:
            self._held[message.number] = message
        return begun + self._advance()

    def replayed(self, message: Message) -> list[Item]:
        items = self.live(message)
        self._attempts = 0
        if self._answer_first is None and message.header.epoch == self.epoch:
            self._answer_first = message.number
        return items

    def damaged(self, number: int, why: str) -> list[Item]:
        """A payload that cannot be read. Only the next one is given up for it: a number that makes
        no sense must not open a hole."""
        self.bad += 1
        if number != self.next:
            return []
        self.next += 1
        return [Gap(self.epoch, number, number, f"bad payload: {why}"), *self._advance()]

    def heartbeat(self, last: int, life: bytes) -> list[Item]:
        """last: highest number that the engine has sent, -1 for none. life: changes with the
        publisher, so that a restart is noticed even when the engine is idle or numbers agree."""
        if life != self._life:
            restarted = self._life is not None or last < self.next - 1
            self._life = life
            self.wanted = 0 if restarted else max(self.next - 1, 0)
        elif last >= self.next:
            self._known = max(self._known, last)
            return self._advance()
        return []

    def asked(self) -> int:
        start = self.wanted if self.wanted is not None else self.next
        self.wanted, self._asking, self._answer_first = None, True, None
        self._asked_from = start
        self._known_when_asked = self._known
        return start

    def answered(self) -> list[Item]:
        """The answer has ended."""
        self._asking, self._attempts = False, 0
        first = self._answer_first
        begins_above = first is not None and first > self.next >= self._asked_from
        items: list[Item] = []
        if self._known_when_asked >= self.next or begins_above:
            items = self._lose(self._known_when_asked, "no longer in the replay ring")
        return items + self._advance()

    def unanswered(self) -> list[Item]:
        """The answer did not come, or stopped coming."""
        self._asking = False
        self._attempts += 1
        items: list[Item] = []
        if self._attempts >= ATTEMPTS and self._held:
            self._attempts = 0
            items = self._lose(self._known, "replay unanswered")
        return items + self._advance()

    @property
    def said(self) -> int:
        """Highest number that the engine is known to have sent in this epoch; -1 for none."""
        return max(self._known, self.next - 1)

    @property
    def asking(self) -> bool:
        return self._asking

    def _advance(self) -> list[Item]:
        items: list[Item] = []
        while (message := self._held.pop(self.next, None)) is not None:
            items.append(message)
            self.next += 1
        if len(self._held) > HELD_MAX:
            items += self._lose(self._known, f"more than {HELD_MAX} messages held back")
        if self._known >= self.next and not self._asking and self.wanted is None:
            self.wanted = self.next
        return items

    def _lose(self, known: int, reason: str) -> list[Item]:
        last = min(self._held) - 1 if self._held else known
        gap = Gap(self.epoch, self.next, last, reason)
        self.next = last + 1
        return [gap, *self._advance()]

    def _begin(self, header: Header) -> list[Item]:
        """Another epoch speaks. What the old one still owed is lost."""
        items: list[Item] = []
        if self.epoch:
            self._past.add(self.epoch)
            while self._known >= self.next:
                items += self._lose(self._known, "the engine is gone")
        self.epoch, self.next = header.epoch, 0
        self._known = self._known_when_asked = -1
        self._answer_first = None
        return [*items, Epoch(header.engine, header.epoch)]
