"""Whatever a child does, leaving the block ends it, and its last words explain a failure."""

import signal

import pytest

from kvctl.demo import child
from kvctl.demo.child import Child
from kvctl.errors import NotEstablished


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(text):
        (tmp_path / "program.py").write_text(text)
        return "program"

    return write


def test_a_child_that_waits_ends_when_asked(module):
    with Child(module("print('up', flush=True); input()"), []) as process:
        assert process.process.stdout.readline() == "up\n"
    assert process.process.returncode == -signal.SIGTERM


def test_a_child_that_will_not_listen_is_killed(module, monkeypatch):
    monkeypatch.setattr(child, "GRACE_S", 0.2)
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); input()"
    with Child(module(deaf), []) as process:
        assert process.process.stdout.readline() == "up\n"
    assert process.process.returncode == -signal.SIGKILL


def test_a_child_ends_when_our_own_work_fails(module):
    with (
        pytest.raises(ZeroDivisionError),
        Child(module("input()"), []) as process,
    ):
        raise ZeroDivisionError
    assert process.process.returncode is not None


def test_a_failed_child_is_explained_by_its_last_words(module):
    with Child(module("import sys; sys.exit('no model named huge')"), []) as process:
        process.process.wait()
        error = process.failure()
    assert isinstance(error, NotEstablished)
    assert str(error) == "program ended with status 1: no model named huge"
