# SPDX-License-Identifier: Apache-2.0
"""Files of models that are none, or that nobody may read: each is said, nothing waits, no other model is left out."""

import os
import signal

import pytest
from priority_router.ops.lint import reading
from priority_router.ops.lint.check import check
from support import onnx_models
from unit.ops.lint.repositories import clean_pair, found


@pytest.fixture
def repository(tmp_path):
    return clean_pair(tmp_path / "models")


@pytest.fixture(autouse=True)
def _no_waiting():
    """Whatever waits for a writer of a pipe fails."""

    def give_up(*_):
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def make_folder(path):
    path.unlink()
    path.mkdir()


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


def make_binary(path):
    path.write_bytes(bytes(range(256)) * 64)


def make_empty_link(path):
    path.unlink()
    path.symlink_to("/dev/null")


def make_endless_link(path):
    path.unlink()
    path.symlink_to("/dev/zero")


HOSTILE = [make_folder, make_pipe, make_binary, make_empty_link, make_endless_link]


def make_dead_link(path):
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def make_own_link(path):
    path.unlink()
    path.symlink_to(path.name)


def make_truncated(path):
    onnx_models.doubling(path)
    path.write_bytes(path.read_bytes()[:-3])


def make_nothing(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("make", HOSTILE)
def test_a_configuration_that_is_no_file_of_text(repository, make):
    make(repository / "executor" / "config.pbtxt")
    (place, code), *others = found(repository)
    assert place.startswith("executor/config.pbtxt")
    assert code == "PR001"
    assert others == [], "what depends on it cannot be known"


@pytest.mark.parametrize("make", HOSTILE)
def test_a_policy_that_is_no_file_of_text(repository, make):
    make(repository / "router" / "1" / "policy.toml")
    ((place, code),) = found(repository)
    assert place.startswith("router/1/policy.toml")
    assert code == "PR005"


@pytest.mark.parametrize("make", [make_dead_link, make_own_link])
def test_a_policy_behind_a_dead_link_keeps_no_other_model_from_being_looked_at(repository, make):
    make(repository / "router" / "1" / "policy.toml")
    (repository / "zone").mkdir()
    assert found(repository) == [("router/1/policy.toml", "PR013"), ("zone", "PR009")]


@pytest.mark.parametrize("make", [*HOSTILE, make_nothing, make_truncated])
def test_an_onnx_model_that_is_none(repository, make):
    folder = repository / "other" / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_text("x")
    make(folder / "model.onnx")
    assert found(repository) == [("other/1/model.onnx", "PR009")]
    assert check([repository]).remarks == ()


@pytest.mark.parametrize("make", [make_folder, make_pipe, make_empty_link, make_endless_link])
def test_a_python_model_that_is_no_file(repository, make):
    make(repository / "executor" / "1" / "model.py")
    assert found(repository) == [("executor/1/model.py", "PR009")]


@pytest.mark.parametrize("file", ["model.py", "model.onnx", "model.plan"])
@pytest.mark.parametrize("make", [make_dead_link, make_own_link])
def test_a_model_behind_a_dead_link(repository, file, make):
    folder = repository / "other" / "1"
    folder.mkdir(parents=True)
    (folder / file).write_text("x")
    make(folder / file)
    assert found(repository) == [(f"other/1/{file}", "PR013")]


@pytest.mark.parametrize("name", ["router/1/policy.toml", "executor/1/model.py", "executor/config.pbtxt"])
def test_what_its_rights_keep_from_being_read_is_said(repository, monkeypatch, name):
    """As root reads everything, the kernel's answer is made up."""
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith(name))
    ((place, code),) = found(repository)
    assert place.startswith(name)
    assert code in ("PR001", "PR005", "PR009")


def test_a_model_that_cannot_be_read_keeps_no_other_from_being_looked_at(repository, monkeypatch):
    (repository / "zone").mkdir()

    def failing(path):
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(reading, "load_policy", failing)
    assert found(repository) == [("router", "PR001"), ("zone", "PR009")]


def test_a_model_in_onnxruntime_s_own_format_is_not_accused(repository):
    folder = repository / "other" / "1"
    folder.mkdir(parents=True)
    (folder / "model.ort").write_text("x")
    (repository / "other" / "config.pbtxt").write_text('backend: "onnxruntime" default_model_filename: "model.ort"')
    assert found(repository) == []


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        (
            'input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: "Y" data_type: TYPE_FP32 dims: 4 }',
            [],
        ),
        ('input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }', ['write name: "X" in other/config.pbtxt']),
        ('output { name: "Z" data_type: TYPE_FP64 dims: [ 4 ] }', ["write data_type: TYPE_FP32 in other/config.pbtxt"]),
        ('input { name: "X" dims: [ 4 ] }', []),
    ],
)
def test_a_configuration_must_fit_its_onnx_model(repository, tensors, expected):
    onnx_models.doubling(repository / "other" / "1" / "model.onnx", ("n", 4))
    (repository / "other" / "config.pbtxt").write_text(f'backend: "onnxruntime"\nmax_batch_size: 4\n{tensors}\n')
    findings = [located.finding for located in check([repository]).found]
    assert [finding.rule.code for finding in findings] == ["PR120"] * len(expected)
    assert [finding.fix for finding in findings] == expected


def test_a_router_is_not_told_to_follow_an_executor_that_does_not_fit_its_own_model(repository):
    folder = repository / "executor"
    onnx_models.doubling(folder / "1" / "model.onnx", ("n", 4))
    config = folder / "config.pbtxt"
    text = config.read_text().replace('backend: "python"', 'backend: "onnxruntime"')
    config.write_text(text)
    assert {code for _, code in found(repository)} == {"PR120"}
    config.write_text(text.replace("TYPE_FP32", "TYPE_FP64"))
    assert {code for _, code in found(repository)} == {"PR120"}
