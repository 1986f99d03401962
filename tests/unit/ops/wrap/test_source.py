# SPDX-License-Identifier: Apache-2.0
"""What is known of a model before it gets a router, and which models cannot have one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from priority_router.errors import PriorityRouterError, SetupError
from priority_router.ops.wrap import source
from support import onnx_models
from support.bare_models import IDENTITY, model


def config(*lines, drop=()):
    """The identity model's configuration with further lines, and without those that begin with one of some words."""
    kept = [line for line in IDENTITY.splitlines() if not line.startswith(tuple(drop))] if drop else [IDENTITY]
    return "\n".join([*kept, *lines]) + "\n"


def place(text, part):
    """Line and column at which a part begins that a text has once."""
    assert text.count(part) == 1
    before = text[: text.index(part)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def refusal(folder, text, files=None):
    with pytest.raises(PriorityRouterError) as refused:
        source.read(model(folder, text, files))
    return str(refused.value)


def test_a_model_is_what_its_configuration_says(tmp_path):
    found = source.read(model(tmp_path / "model"))
    assert (found.name, found.folder, found.max_batch_size, found.instances.count) == ("model", True, 4, 1)
    assert [tensor.entry() for tensor in found.inputs] == ['{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }']
    assert [tensor.name for tensor in found.outputs] == ["Y"]
    assert found.document.text == IDENTITY
    assert (found.notes, found.labels, found.external) == ((), (), ())


def test_the_name_is_the_configurations_or_else_the_folders(tmp_path, monkeypatch):
    unnamed = config(drop=["name"])
    assert source.read(model(tmp_path / "folder", IDENTITY)).name == "model"
    assert source.read(model(tmp_path / "other", unnamed)).name == "other"
    monkeypatch.chdir(tmp_path / "other" / "1")
    assert source.read(Path("..")).name == "other"
    (tmp_path / "link").symlink_to("other")
    assert source.read(tmp_path / "link").name == "link"


def test_batch_size_missing_is_no_batch_axis(tmp_path):
    assert source.read(model(tmp_path / "m", config(drop=["max_batch_size"]))).max_batch_size == 0


@pytest.mark.parametrize(
    ("line", "part", "words"),
    [
        (
            "sequence_batching { }",
            "sequence_batching",
            ["sequence_batching", "otherwise leave the model without a router"],
        ),
        ("model_transaction_policy { decoupled: true }", "decoupled", ["decoupled", "remove decoupled"]),
        (
            'ensemble_scheduling { step [ { model_name: "a" }, { model_name: "b" }, { model_name: "a" } ] }',
            "ensemble_scheduling",
            ["is an ensemble", "wrap the step that does the work (a, b)"],
        ),
        ("max_batch_sise: 3", "max_batch_sise", ["max_batch_sise", "max_batch_size"]),
        ("priority_levels: 3", "priority_levels", ["priority_levels", "dynamic_batching"]),
        ('parameters { key: "a" value { string_value: "${b}" } }', "${b}", ["${b}"]),
        ("version_policy { latest { num_versions: ${n} } }", "${n}", ["${n}"]),
        ("optimization { ", "", ["never closed", "write its '}'"]),
    ],
)
def test_what_a_router_cannot_call_is_refused_with_its_place(tmp_path, line, part, words):
    text = refusal(tmp_path / "model", config(line))
    where = f"{place(config(line), part)}: " if part else ""
    assert text.startswith(f"{tmp_path}/model/config.pbtxt:{where}"), text
    assert [word for word in words if word not in text] == []


def test_all_faults_of_a_file_are_told_at_once(tmp_path):
    text = refusal(tmp_path / "model", config('metric_tags { key: "${a}" value: "${b}" }', "priority: 3"))
    assert len(text.splitlines()) == 3
    assert all(line.startswith(f"{tmp_path}/model/config.pbtxt:") for line in text.splitlines())


def test_a_router_is_not_wrapped_again(tmp_path):
    text = refusal(tmp_path / "model", IDENTITY.replace('"python"', '"priority_router"'))
    assert text.startswith(f"{tmp_path}/model/config.pbtxt:3:1: model is a router already")
    assert "policy.toml" in text


@pytest.mark.parametrize(
    ("old", "new", "where", "words"),
    [
        ('"X"', '"CLASS"', "5:11", ["input 'CLASS'", "the router adds itself", "another name"]),
        ('"Y"', '"ROUTER_QUEUE_US"', "6:12", ["output 'ROUTER_QUEUE_US'", "the router adds itself"]),
        ('"X" data_type: TYPE_FP32', '"X" data_type: TYPE_BF16', "5:21", ["input 'X' is BF16", "TYPE_FP32"]),
        ('"Y" data_type: TYPE_FP32', '"Y" data_type: 14', "6:22", ["output 'Y' is BF16"]),
        ('"X" data_type: TYPE_FP32', '"X"', "5:9", ["input 'X' is of no type"]),
        ("dims: [ 4 ] } ]\noutput", "} ]\noutput", "5:9", ["input 'X' has no dims"]),
        (
            "dims: [ 4 ] } ]\noutput",
            "dims: [ 4 ] is_shape_tensor: true } ]\noutput",
            "5:54",
            ["input 'X' is a shape tensor", "leave this model without a router"],
        ),
        (
            "dims: [ 4 ] } ]\ninst",
            "dims: [ 4 ] is_non_linear_format_io: true } ]\ninst",
            "6:55",
            ["output 'Y' has a non-linear format", "linear inputs and outputs"],
        ),
        (
            "dims: [ 4 ] } ]\ninst",
            'dims: [ 4 ] label_filename: "../labels.txt" } ]\ninst',
            "6:55",
            ["'../labels.txt' cannot have the same place in the router's folder", "beside config.pbtxt"],
        ),
        ("max_batch_size: 4", "max_batch_size: 9000", "4:1", ["max_batch_size is 9000", "a value from 0 to 8192"]),
        ("max_batch_size: 4", "max_batch_size: -1", "4:1", ["max_batch_size is -1"]),
        ("count: 1", "count: 5000", "7:1", ["instances is 5000", "a value from 1 to 4096"]),
    ],
)
def test_tensors_and_sizes_that_no_router_carries_are_refused(tmp_path, old, new, where, words):
    assert IDENTITY.count(old) == 1
    text = refusal(tmp_path / "model", IDENTITY.replace(old, new))
    assert text.startswith(f"{tmp_path}/model/config.pbtxt:{where}: "), text
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(
    "label", ["/l.txt", "a/../../l.txt", "1/policy.toml", "2/l.txt", "config.pbtxt", "./config.pbtxt"]
)
def test_labels_that_cannot_lie_in_a_routers_folder_are_refused(tmp_path, label):
    text = IDENTITY.replace("dims: [ 4 ] } ]\ninst", f'dims: [ 4 ] label_filename: "{label}" }} ]\ninst')
    assert f"label_filename {label!r} cannot have the same place" in refusal(tmp_path / "model", text)
    assert source.read(model(tmp_path / "ok", text.replace(label, "1/l.txt"))).labels == ("1/l.txt",)


@pytest.mark.parametrize("name", ["a b", "a/b", "a;b", "a=b", "käse", "a'b", "$HOME", ".", ".."])
def test_a_name_that_the_python_backends_shell_breaks_on_is_refused(tmp_path, name):
    text = refusal(tmp_path / "model", IDENTITY.replace('"model"', f'"{name}"'))
    assert repr(name) in text
    assert "letters, digits and _ - ." in text


FOUR = '"X" data_type: TYPE_FP32 dims: [ 4 ]'


@pytest.mark.parametrize(
    ("old", "new", "part", "words"),
    [
        (FOUR, '"X" data_type: TYPE_FP32 dims: [ 4, 0 ]', "dims: [ 4, 0", "input 'X' has the length 0 in its dims"),
        (FOUR, '"X" data_type: TYPE_FP32 dims: [ -2 ]', "dims: [ -2", "has the length -2 in its dims.* or -1 for any"),
        ('"Y"', '""', 'name: ""', "output '' has no name, .*; write the name"),
        ('"X"', r'"X\000"', r'name: "X\000"', "has a zero byte in its name, .* another name"),
        ('name: "X" data', "data", "{ data_type", "input '' has no name"),
        (FOUR, FOUR + " reshape { shape: [ 5 ] }", "reshape", r"\[4\] and a reshape to \[5\], .*; write a shape"),
        (FOUR, FOUR + " reshape { shape: [ ] }", "reshape", r"\[4\] and a reshape to \[\], "),
        (FOUR, FOUR + " reshape { shape: [ 0 ] }", "reshape", "has the length 0 in its reshape"),
        (FOUR, FOUR + " reshape { shape: [ -1 ] }", "reshape", r"a reshape to \[-1\]"),
        ("kind: KIND_CPU count: 1", "kind: KIND_CPU gpus: [ 0 ]", "gpus", "KIND_CPU lists gpus, .*; remove gpus"),
    ],
)
def test_what_no_server_loads_is_refused_with_its_place(tmp_path, old, new, part, words):
    assert IDENTITY.count(old) == 1
    text = IDENTITY.replace(old, new)
    said = refusal(tmp_path / "model", text)
    assert said.startswith(f"{tmp_path}/model/config.pbtxt:{place(text, part)}: ")
    assert re.search(words, said)


@pytest.mark.parametrize("dims", ["[ 1 ] reshape { shape: [ ] }", "[ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] }"])
def test_a_reshape_to_as_many_elements_is_taken(tmp_path, dims):
    assert source.read(model(tmp_path / "m", IDENTITY.replace(FOUR, f'"X" data_type: TYPE_FP32 dims: {dims}')))


def test_what_a_router_changes_about_a_model_is_noted(tmp_path):
    text = IDENTITY.replace("dims: [ 4 ] } ]\noutput", "dims: [ -1 ] allow_ragged_batch: true } ]\noutput")
    (note,) = source.read(model(tmp_path / "a", text)).notes
    assert "allow_ragged_batch of X" in note
    text = IDENTITY.replace("dims: [ 4 ] } ]\noutput", "dims: [ 4 ] optional: true } ]\noutput")
    (note,) = source.read(model(tmp_path / "b", text)).notes
    assert "every input is optional" in note


def test_reshape_is_dropped_and_the_rest_of_an_entry_stays(tmp_path):
    text = IDENTITY.replace(
        "dims: [ 4 ] } ]\noutput",
        "dims: [ 2, 2, 3 ] format: FORMAT_NHWC reshape { shape: [ 12 ] } optional: true } ]\noutput",
    ).replace("dims: [ 4 ] } ]\ninst", 'dims: [ 1 ] reshape { shape: [ ] } label_filename: "l.txt" } ]\ninst')
    found = source.read(model(tmp_path / "m", text))
    assert found.inputs[0].entry() == (
        '{ name: "X" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 2, 2, 3 ] optional: true }'
    )
    assert found.outputs[0].entry() == '{ name: "Y" data_type: TYPE_FP32 dims: [ 1 ] label_filename: "l.txt" }'
    assert found.labels == ("l.txt",)


@pytest.mark.parametrize("drop", [["input"], ["output"], ["input", "output"]])
def test_tensors_left_to_the_server_are_asked_for(tmp_path, drop):
    text = refusal(tmp_path / "model", config(drop=drop))
    assert f"leaves {' and '.join(drop)} to the server" in text
    assert "curl http://SERVER:8000/v2/models/model/config" in text


def test_tensorrt_takes_the_batch_size_from_the_engine_so_it_is_asked_for(tmp_path):
    named = IDENTITY.replace('backend: "python"', 'platform: "tensorrt_plan"')
    text = refusal(tmp_path / "a", named.replace("max_batch_size: 4\n", ""))
    assert "leaves max_batch_size to the server" in text
    assert source.read(model(tmp_path / "b", named.replace("size: 4", "size: 0"))).max_batch_size == 0
    found_by_file = IDENTITY.replace('backend: "python"\nmax_batch_size: 4\n', "")
    assert "leaves max_batch_size" in refusal(tmp_path / "c", found_by_file, {"1/model.plan": ""})


ONNX = 'backend: "onnxruntime"\n'


@pytest.mark.parametrize(
    ("text", "size"), [(ONNX, 4), (f"{ONNX}max_batch_size: 0\n", 4), (f"{ONNX}max_batch_size: 16\n", 16)]
)
def test_an_onnx_model_completes_its_configuration_as_triton_does(tmp_path, text, size):
    folder = model(tmp_path / "m", text)
    onnx_models.doubling(folder / "2" / "model.onnx")
    (folder / "1" / "model.onnx").write_bytes(b"older, and not looked at")
    found = source.read(folder)
    assert found.max_batch_size == size
    assert [tensor.entry() for tensor in found.inputs] == ['{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }']
    assert [tensor.name for tensor in found.outputs] == ["Y", "Z"]
    assert [("max_batch_size to Triton" in note) for note in found.notes] == ([True] if size == 4 else [])


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("", "model.onnx"),
        ('platform: "onnxruntime_onnx"\n', "model.onnx"),
        ('default_model_filename: "model.onnx"\n', "model.onnx"),
        (f'{ONNX}default_model_filename: "other.onnx"\n', "other.onnx"),
        (ONNX, "model.onnx/model.onnx"),
    ],
)
def test_an_onnx_model_is_known_in_each_way_that_triton_knows_it(tmp_path, text, file):
    folder = model(tmp_path / "m", text)
    onnx_models.summing(folder / "1" / file)
    found = source.read(folder)
    assert [tensor.dims for tensor in found.outputs] == [(1,)]
    assert found.max_batch_size == 4


@pytest.mark.parametrize(("platform", "count"), [("tensorflow_savedmodel", 2), ("tensorflow_graphdef", 2)])
def test_tensorflow_is_known_by_its_platforms(tmp_path, platform, count):
    text = IDENTITY.replace('backend: "python"', f'platform: "{platform}"').replace(" count: 1", "")
    found = source.read(model(tmp_path / "m", text.replace('name: "model"\n', "")))
    assert (found.instances.count, found.instances.open) == (count, "")


def test_a_platform_that_no_server_knows_is_refused_with_the_real_one(tmp_path):
    text = IDENTITY.replace('backend: "python"', 'platform: "onnxruntime"')
    said = refusal(tmp_path / "model", text)
    assert said.startswith(f'{tmp_path}/model/config.pbtxt:3:1: no backend has the platform "onnxruntime"')
    assert 'write platform: "onnxruntime_onnx" or backend: "onnxruntime" in its place' in said


def test_what_an_onnx_models_configuration_says_itself_stays(tmp_path):
    given = f'{ONNX}input [ {{ name: "X" data_type: TYPE_FP32 dims: [ 2, 2 ] reshape {{ shape: [ 4 ] }} }} ]\n'
    folder = model(tmp_path / "m", given)
    onnx_models.doubling(folder / "1" / "model.onnx")
    found = source.read(folder)
    assert found.inputs[0].dims == (2, 2)
    assert [tensor.dims for tensor in found.outputs] == [(4,), (4,)]


def test_an_onnx_model_without_a_batch_axis_has_none(tmp_path):
    folder = model(tmp_path / "m", ONNX)
    onnx_models.with_default(folder / "1" / "model.onnx")
    found = source.read(folder)
    assert (found.max_batch_size, [tensor.name for tensor in found.inputs], found.notes) == (0, ["X"], ())
    (folder / "config.pbtxt").write_text(f"{ONNX}max_batch_size: 2\n")
    with pytest.raises(SetupError, match=r"config.pbtxt:2:1: max_batch_size is 2, but not every .* write max_batch"):
        source.read(folder)


def test_an_onnx_model_that_is_not_there_is_told(tmp_path):
    folder = model(tmp_path / "m", ONNX)
    with pytest.raises(SetupError, match=re.escape(f"{folder}/1/model.onnx: cannot be read")):
        source.read(folder)
    (folder / "1" / "model.py").unlink()
    (folder / "1").rmdir()
    with pytest.raises(SetupError, match="has no version folder"):
        source.read(folder)


def test_what_is_no_model_is_told(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.pt").write_bytes(b"")
    model(tmp_path / "repository" / "model")
    cases = {
        "empty": "has no config.pbtxt; write one. .* curl http://SERVER:8000/v2/models/empty/config",
        "repository": "is a model repository; name the folder of one model in it",
        "model.pt": "is neither a folder nor an .onnx file",
        "nothing": "no such file or folder",
        "nothing.onnx": "no such file; name the folder",
    }
    with pytest.raises(SetupError, match="only folders of this machine"):
        source.read(Path("s3://bucket/model"))
    for name, text in cases.items():
        with pytest.raises(SetupError, match=text):
            source.read(tmp_path / name)


def test_a_bare_file_is_a_model_of_its_name(tmp_path):
    found = source.read(onnx_models.doubling(tmp_path / "double.onnx"))
    assert (found.name, found.folder, found.max_batch_size, found.instances.count) == ("double", False, 8, 1)
    assert [tensor.dims for tensor in (*found.inputs, *found.outputs)] == [(4,)] * 3
    assert found.document.config.instance_group[0].count == 1
    assert source.read(tmp_path / "double.onnx", 3).document.config.instance_group[0].count == 3
    assert source.read(tmp_path / "double.onnx", 3).instances.count == 3


def test_a_bare_file_that_has_a_configuration_is_left_to_its_folder(tmp_path):
    folder = model(tmp_path / "m", ONNX)
    file = onnx_models.doubling(folder / "1" / "model.onnx")
    with pytest.raises(SetupError, match=re.escape(f"name that model's folder, {folder}")):
        source.read(file)


def test_a_bare_files_name_must_be_a_models(tmp_path):
    with pytest.raises(SetupError, match=r"'my model' has letters .* rename it to letters"):
        source.read(onnx_models.doubling(tmp_path / "my model.onnx"))
