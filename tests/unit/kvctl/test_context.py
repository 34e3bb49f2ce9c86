import os
import stat

import pytest

from kvctl.context import Context
from kvctl.errors import Unreachable, UsageError


def test_a_flag_beats_the_environment_beats_the_state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KVCTL_HOME", raising=False)
    assert Context.find(name="prod").home == tmp_path / "state" / "kvctl" / "prod"
    monkeypatch.setenv("KVCTL_HOME", str(tmp_path / "env"))
    assert Context.find().home == tmp_path / "env"
    assert Context.find(tmp_path / "flag").home == tmp_path / "flag"


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b"])
def test_a_context_name_is_no_path(name, monkeypatch):
    monkeypatch.delenv("KVCTL_HOME", raising=False)
    with pytest.raises(UsageError, match="a plain name"):
        Context.find(name=name)


def test_one_server_at_a_time_and_only_its_owner_reads(tmp_path):
    context = Context.find(tmp_path / "c")
    assert not context.running()
    lock = context.lock()
    assert stat.S_IMODE(context.home.stat().st_mode) == 0o700
    assert context.running()
    with pytest.raises(UsageError, match="runs already"):
        context.lock()
    os.close(lock)
    assert not context.running()
    os.close(context.lock())


def test_a_dead_servers_card_is_not_believed(tmp_path):
    context = Context.find(tmp_path)
    lock = context.lock()
    context.announce("ipc:///x", 7)
    assert context.server() == {"pid": os.getpid(), "endpoint": "ipc:///x", "started": 7}
    os.close(lock)
    with pytest.raises(Unreachable, match="kvctl serve"):
        context.server()


def test_a_server_that_is_not_ready_yet_is_unreachable(tmp_path):
    context = Context.find(tmp_path)
    lock = context.lock()
    with pytest.raises(Unreachable, match="not ready"):
        context.server()
    for text in ("{", "{}", "[]", '{"endpoint": 5}'):
        (tmp_path / "server.json").write_text(text)
        with pytest.raises(Unreachable, match="not ready"):
            context.server()
    os.close(lock)


def test_a_server_that_has_ended_leaves_no_socket(tmp_path):
    context = Context.find(tmp_path)
    endpoint, short = context.socket()
    path = tmp_path / endpoint.removeprefix(f"ipc://{tmp_path}/")
    path.touch()
    context.withdraw(short)
    assert not path.exists()


def test_a_path_too_long_for_a_socket_gets_a_short_private_one(tmp_path):
    context = Context.find(tmp_path / ("x" * 120))
    context.make()
    endpoint, short = context.socket()
    assert short is not None
    assert len(endpoint) < 107
    assert stat.S_IMODE(short.stat().st_mode) == 0o700
    context.withdraw(short)
    assert not short.exists()


def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="context directory"):
        Context.find(tmp_path / "file" / "sub").make()
