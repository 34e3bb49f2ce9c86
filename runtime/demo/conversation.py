"""From a workload's text to prompts: what each session says next, in tokens.

A prompt is the conversation so far, with the model's own answers in it as the tokens it gave, so
that every turn's prompt begins with the whole of the turn before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.demo.workload import Turn, Workload


@dataclass(frozen=True)
class Ask:
    """One request: which session asks, and with what."""

    session: str
    parent: str
    turn: Turn
    prompt: list[int]


class Conversations:
    """All sessions of a workload, each at its own turn.

    encode: text to token ids, with <|im_start|> and <|im_end|> as single ones.
    """

    def __init__(self, workload: Workload, encode: Callable[[str], list[int]]) -> None:
        self._scripts = workload.scripts
        self._encode = encode
        self._after: dict[str, list[list[int]]] = {name: [] for name in workload.scripts}
        self._asked: dict[str, list[int]] = {}

    def next_turn(self, session: str) -> Turn | None:
        """What the session will say when it asks next; None when it has said everything."""
        turns = self._scripts[session].turns
        said = len(self._after[session])
        return turns[said] if said < len(turns) else None

    def ask(self, session: str) -> Ask:
        """The session's next request. Answer it with `answered` before it asks again."""
        script = self._scripts[session]
        turn = script.turns[len(self._after[session])]
        if self._after[session] and not script.forgets:
            so_far = self._after[session][-1]
        elif script.parent:
            so_far = self._after[script.parent][script.fork - 1]
        else:
            so_far = []
        if so_far:
            prompt = so_far + self._encode(_called(turn) + _said(turn))
        else:
            prompt = self._encode(f"<|im_start|>system\n{script.system}<|im_end|>\n" + _said(turn))
        self._asked[session] = prompt
        return Ask(session, script.parent, turn, prompt)

    def answered(self, session: str, tokens: Sequence[int]) -> None:
        """Put the model's answer, without an end token, into the session's conversation."""
        self._after[session].append(self._asked.pop(session) + list(tokens))


def _said(turn: Turn) -> str:
    speaker = "tool" if turn.tool else "user"
    return f"<|im_start|>{speaker}\n{turn.text}<|im_end|>\n<|im_start|>assistant\n"


def _called(turn: Turn) -> str:
    """The end of the assistant's message. So small a model calls no tools; the script does."""
    if not turn.tool:
        return "<|im_end|>\n"
    call = f'{{"name": "{turn.tool}", "arguments": {turn.arguments}}}'
    return f"\n<tool_call>\n{call}\n</tool_call><|im_end|>\n"
