# SPDX-License-Identifier: Apache-2.0
import sys
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from priority_router.ops.lint import onnx_tensors
from priority_router.ops.lint.onnx_tensors import OnnxError
from support import onnx_models


def test_names_and_shapes(tmp_path):
    found = onnx_tensors.read(onnx_models.doubling(tmp_path / "model.onnx", ("n", 4)))
    assert found.inputs == {"X": (None, 4)}
    assert found.outputs == {"Y": (None, 4), "Z": (None, 4)}


def test_lengths_without_a_name_are_free_and_scalars_have_none(tmp_path):
    dims: Any = (None, 4)
    path = onnx_models.doubling(tmp_path / "model.onnx", dims)
    assert onnx_tensors.read(path).inputs == {"X": (None, 4)}
    assert onnx_tensors.read(onnx_models.scalar(tmp_path / "scalar.onnx")).inputs == {"X": ()}


def test_weights_are_no_inputs(tmp_path):
    assert list(onnx_tensors.read(onnx_models.with_default(tmp_path / "model.onnx")).inputs) == ["X"]


def test_what_is_no_tensor_or_has_no_rank_is_left_out(tmp_path):
    values = [
        helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n"]),
        helper.make_tensor_sequence_value_info("S", TensorProto.FLOAT, ["n"]),
        helper.make_tensor_value_info("U", TensorProto.FLOAT, None),
    ]
    graph = helper.make_graph([], "g", values, values)
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    found = onnx_tensors.read(path)
    assert (found.inputs, found.outputs) == ({"X": (None,)}, {"X": (None,)})


def test_external_data_is_not_looked_for(tmp_path):
    path = onnx_models.with_default(tmp_path / "model.onnx")
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").unlink()
    assert list(onnx_tensors.read(path).inputs) == ["X"]


def varint(number):
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def field(number, size):
    return varint(number << 3 | 2) + varint(size)


def test_weights_of_any_size_are_passed_by(tmp_path):
    """More than protobuf could hold in one piece, in a file with a hole."""
    small = onnx.load(onnx_models.doubling(tmp_path / "small.onnx")).graph
    tensors = b"".join(
        field(number, len(made)) + made
        for number, values in ((11, small.input), (12, small.output))
        for made in (value.SerializeToString() for value in values)
    )
    size = 3 * 2**30
    name = field(8, 1) + b"W"
    weight = name + field(9, size)
    head = field(5, len(weight) + size) + weight
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:
        file.write(field(7, len(head) + size + len(tensors)) + head)
        file.seek(size, 1)
        file.write(tensors)
    assert onnx_tensors.read(path).outputs == {"Y": (None, 4), "Z": (None, 4)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "no ONNX model"),
        (b"\x08\x08", "no graph"),
        (b"\xff" * 20, "cut short"),
        (b"\x3a\x05ab", "cut short"),
        (b"\x3a\x04\x5a\x02\x0a\x50", "description of a tensor"),
    ],
)
def test_what_is_no_model_is_said(tmp_path, content, said):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(OnnxError, match=said):
        onnx_tensors.read(path)


def test_every_beginning_of_a_model_is_read_or_refused(tmp_path):
    whole = onnx_models.with_default(tmp_path / "whole.onnx").read_bytes()
    path = tmp_path / "model.onnx"
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        try:
            onnx_tensors.read(path)
        except OnnxError:
            continue


def test_the_package_is_needed_only_here(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError):
        onnx_tensors.read(onnx_models.doubling(tmp_path / "model.onnx"))
