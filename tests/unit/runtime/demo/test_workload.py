"""The example workload is what its README says, and mistakes in one are named with their place."""

import shutil
from pathlib import Path

import pytest

from runtime.demo import workload
from runtime.demo.conversation import Conversations
from runtime.errors import WorkloadError

EXAMPLE = Path(__file__).parents[4] / "examples" / "agents"


@pytest.fixture(scope="module")
def plan():
    return workload.load(EXAMPLE)


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(EXAMPLE, tmp_path / "agents"))


def test_the_example_has_36_requests_from_about_ten_sessions_two_with_helpers(plan):
    parents = {script.parent for script in plan.scripts.values() if script.parent}
    assert plan.requests == 36
    assert 9 <= len(plan.scripts) <= 12
    assert len(parents) == 2
    assert any(turn.tool for turn in plan.scripts[plan.story].turns)


def test_a_prompt_begins_with_the_prompt_and_the_answer_before(plan):
    talk = Conversations(plan, _bytes)
    first = talk.ask("sql-slow")
    talk.answered("sql-slow", [1, 2, 3])
    second = talk.ask("sql-slow")
    assert second.prompt[: len(first.prompt) + 3] == [*first.prompt, 1, 2, 3]
    assert second.turn.tool == "shell"


def test_a_helper_begins_with_what_its_parent_knew_at_the_fork(plan):
    talk = Conversations(plan, _bytes)
    fork = plan.scripts["py-migrate/config"].fork
    for answer in range(fork + 1):
        before = talk.ask("py-migrate").prompt
        talk.answered("py-migrate", [answer])
        if answer == fork - 1:
            known = [*before, answer]
    one, two = talk.ask("py-migrate/config"), talk.ask("py-migrate/client")
    assert one.prompt[: len(known)] == two.prompt[: len(known)] == known
    assert one.prompt != two.prompt
    assert one.parent == "py-migrate"


def test_a_session_that_forgets_starts_from_its_system_prompt_each_time(plan):
    talk = Conversations(plan, _bytes)
    first = talk.ask("review-style").prompt
    talk.answered("review-style", [1])
    second = talk.ask("review-style").prompt
    system = len(plan.scripts["review-style"].system)
    assert first[:system] == second[:system]
    assert len(second) < len(first) + len(plan.scripts["review-style"].turns[1].text)


def test_nothing_follows_a_session_s_last_turn(plan):
    talk = Conversations(plan, _bytes)
    for _ in plan.scripts["cli-args"].turns:
        assert talk.next_turn("cli-args") is not None
        talk.ask("cli-args")
        talk.answered("cli-args", [])
    assert talk.next_turn("cli-args") is None


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("workload.toml", '"cli-args",', "", "'cli-args' has 3 turns, the order names it"),
        ("workload.toml", '"sql-slow", "api', '"sqlslow", "api', "'sqlslow', which is no session"),
        ("workload.toml", "fork = 2", "fork = 4", "before answer 4 of 'api-paging'"),
        ("workload.toml", "host_pages", "hostpages", "hostpages"),
        ("workload.toml", "answer_tokens", "answers", "'answer_tokens' is missing"),
        ("workload.toml", "[pools]", "[pools", "workload.toml"),
        ("sessions/cli-args.md", "## user", "## nobody", "must begin with '## user'"),
        ("sessions/cli-args.md", "## tool read_file {", "## tool\n{", "cli-args.md:4: write"),
        ("sessions/review.md", "retry.diff", "missing.diff", "missing.diff"),
    ],
)
def test_a_mistake_is_named_with_its_place(copy, file, old, new, says):
    path = copy / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(WorkloadError, match=says.replace("(", r"\(")):
        workload.load(copy)


def test_a_folder_without_an_index_is_refused(tmp_path):
    with pytest.raises(WorkloadError, match=r"workload\.toml"):
        workload.load(tmp_path)


def _bytes(text: str) -> list[int]:
    return list(text.encode())
