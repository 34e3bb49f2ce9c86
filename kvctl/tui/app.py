"""The application: which screen is up, when it is asked for, and what the keys do."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from textual import work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen

from kvctl.actions import BY_NAME, SESSION_ACTIONS, Action, allowed, perform
from kvctl.duration import seconds
from kvctl.errors import KvctlError, UsageError
from kvctl.phrase import outcome
from kvctl.source import Source
from kvctl.text import plain
from kvctl.tui.dialogs import Confirm, Page
from kvctl.tui.help import help_page
from kvctl.tui.screens.engines import EnginesView
from kvctl.tui.screens.events import EventsView
from kvctl.tui.screens.session import SessionView
from kvctl.tui.screens.sessions import SessionsView, why_lines
from kvctl.tui.screens.view import Target, View
from kvctl.tui.snapshot import Question, Snapshot, take
from kvctl.tui.widgets.grid import Grid
from kvctl.tui.widgets.prompt import Prompt

POLL_PERIOD_S = 0.5
PIN_TIER = "host"
PIN_TTL_S = 600
VIEWS: Mapping[str, type[View]] = {
    view.NAME: view for view in (EnginesView, SessionsView, EventsView)
}
OUTCOME_STYLES = {"accepted": "$success", "clipped": "$warning", "deferred": "$warning"}


class KvctlApp(App[None]):
    TITLE = "kvctl"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"view('{name}')", name, show=False)
            for number, name in enumerate(VIEWS, start=1)
        ),
        *(Binding(action.key, f"act('{action.name}')", action.name) for action in SESSION_ACTIONS),
        Binding("slash", "prompt('/')", "filter", key_display="/"),
        Binding("colon", "prompt(':')", "command", key_display=":"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("escape", "up", "back", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(
        self, source: Source, *, read_only: bool = False, remark: Callable[[], str] = str
    ) -> None:
        super().__init__()
        self._source = source
        self._remark = remark
        # Nothing can be done to what only a file remembers.
        self.read_only = read_only or not source.live
        self._polling = False
        self._latest: Snapshot | None = None

    def on_mount(self) -> None:
        for name, view in VIEWS.items():
            self.install_screen(view(self.commands()), name)
        self.push_screen("sessions")
        self.call_after_refresh(self._entered)
        self.set_interval(POLL_PERIOD_S, self.poll)
        # From the loop: an exception raised wherever the signal finds us would leave Textual's
        # output thread waiting for ever.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)

    def commands(self) -> list[str]:
        return [*VIEWS, *BY_NAME, "help", "theme", "quit"]

    @property
    def view(self) -> View | None:
        """The topmost screen that shows rows; dialogs lie above it."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, View)), None)

    # polling

    def poll(self) -> None:
        """Ask for what the current screen shows, unless an earlier question is still out."""
        if not self._polling and (view := self.view) is not None:
            self._polling = True
            self._fetch(view, view.questions())

    @work(thread=True, group="poll", exit_on_error=False)
    def _fetch(self, view: View, questions: Mapping[str, Question]) -> None:
        snapshot = take(self._source, questions)
        self.call_from_thread(self._received, view, questions, snapshot)

    def _received(self, view: View, questions: Mapping[str, Question], snapshot: Snapshot) -> None:
        self._polling = False
        self._latest = snapshot
        if (current := self.view) is None:
            return
        self.draw_status(current)
        # What was asked for another screen, or for another filter, is no answer to this one.
        if current is view and _same(view, questions):
            view.receive(snapshot)
        else:
            self.poll()

    def draw_status(self, view: View) -> None:
        view.status_bar.show(self._source.name, self.read_only, self._latest)
        view.remark(self._remark())

    # moving about

    def action_view(self, name: str) -> None:
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(name)
        self.call_after_refresh(self._entered)

    def action_up(self) -> None:
        if isinstance(self.screen, SessionView):
            self.pop_screen()
            self.call_after_refresh(self._entered)
        elif self.view is not None and self.view.filter:
            self.view.filter_by("")

    def _entered(self) -> None:
        if (view := self.view) is not None:
            self.draw_status(view)
            self.refresh_bindings()
            self.poll()

    def on_grid_selected(self, event: Grid.Selected) -> None:
        view = self.view
        target = view.target() if view is not None else None
        if target is not None and not isinstance(view, SessionView):
            self.push_screen(SessionView(self.commands(), target))
            self.call_after_refresh(self._entered)

    def on_grid_highlighted(self) -> None:
        if self.view is not None:  # No screen is left when the application is closing.
            self.refresh_bindings()
            self.poll()

    def action_prompt(self, kind: str) -> None:
        if (view := self.view) is not None:
            view.prompt.open(kind, view.filter if kind == "/" else "")

    def action_help(self) -> None:
        self.push_screen(Page("help", help_page(self.read_only)))

    # acting

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Greys what read-only mode, or a row without a session, does not allow."""
        if isinstance(self.screen, Confirm | Page) and action != "quit":
            return False
        if action == "act":
            offered = allowed(BY_NAME[str(parameters[0])], self.read_only)
            has_target = self.view is not None and self.view.target() is not None
            return True if offered and has_target else None
        return True

    def action_act(self, name: str) -> None:
        self.act(BY_NAME[name], {})

    def act(self, action: Action, args: dict[str, Any]) -> None:
        """Do it to what the cursor is on, after a confirmation when it is dangerous."""
        target = self.view.target() if self.view is not None else None
        if not allowed(action, self.read_only):
            self.say(f"{action.name} changes the cluster, and this is read-only", "$warning")
        elif target is None:
            self.say(f"{action.name} needs a session: put the cursor on one", "$warning")
        elif action.dangerous:
            self._confirm(action, target, args)
        else:
            self._start(action, target, args)

    def _confirm(self, action: Action, target: Target, args: dict[str, Any]) -> None:
        engine, session = target
        question = Content(
            f"This will {action.summary}:\n{plain(session)} on {plain(engine)}.\n"
            "Its next request computes everything again. Type the session's name to go on."
        )
        dialog = Confirm(action.name, question, plain(session))
        self.push_screen(
            dialog,
            lambda yes: self._start(action, target, args) if yes else self.say("nothing done"),
        )

    def _start(self, action: Action, target: Target, args: dict[str, Any]) -> None:
        if action.name == "pin":
            args = {"tier": PIN_TIER, "ttl_s": PIN_TTL_S, **args}
        self.say(f"{action.name} {plain(target[1])} …", "dim")
        self._perform(action, target, args)

    @work(thread=True, group="act", exit_on_error=False)
    def _perform(self, action: Action, target: Target, args: dict[str, Any]) -> None:
        engine, session = target
        tell = partial(self.call_from_thread, self._performed, action, session)
        try:
            for answer in perform(self._source, action.name, session, engine, **args):
                tell(answer)
        except KvctlError as error:
            tell(error)

    def _performed(
        self, action: Action, session: str, answer: Mapping[str, Any] | KvctlError
    ) -> None:
        if isinstance(answer, KvctlError):
            self.say(f"{action.name} {plain(session)}: {plain(answer)}", "$error")
        elif action.acting:
            style = OUTCOME_STYLES.get(answer["outcome"], "$error")
            self.say(outcome(action.name, session, answer), style)
            self.poll()
        else:
            self.say("")
            self.push_screen(Page(f"why {plain(session)}", why_lines(answer)))

    def say(self, text: str, style: str = "") -> None:
        if (view := self.view) is not None:
            view.say(Content.styled(text, style))

    # commands

    def on_prompt_entered(self, event: Prompt.Entered) -> None:
        try:
            self._command(shlex.split(event.text))
        except (UsageError, ValueError) as error:
            self.say(plain(error), "$error")

    def _command(self, typed: list[str]) -> None:
        if not typed:
            return
        name, args = typed[0], typed[1:]
        if name in VIEWS:
            self.action_view(name)
        elif name in BY_NAME:
            self.act(BY_NAME[name], _arguments(name, args))
        elif name == "help":
            self.action_help()
        elif name in ("quit", "q"):
            self.exit()
        elif name == "theme":
            self._theme(args[0] if args else "")
        else:
            raise UsageError(f"no command {name!r}; there are {', '.join(self.commands())}")

    def _theme(self, name: str) -> None:
        if name not in self.available_themes:
            raise UsageError(f"no theme {name!r}; there are {', '.join(self.available_themes)}")
        self.theme = name


def _arguments(name: str, args: list[str]) -> dict[str, Any]:
    """`:pin [TIER] [TTL]`; the other actions take none."""
    taken: dict[str, Any] = {}
    for word in args:
        if name == "pin" and word in ("device", "host"):
            taken["tier"] = word
        elif name == "pin":
            taken["ttl_s"] = seconds(word)
        else:
            raise UsageError(f"{name} takes no {word!r}: it acts on the session under the cursor")
    return taken


def _same(view: Screen[Any], questions: Mapping[str, Question]) -> bool:
    """The screen still asks this; another row under the cursor only outdates its `why`."""
    assert isinstance(view, View)
    now = view.questions()
    return {k: q for k, q in now.items() if k != "why"} == {
        k: q for k, q in questions.items() if k != "why"
    }
