# SPDX-License-Identifier: Apache-2.0
"""Folders as they lie about: whatever is in them, lint ends and says what it could not read."""

import os
import sys

import pytest
from priority_router.errors import SetupError
from priority_router.ops.lint import reading
from priority_router.ops.lint.check import check
from support import models, onnx_models
from unit.ops.lint.repositories import clean_pair, codes, found


@pytest.fixture
def repository(tmp_path):
    return clean_pair(tmp_path / "models")


def test_a_clean_pair_has_no_findings(repository):
    report = check([repository])
    assert (report.found, report.remarks, report.models) == ((), (), 2)


def test_an_empty_repository_has_none(tmp_path):
    assert check([tmp_path]).models == 0


def test_a_model_without_a_configuration_is_none_that_is_missing(repository):
    folder = repository / "bare" / "1"
    folder.mkdir(parents=True)
    onnx_models.doubling(folder / "model.onnx")
    assert found(repository) == []
    contents = reading.read([repository])
    assert contents.models["bare"].config == {}
    assert contents.models["bare"].versions == (1,)


def test_an_executor_without_a_configuration_is_there_and_its_shape_is_not_accused(repository):
    (repository / "executor" / "config.pbtxt").unlink()
    assert {code for _, code in found(repository)} <= {"PR101", "PR118"}


def test_files_beside_the_models_are_none(repository):
    (repository / "README.md").write_text("no model")
    (repository / ".hidden").write_text("no model")
    (repository / "pipe").unlink(missing_ok=True)
    os.mkfifo(repository / "pipe")
    assert found(repository) == []


@pytest.mark.parametrize("name", ["docs", ".git", ".ipynb_checkpoints"])
def test_a_folder_that_is_no_model_is_one_to_triton(repository, name):
    (repository / name).mkdir()
    (repository / name / "HEAD").write_text("x")
    assert found(repository) == [(name, "PR009")]
    (only,) = check([repository]).found
    assert only.finding.fix == "move the folder out of the repository"


def test_links_are_followed(repository, tmp_path):
    (repository / "executor").rename(tmp_path / "elsewhere")
    (repository / "executor").symlink_to(tmp_path / "elsewhere")
    (repository / "router" / "1").rename(tmp_path / "version")
    (repository / "router" / "1").symlink_to(tmp_path / "version")
    assert found(repository) == []


def test_links_in_circles_end(repository):
    (repository / "executor" / "again").symlink_to(repository / "executor")
    (repository / "executor" / "1" / "up").symlink_to(repository)
    assert found(repository) == []


@pytest.mark.parametrize("place", ["gone", "executor/gone"])
@pytest.mark.parametrize("target", ["/nowhere/at/all", "gone"])
def test_a_link_that_leads_nowhere_is_one(repository, place, target):
    (repository / place).symlink_to(target)
    assert found(repository) == [(place, "PR013")]


def test_a_missing_executor_behind_a_dead_link_is_not_said_twice(repository, tmp_path):
    (repository / "executor").rename(tmp_path / "elsewhere")
    (repository / "executor").symlink_to(tmp_path / "unmounted")
    assert found(repository) == [("executor", "PR013")]


def test_a_model_in_two_repositories(repository, tmp_path):
    other = tmp_path / "more"
    other.mkdir()
    models.write_executor(other, models.Executor())
    models.write_executor(other, models.Executor("another"))
    assert found(repository, other) == [("executor", "PR012")]
    assert check([repository, other]).models == 3


def test_an_executor_in_another_repository_is_there(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    clean_pair(one)
    two.mkdir()
    (one / "executor").rename(two / "executor")
    assert found(one, two) == []
    assert [code for _, code in found(one)] == ["PR301"]


def test_a_huge_configuration_is_not_read_and_nobody_accused(repository):
    path = repository / "executor" / "config.pbtxt"
    with path.open("ab") as file:
        file.truncate(50_000_000)
    report = check([repository])
    assert report.found == ()
    assert report.remarks == ("executor/config.pbtxt: it has 50 MB, and lint reads up to 1",)


def test_a_huge_policy_is_not_read(repository):
    path = repository / "router" / "1" / "policy.toml"
    with path.open("ab") as file:
        file.truncate(50_000_000)
    report = check([repository])
    assert report.found == ()
    assert report.remarks == ("router/1/policy.toml: it has 50 MB, and lint reads up to 1",)


@pytest.mark.parametrize("line", ["a{} = 1", "[a{}]", "x = {{ a{} = 1 }}"])
def test_keys_of_thousands_of_parts_are_refused_and_not_read(repository, line):
    path = repository / "router" / "1" / "policy.toml"
    path.write_text(f"{path.read_text()}# {'.' * 200}\n{line.format('.a' * 100_000)}\n")
    number = len(path.read_text().splitlines())
    assert found(repository) == [(f"router/1/policy.toml:{number}:1", "PR005")]


def test_what_may_not_be_read_is_said(repository, monkeypatch):
    """As root reads everything, the kernel's answer is made up."""
    listed = os.scandir

    def refusing(path="."):
        if str(path).endswith("executor"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refusing)
    monkeypatch.setattr(os, "listdir", lambda path: [entry.name for entry in refusing(path)])
    assert found(repository) == [("executor", "PR001")]


def test_a_configuration_that_may_not_be_read_is_said(repository, monkeypatch):
    read = type(repository).read_bytes

    def refusing(path):
        if path.name == "config.pbtxt" and path.parent.name == "executor":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(type(repository), "read_bytes", refusing)
    assert found(repository) == [("executor/config.pbtxt", "PR001")]


def test_all_faults_of_a_file_are_said_each_at_its_place(repository):
    path = repository / "executor" / "config.pbtxt"
    path.write_text('max_batchsize: 4\nparameters { key: "a" value { string_value: "${b}" } }\n  priority: 1\n')
    assert found(repository) == [
        ("executor/config.pbtxt:1:1", "PR002"),
        ("executor/config.pbtxt:2:46", "PR018"),
        ("executor/config.pbtxt:3:3", "PR002"),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('parameters { key: "a" value { string_value: "b ${c} ${d}" } }', ["PR018", "PR018"]),
        (
            'parameters [ { key: "a" value { string_value: "1" } }, { key: "b" value { string_value: "${c}" } } ]',
            ["PR018"],
        ),
        ('parameters { key: "a" value { string_value: ${c} } }', ["PR003"]),
        ('parameters { key: "${a}" value { string_value: "1" } }', ["PR003"]),
        ('parameters { key: "a" value { string_value: "${b}" } } default_model_filename: "${c}"', ["PR003", "PR018"]),
        ('default_model_filename: "${c}"', ["PR003"]),
    ],
)
def test_a_placeholder_is_an_error_where_triton_reads_the_text(repository, line, expected):
    path = repository / "executor" / "config.pbtxt"
    path.write_text(f"{path.read_text()}{line}\n")
    assert sorted(code for _, code in found(repository)) == expected


def test_a_placeholder_in_a_parameter_leaves_the_rest_to_be_looked_at(repository):
    path = repository / "executor" / "config.pbtxt"
    line = 'parameters { key: "a" value { string_value: "${b} ${c}" } }'
    text = path.read_text().replace("default_priority_level: 2", "default_priority_level: 3")
    path.write_text(f"{line}\n{text}")
    assert [code for _, code in found(repository)] == ["PR018", "PR018", "PR103"]
    assert [place.partition(":")[2] for place, _ in found(repository)][:2] == ["1:46", "1:51"]


def test_what_is_taken_and_hardly_meant_is_said(repository):
    path = repository / "executor" / "config.pbtxt"
    entry = 'parameters { key: "a" value { string_value: "1" } }\n'
    length = len(path.read_text().splitlines())
    path.write_text(path.read_text() + entry + "\n" + entry)
    ((place, code),) = found(repository)
    assert (place.rpartition(":")[0], code) == (f"executor/config.pbtxt:{length + 3}", "PR006")
    (only,) = check([repository]).found
    assert f"parameters.a is written at {length + 1}:1 and again at {length + 3}:1" in only.finding.what
    assert only.finding.fix == f"remove the entry at {length + 1}:1, or that at {length + 3}:1"
    path.write_text(path.read_text().replace(entry, "", 1).replace("max_batch_size: 4", "max_batch_size: 04"))
    assert found(repository) == []
    path.write_text(path.read_text().replace("count: 1", "count: 01"))
    assert found(repository) == []
    path.write_text(path.read_text().replace("count: 01", "count: 010"))
    assert "PR007" in codes(check([repository]))


def test_the_policy_is_that_of_the_version_that_serves(repository):
    folder = repository / "router"
    (folder / "2").mkdir()
    (folder / "2" / "policy.toml").write_text("policy_version = 2\n")
    (folder / "03").mkdir()
    (folder / "4").write_text("no folder")
    assert found(repository) == [("router/2/policy.toml:1:1", "PR005")]
    config = folder / "config.pbtxt"
    text = config.read_text()
    config.write_text(f"{text}version_policy {{ specific {{ versions: 1 }} }}\n")
    assert found(repository) == []
    config.write_text(f"{text}version_policy {{ latest {{ num_versions: 2 }} }}\n")
    assert ("router/2/policy.toml:1:1", "PR005") in found(repository)


def test_findings_are_sorted_by_file_and_line(repository):
    path = repository / "executor" / "config.pbtxt"
    text = path.read_text().replace("kind: KIND_CPU count: 1", "passive: true").replace('name: "executor"\n', "", 1)
    path.write_text(f'response_cache {{ enable: true }}\n{text}name: "other"\n')
    policy = repository / "router" / "1" / "policy.toml"
    policy.write_text(policy.read_text().replace("max_queue_size = 64\n", ""))
    places = [(located.file, located.position) for located in check([repository]).found]
    assert len(places) > 4
    assert None not in [position for _, position in places]
    assert places == sorted(places)


def test_a_model_of_onnx_files_is_read_through_its_folder(repository):
    folder = repository / "other" / "1" / "model.onnx"
    onnx_models.doubling(folder / "model.onnx", (1, 4))
    (repository / "other" / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 4\n')
    assert found(repository) == [("other/config.pbtxt:2:1", "PR117")]


@pytest.mark.parametrize(
    ("config", "read"),
    [
        ('backend: "onnxruntime" default_model_filename: "other.bin"', True),
        ('platform: "onnxruntime_onnx" default_model_filename: "other.bin"', True),
        ('backend: "somebody-s" default_model_filename: "other.bin"', False),
        ('default_model_filename: "other.bin"', False),
    ],
)
def test_a_file_is_taken_for_onnx_only_where_onnxruntime_runs_it(repository, config, read):
    folder = repository / "other" / "1"
    folder.mkdir(parents=True)
    (folder / "other.bin").write_text("x")
    (repository / "other" / "config.pbtxt").write_text(config)
    assert found(repository) == ([("other/1/other.bin", "PR009")] if read else [])


def test_without_the_package_onnx_a_line_says_so(repository, monkeypatch):
    folder = repository / "other" / "1"
    onnx_models.doubling(folder / "model.onnx", (1, 4))
    (repository / "other" / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 4\n')
    monkeypatch.setitem(sys.modules, "onnx", None)
    report = check([repository])
    assert report.found == ()
    assert report.remarks == ("other/1/model.onnx: that needs the package onnx",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "no such folder"),
        ("file", "no such folder"),
        ("models/executor", "name the folder above it"),
        ("s3://bucket/models", "only folders of this machine"),
    ],
)
def test_what_is_no_repository(tmp_path, repository, monkeypatch, name, said):
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match=said):
        check([type(tmp_path)(name)])


def test_a_repository_named_twice(repository):
    with pytest.raises(SetupError, match="named twice"):
        check([repository, repository / ".." / "models"])


def test_odd_names(repository):
    for name in ("a\nb", "\x1b[31mred", "ümlaut", os.fsdecode(b"\xff")):
        (repository / name).mkdir()
    assert codes(check([repository])) == ["PR009"] * 4
