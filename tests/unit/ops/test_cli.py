# SPDX-License-Identifier: Apache-2.0
import signal
import sys
import types
from typing import Any

import pytest
from priority_router import __version__
from priority_router.errors import SetupError
from priority_router.ops import cli, command_line


@pytest.fixture
def command(monkeypatch):
    """Puts a function in the place of the command `probe`."""

    def put(run):
        module: Any = types.ModuleType("stand_in")
        module.main = run
        monkeypatch.setitem(sys.modules, "stand_in", module)
        monkeypatch.setattr(cli, "COMMANDS", {"probe": ("stand_in", "help")})

    return put


def test_words_reach_the_command_untouched(command):
    command(lambda words: 7 if words == ["--a", "--", "-b"] else 1)
    assert cli.main(["probe", "--a", "--", "-b"]) == 7


def test_our_errors_become_one_line_and_status_1(command, capsys):
    def run(words):
        raise SetupError("no server here")

    command(run)
    assert cli.main(["probe"]) == 1
    assert capsys.readouterr().err == "priority-router probe: error: no server here\n"


def test_ctrl_c_is_status_130_and_no_traceback(command, capsys):
    def run(words):
        raise KeyboardInterrupt

    command(run)
    assert cli.main(["probe"]) == 130
    assert capsys.readouterr().err == "priority-router probe: stopped\n"


def test_sigterm_is_status_143_inside_and_as_before_outside(command, capsys):
    before = signal.getsignal(signal.SIGTERM)

    def run(words):
        with command_line.interrupted_by_sigterm():
            signal.raise_signal(signal.SIGTERM)

    command(run)
    assert cli.main(["probe"]) == 143
    assert capsys.readouterr().err == "priority-router probe: stopped\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_missing_extra_is_named_and_other_missing_modules_are_not_hidden(command, capsys):
    def run(words):
        raise ModuleNotFoundError("No module", name=words[0])

    command(run)
    assert cli.main(["probe", "tritonclient.grpc"]) == 1
    assert "triton-priority-router[tools]" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError):
        cli.main(["probe", "priority_router.oops"])


@pytest.mark.parametrize(("words", "status"), [(["--version"], 0), (["--help"], 0), ([], 2), (["fly"], 2)])
def test_top_level(words, status, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == status
    output = capsys.readouterr()
    if words == ["--version"]:
        assert output.out == f"priority-router {__version__}\n"
    if words == ["--help"]:
        assert all(name in output.out for name in cli.COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        ["serve"],
        ["serve", "--model-repository", "x", "--http-port", "70000"],
        ["serve", "--model-repository", "x", "--http-port", "-1"],
        ["serve", "--model-repository", "x", "--ready-timeout", "nan"],
        ["serve", "--model-repo", "x"],
        ["probe", "--timeout", "0"],
        ["probe", "--timeout", "inf"],
        ["probe", "--time", "1"],
        ["install"],
        ["bench", "overload", "--json", "x", "--seed", "-1"],
    ],
)
def test_wrong_use_is_status_2(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2


@pytest.mark.parametrize("name", ["serve", "probe", "install"])
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([name, "--help"])
    assert caught.value.code == 0
    assert f"priority-router {name}" in capsys.readouterr().out
