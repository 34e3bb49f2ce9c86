import argparse

import pytest

from kvctl.cli.settings import add_options, resolve
from kvctl.errors import UsageError


def settings(*argv, **environment):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return resolve(parser.parse_args(argv), environment)


def test_defaults():
    found = settings()
    assert (found.context, found.file, found.output) == ("", None, "table")
    assert (found.read_only, found.timeout_s) == (False, 10.0)


def test_a_flag_beats_the_environment_beats_the_default():
    assert settings(KVCTL_OUTPUT="csv").output == "csv"
    assert settings("-o", "json", KVCTL_OUTPUT="csv").output == "json"
    assert settings("--timeout", "3", KVCTL_TIMEOUT="7").timeout_s == 3
    assert settings(KVCTL_READ_ONLY="1").read_only
    assert settings("--read-only", KVCTL_READ_ONLY="0").read_only


@pytest.mark.parametrize(
    ("argv", "environment", "named"),
    [
        ((), {"KVCTL_OUTPUT": "yaml"}, "KVCTL_OUTPUT is 'yaml'"),
        ((), {"KVCTL_READ_ONLY": "maybe"}, "KVCTL_READ_ONLY is 'maybe'"),
        (("--timeout", "soon"), {}, "--timeout is 'soon'"),
        (("--timeout", "-1"), {}, "--timeout is '-1'"),
        (("--timeout", "nan"), {}, "--timeout is 'nan'"),
    ],
)
def test_a_wrong_value_is_named_with_where_it_came_from(argv, environment, named):
    with pytest.raises(UsageError) as refused:
        settings(*argv, **environment)
    assert named in str(refused.value)


def test_a_context_is_a_name_or_a_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("KVCTL_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert settings().home().home == tmp_path / "kvctl" / "default"
    assert settings("--context", "prod").home().home == tmp_path / "kvctl" / "prod"
    assert settings("--context", f"{tmp_path}/x").home().home == tmp_path / "x"
    monkeypatch.setenv("KVCTL_HOME", str(tmp_path / "home"))
    assert settings().home().home == tmp_path / "home"
    named = settings("--context", "prod").home()
    assert named.home == tmp_path / "kvctl" / "prod", "a flag beats the environment"
