"""The screens by keyboard, over recorded answers."""

import threading

import pytest
from helpers.recorded import RecordedSource, event, session

from kvctl.actions import SESSION_ACTIONS
from kvctl.errors import Refused, UsageError
from kvctl.tui.app import KvctlApp
from kvctl.tui.dialogs import Confirm, Page
from kvctl.tui.screens.events import TAIL_ROWS
from kvctl.tui.screens.session import SessionView

NARROW, WIDE = (80, 24), (120, 40)
SETTLE_TRIES = 250


def text_of(app):
    """What is on the screen, line by line."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def until(pilot, condition):
    """Run until the condition holds; say what was on the screen if it never does."""
    for _ in range(SETTLE_TRIES):
        if condition():
            return
        await pilot.pause(0.02)
    pytest.fail(f"never came true; on screen:\n{text_of(pilot.app)}")


async def see(pilot, *texts):
    await until(pilot, lambda: all(text in text_of(pilot.app) for text in texts))


async def command(pilot, line):
    await pilot.press("colon")
    pilot.app.view.prompt.value = line
    await pilot.press("enter")


@pytest.fixture
def source():
    return RecordedSource()


@pytest.mark.parametrize("size", [NARROW, WIDE])
@pytest.mark.parametrize("theme", ["textual-dark", "ansi-dark", "ansi-light"])
async def test_the_first_screen_says_where_pages_are_and_why_the_session_missed(
    source, size, theme
):
    app = KvctlApp(source)
    app.theme = theme
    async with app.run_test(size=size) as pilot:
        await see(pilot, "LIVE", "demo", "read-write", "lag 12.0 ms", "gaps 0", "trust exact")
        await see(pilot, "coder", "▇", "▅", "▃", "20%", "evicted", "IDLE")
        await see(pilot, "coder recomputed 256 of 640 tokens", "make room for request tester-r3")
        await see(pilot, *(f"{action.key} {action.name}" for action in SESSION_ACTIONS))
        await see(pilot, "/ filter", ": command", "? help", "q quit")


async def test_the_reason_follows_the_cursor(source):
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "coder recomputed")
        await pilot.press("j")
        await see(pilot, "planner recomputed")


async def test_numbers_change_the_screen(source):
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("1")
        await see(pilot, "ENGINE", "69%", "64 of 96 pages used", "tcp://127.0.0.1:5557")
        await pilot.press("3")
        await see(pilot, "KIND", "insert", "5 pages")
        await pilot.press("2")
        await see(pilot, "WHERE PAGES ARE")


async def test_what_the_caller_has_to_say_stands_beside_the_screens_names(source):
    said = ["playing"]
    app = KvctlApp(source, remark=lambda: said[-1])
    async with app.run_test(size=NARROW) as pilot:
        await see(pilot, "3 events", "playing")
        said.append("workload finished; engine stays until q")
        await see(pilot, said[-1])
        await pilot.press("3")
        await see(pilot, "KIND", said[-1])


async def test_enter_opens_a_session_and_esc_comes_back(source):
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "planner")
        await pilot.press("enter")
        await see(pilot, "> coder", "child of planner", "copies: 10 in device")
        await see(pilot, "coder-r1", "SAVED", "320", "900.0 ms")
        assert isinstance(app.screen, SessionView)
        await pilot.press("escape")
        await see(pilot, "WHERE PAGES ARE")


async def test_the_outcome_of_an_action_and_its_effect_are_seen(source):
    app = KvctlApp(source)
    source.sessions.reverse()
    source.sessions = source.sessions[1:]
    async with app.run_test(size=NARROW) as pilot:
        await see(pilot, "planner")
        await pilot.press("p")
        await see(pilot, "pin planner: accepted; 40 of 40 pages; lease 7", " host ")
        verb, args = source.done[0]
        assert verb == "pin"
        assert args == {"session": "planner", "engine": "e0", "tier": "host", "ttl_s": 600}
        await pilot.press("u")
        await until(pilot, lambda: len(source.done) == 2)
        assert source.done[1] == ("unpin", {"engine": "e0", "lease": 7})


async def test_a_refusal_is_shown_in_the_engines_words(source):
    source.refuses = Refused("stale_epoch", "epoch 'x' is over")
    app = KvctlApp(source)
    async with app.run_test(size=NARROW) as pilot:
        await see(pilot, "coder")
        await pilot.press("d")
        await see(pilot, "demote coder: epoch 'x' is over")


@pytest.mark.parametrize("how", ["key", "command"])
async def test_read_only_does_nothing_that_acts_and_greys_it(source, how):
    app = KvctlApp(source, read_only=True)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "coder", "read-only")
        for action in SESSION_ACTIONS:
            assert app.check_action("act", (action.name,)) is (None if action.acting else True)
            await (pilot.press(action.key) if how == "key" else command(pilot, action.name))
            if not action.acting:
                await until(pilot, lambda: isinstance(app.screen, Page))
                await pilot.press("escape")
            elif how == "command":
                await see(pilot, f"{action.name} changes the cluster, and this is read-only")
            assert not isinstance(app.screen, Confirm)
        await pilot.pause(0.2)
        assert source.done == []


@pytest.mark.parametrize("how", ["key", "command"])
async def test_every_action_has_a_key_and_a_name(source, how):
    lease = {"lease": 3, "tier": "host", "owner": "op", "pages": 1, "expires": 0}
    source.sessions = [session("planner", leases=[lease])]
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "planner")
        done = []
        for action in SESSION_ACTIONS:
            if action.acting and not action.dangerous:
                done.append(action.name)
                await (pilot.press(action.key) if how == "key" else command(pilot, action.name))
                await until(pilot, lambda: [verb for verb, _ in source.done] == done)
        assert len(done) > 3


async def test_pin_takes_a_tier_and_a_time_by_name(source):
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "coder")
        await command(pilot, "pin device 2h")
        await until(pilot, lambda: source.done)
        assert source.done[0][1]["tier"] == "device"
        assert source.done[0][1]["ttl_s"] == 7200


async def test_flush_wants_the_name_typed(source):
    app = KvctlApp(source)
    async with app.run_test(size=NARROW) as pilot:
        await see(pilot, "coder")
        await pilot.press("x")
        await see(pilot, "coder on e0", "Type the", "the name and press enter")
        await pilot.press(*"planner", "enter")
        await see(pilot, "that is not the name")
        await pilot.press("escape")
        await see(pilot, "nothing done")
        assert source.done == []
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press(*"coder", "enter")
        await until(pilot, lambda: [verb for verb, _ in source.done] == ["flush"])


async def test_keys_that_act_are_dead_while_a_dialog_is_open(source):
    app = KvctlApp(source)
    async with app.run_test(size=NARROW) as pilot:
        await see(pilot, "coder")
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Page))
        await see(pilot, *(f":{action.name}" for action in SESSION_ACTIONS))
        await pilot.press("p", "d", "x")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Page))
        assert source.done == []


async def test_why_opens_the_whole_answer(source):
    app = KvctlApp(source)
    async with app.run_test(size=NARROW) as pilot:
        await see(pilot, "coder")
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, Page))
        await see(pilot, "why coder", "They left the host 4.1 s earlier")
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, Page))


async def test_a_wrong_command_is_explained_and_does_nothing(source):
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "coder")
        for line, says in (
            ("nonsense", "no command 'nonsense'"),
            ("pin forever", "'forever' is not a duration"),
            ("demote now", "demote takes no 'now'"),
            ("theme x", "no theme 'x'"),
            ("pin 'x", "No closing quotation"),
        ):
            await command(pilot, line)
            await see(pilot, says)
        assert source.done == []


@pytest.mark.parametrize("screen", ["2", "3"])
async def test_any_text_can_be_a_filter(source, screen):
    texts = ["[", "[/]", "[red]x", "\ud800", "(", "\\"]
    names = ["planner", *(f"a{text}b" for text in texts)]
    source.sessions = [session(name) for name in names]
    source.events = [event(n, "match", session=name) for n, name in enumerate(names)]
    app = KvctlApp(source)

    def shown():
        return sorted(record["session"] for record in app.view.grid.records)

    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(screen)
        for text in texts:
            await until(pilot, lambda: shown() == sorted(names))
            await pilot.press("slash")
            app.view.prompt.value = text
            wanted = sorted(name for name in names if text in name)
            await until(pilot, lambda: shown() == wanted)  # noqa: B023 (waited for here)
            await pilot.press("enter", "escape")
        await until(pilot, lambda: shown() == sorted(names))


async def test_a_filter_that_names_nobody_is_answered_in_words(source):
    answer = source.ask

    def ask(verb, **args):
        if args.get("session") == "nobody":
            raise UsageError("no session 'nobody' is known")
        return answer(verb, **args)

    source.ask = ask
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("3", "slash")
        app.view.prompt.value = "session=nobody"
        await see(pilot, "no session 'nobody' is known")
        await pilot.press("escape")
        await see(pilot, "insert")


async def test_events_are_narrowed_by_the_server_and_by_words(source):
    source.events += [event(9, "evict", "lost", reason="pressure", tier_from="host", pages=3)]
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("3")
        await see(pilot, "insert", "from host, 3 pages, pressure")
        await pilot.press("slash")
        app.view.prompt.value = "kind=evict host"
        await until(pilot, lambda: "insert" not in text_of(app))
        await see(pilot, "from host, 3 pages, pressure", "/kind=evict host")
        narrowed = ("events", {"limit": TAIL_ROWS, "kind": "evict"})
        await until(pilot, lambda: narrowed in source.asked)


async def test_untrusted_names_are_shown_and_obeyed_nowhere(source):
    name = "[bold red]x[/]\x1b[2J"
    source.sessions = [session(name, parent=name, last_reason=name)]
    source.events = [event(1, "tool", session=name, detail=name)]
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "[bold red]x[/]\\x1b[2J")
        await pilot.press("w")
        await see(pilot, "recomputed")
        await pilot.press("escape", "enter")
        await until(pilot, lambda: isinstance(app.screen, SessionView))
        await see(pilot, "> [bold red]x[/]\\x1b[2J")
        await pilot.press("escape", "x")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape", "3")
        await see(pilot, "tool", "[bold red]x[/]\\x1b[2J")
        assert "\x1b" not in text_of(app)


async def test_a_dead_server_is_a_state_and_what_was_known_stays(source):
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "LIVE", "planner")
        source.dead = True
        await see(pilot, "UNREACHABLE", "no server answers", "planner")
        await pilot.press("p")
        await see(pilot, "pin coder: no server answers")
        source.dead = False
        await see(pilot, "LIVE")


async def test_a_slow_answer_blocks_no_key_and_reaches_no_other_screen(source):
    """Textualize/textual#3775: a handler that waits freezes the screen."""
    release, waiting = threading.Event(), threading.Event()
    answer = source.ask

    def slow(verb, **args):
        if verb == "sessions":
            waiting.set()
            release.wait(10)
        return answer(verb, **args)

    source.ask = slow
    app = KvctlApp(source)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, waiting.is_set)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Page))
        await pilot.press("escape", "1")
        await see(pilot, "ENGINE")
        release.set()
        await see(pilot, "64 of 96 pages used")


async def test_a_record_is_read_only_and_called_a_file():
    app = KvctlApp(RecordedSource(live=False))
    async with app.run_test(size=WIDE) as pilot:
        await see(pilot, "FILE", "read-only", "coder")
        assert app.check_action("act", ("pin",)) is None
        assert app.check_action("act", ("why",)) is True


async def test_nothing_known_yet_is_said(source):
    source.sessions = []
    source.events = []
    app = KvctlApp(source)
    async with app.run_test(size=NARROW) as pilot:
        await see(pilot, "no session yet")
        assert app.check_action("act", ("pin",)) is None
        await pilot.press("enter", "p")
        await command(pilot, "pin")
        await see(pilot, "needs a session")
        await pilot.press("3")
        await see(pilot, "no event yet")
