# SPDX-License-Identifier: Apache-2.0
import sys

import pytest
from priority_router.errors import SetupError
from priority_router.ops.lint import check as lint_check
from priority_router.ops.server import linting
from support.models import Executor, Router, write_executor, write_pair

CLASSES = (
    {"name": "interactive", "level": 1, "max_queue_size": 64},
    {"name": "bulk", "level": 2, "max_queue_size": 64},
)
BROKEN = "dynamic_batching { priority_levels: 2 default_priority_level: 3 }"


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def pair(repository, executor=None, classes=CLASSES):
    write_pair(repository, Router(classes=classes, default_class=classes[-1]["name"]), executor or Executor())
    return [repository]


def test_of_a_clean_repository_nothing_is_said(repository):
    assert linting.check(pair(repository), []) == linting.Outcome([])


def test_warnings_and_notes_are_a_line_each(repository):
    classes = [{"name": "one", "level": 1}, {**CLASSES[1], "timeout_action": "DELAY"}]
    outcome = linting.check(pair(repository, classes=classes), [])
    first, second = outcome.lines
    policy = repository / "router" / "1" / "policy.toml"
    assert first.startswith(
        f"lint: {policy}:10:1: warning PR307: class 'one' in router/1/policy.toml has no max_queue_"
    )
    assert second.startswith(f"lint: {policy}:18:1: note PR111: ")
    assert "\n" not in first + second
    assert outcome.said == {("PR307", "router"), ("PR111", "router")}


def test_errors_refuse_and_are_all_said_with_their_remedies(repository):
    executor = Executor(batching=BROKEN, config="response_cache { enable: true }\nversion_policy { specific { } }")
    with pytest.raises(SetupError) as caught:
        linting.check(pair(repository, executor), [])
    lines = str(caught.value).splitlines()
    assert lines[0] == "lint finds 2 errors; mend what it names, or start with --no-lint:"
    assert ": error PR103: " in lines[4] + lines[1]
    assert ": error PR009: " in lines[4] + lines[1]
    assert [line[:7] for line in lines[2:4]] == ["  why: ", "  fix: "]
    assert len(lines) == 7, "warnings are not what keeps it from starting"


def test_a_broken_policy_is_one_of_them(repository):
    pair(repository)
    policy = repository / "router" / "1" / "policy.toml"
    policy.write_text("colour = 1\n" + policy.read_text())
    with pytest.raises(SetupError, match=rf"{policy}:1:1: error PR005: .*colour = 1"):
        linting.check([repository], [])


@pytest.mark.parametrize(("size", "refused"), [(31, True), (32, False)])
def test_the_thread_pool_is_that_of_the_arguments(repository, size, refused):
    words = [f"--backend-config=python,thread-pool-size={size}"]
    if refused:
        with pytest.raises(SetupError, match="error PR401: the server is started with thread-pool-size=31"):
            linting.check(pair(repository), words)
    else:
        assert linting.check(pair(repository), words).lines == []


@pytest.mark.parametrize("size", ["", "many", "-1", "²"])
def test_a_thread_pool_that_is_no_number_is_left_to_the_start(repository, size):
    assert linting.check(pair(repository), [f"--backend-config=python,thread-pool-size={size}"]).lines == []


def test_arguments_that_cannot_be_passed_on_are_said(repository):
    with pytest.raises(SetupError, match="cannot be passed on"):
        linting.check(pair(repository), ["--http-port=1"])


def test_what_is_no_repository_is_said(tmp_path):
    with pytest.raises(SetupError, match="no such folder"):
        linting.check([tmp_path / "nowhere"], [])


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["--load-model=healthy"], True),
        (["--model-control-mode=explicit"], False),
        (["--model-control-mode=explicit", "--load-model=healthy"], False),
        (["--model-control-mode=explicit", "--load-model=healthy", "--load-model", "executor"], True),
        (["--model-control-mode", "explicit", "--load-model=*"], True),
        (["--model-control-mode=poll", "--load-model=healthy"], True),
    ],
)
def test_only_what_is_loaded_refuses(repository, words, refused):
    write_executor(repository, Executor("healthy"))
    write_executor(repository, Executor(batching=BROKEN))
    if refused:
        with pytest.raises(SetupError, match="PR103"):
            linting.check([repository], words)
    else:
        (line,) = linting.check([repository], words).lines
        assert ": error PR103: " in line


def test_where_other_configurations_are_read_nothing_is_checked(repository):
    executor = Executor(batching=BROKEN)
    (line,) = linting.check(pair(repository, executor), ["--model-config-name=gpu"]).lines
    assert line.startswith("lint was skipped: --model-config-name ")


def test_without_the_package_one_line_says_so(repository, monkeypatch):
    for name in [
        name for name in sys.modules if name.startswith(("priority_router.ops.lint", "priority_router.ops.pb"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("tritonclient.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tritonclient", None)
    (line,) = linting.check(pair(repository, Executor(batching=BROKEN)), []).lines
    assert line.startswith("lint was skipped: it needs the package tritonclient")
    assert line.endswith("-m pip install 'triton-priority-router[tools]'")


@pytest.mark.parametrize(
    "fault", [RuntimeError("a\nb"), ImportError("old protobuf"), ModuleNotFoundError("x", name="y"), RecursionError()]
)
def test_a_fault_of_lint_keeps_nobody_from_serving(repository, monkeypatch, fault):
    def failing(*_):
        raise fault

    monkeypatch.setattr(lint_check, "check", failing)
    (line,) = linting.check(pair(repository), []).lines
    assert line.startswith(f"lint was skipped: it failed, {type(fault).__name__} (")
    assert line.endswith(") in test_linting.py:" + line.rpartition(":")[2])
    assert "\n" not in line


def test_many_lines_are_cut_short(repository):
    classes = [{"name": f"c{index}", "level": index + 1} for index in range(linting.MOST_LINES + 5)]
    lines = linting.check(pair(repository, Executor(priority_levels=len(classes)), classes), []).lines
    assert len(lines) == linting.MOST_LINES
    assert lines[-1] == f"lint: and 6 more, which `priority-router lint {repository}` shows"


def test_files_that_were_left_out_are_said(repository):
    pair(repository)
    with (repository / "executor" / "config.pbtxt").open("ab") as file:
        file.truncate(50_000_000)
    (line,) = linting.check([repository], []).lines
    assert line == "lint: not looked at: executor/config.pbtxt: it has 50 MB, and lint reads up to 1"
