# SPDX-License-Identifier: Apache-2.0
"""What wrap reads from an ONNX file, and the configuration that a bare one gets."""

from __future__ import annotations

import re

import onnx
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper
from priority_router.errors import SetupError
from priority_router.ops.wrap import bare, onnx_file, source
from support import onnx_models
from support.bare_models import with_data
from tritonclient.grpc.model_config_pb2 import ModelConfig


def plain(tmp_path, inputs, outputs, name="m.onnx"):
    """A file with such inputs and outputs that nobody can run."""
    model = helper.make_model(helper.make_graph([], "g", inputs, outputs))
    onnx.save(model, tmp_path / name)
    return tmp_path / name


def written(path):
    found = source.read(path)
    return text_format.Parse(found.document.text, ModelConfig())


def test_a_batch_axis_is_a_free_first_dimension_everywhere(tmp_path):
    assert onnx_file.read(onnx_models.doubling(tmp_path / "a.onnx")).batched
    assert not onnx_file.read(onnx_models.doubling(tmp_path / "b.onnx", (1, 4))).batched
    assert not onnx_file.read(onnx_models.scalar(tmp_path / "c.onnx")).batched
    half = [onnx_models.value("X", ("n", 4))], [onnx_models.value("Y", (1, 4))]
    assert not onnx_file.read(plain(tmp_path, *half)).batched


def test_a_bare_files_configuration_has_the_models_tensors(tmp_path):
    found = written(onnx_models.doubling(tmp_path / "double.onnx"))
    assert (found.name, found.backend, found.max_batch_size) == ("double", "onnxruntime", bare.TEACHING_BATCH_SIZE)
    assert [(one.name, list(one.dims), one.data_type) for one in found.input] == [("X", [4], 11)]
    assert [(one.name, list(one.dims)) for one in found.output] == [("Y", [4]), ("Z", [4])]
    assert [(group.kind, group.count) for group in found.instance_group] == [(2, 1)]
    text = source.read(tmp_path / "double.onnx").document.text
    assert "teaching value" in text
    assert "SPDX" not in text


def test_with_a_fixed_batch_axis_there_is_none(tmp_path):
    path = onnx_models.doubling(tmp_path / "m.onnx", (1, 4))
    found = written(path)
    assert found.max_batch_size == 0
    assert [list(one.dims) for one in (*found.input, *found.output)] == [[1, 4]] * 3
    assert "export it with a free first dimension" in source.read(path).notes[0]


def test_inputs_that_name_their_first_dimension_differently_have_no_batch_axis(tmp_path):
    inputs = [onnx_models.value("X", ("batch", 4)), onnx_models.value("W", ("length", 2))]
    path = plain(tmp_path, inputs, [onnx_models.value("Y", ("anything", 1))])
    found = written(path)
    assert found.max_batch_size == 0
    assert [list(one.dims) for one in found.input] == [[-1, 4], [-1, 2]]
    assert "different free dimensions (batch, length)" in source.read(path).notes[0]
    assert [one.dims for one in source.read(path).inputs] == [(-1, 4), (-1, 2)]


def test_names_of_outputs_and_nameless_dimensions_do_not_count(tmp_path):
    inputs = [onnx_models.value("X", ("batch", 4)), helper.make_tensor_value_info("W", TensorProto.FLOAT, [None, 2])]
    outputs = [onnx_models.value("Y", ("Add_output_dim_0", 1))]
    assert written(plain(tmp_path, inputs, outputs)).max_batch_size == bare.TEACHING_BATCH_SIZE


def test_a_single_value_becomes_one_dim_and_is_reshaped_where_there_is_a_batch_axis(tmp_path):
    found = written(onnx_models.summing(tmp_path / "m.onnx"))
    (output,) = found.output
    assert list(output.dims) == [1]
    assert output.HasField("reshape")
    assert list(output.reshape.shape) == []
    found = written(onnx_models.scalar(tmp_path / "s.onnx"))
    assert [(list(one.dims), one.HasField("reshape")) for one in (*found.input, *found.output)] == [([1], False)] * 2


def test_inputs_with_a_default_are_no_part_of_a_request(tmp_path):
    found = onnx_file.read(onnx_models.with_default(tmp_path / "m.onnx"))
    assert [tensor.name for tensor in found.inputs] == ["X"]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "tensor\n1", "käse #{}", "<x>;,'"])
def test_any_name_of_a_tensor_survives(tmp_path, name):
    path = plain(tmp_path, [onnx_models.value(name, ("n", 1))], [onnx_models.value(name + "out", ("n", 1))])
    found = written(path)
    assert [one.name for one in (*found.input, *found.output)] == [name, name + "out"]


def test_a_dimensions_name_cannot_get_out_of_its_comment(tmp_path):
    inputs = [onnx_models.value("X", ('a\nname: "evil"', 4)), onnx_models.value("W", ("b", 2))]
    assert written(plain(tmp_path, inputs, [onnx_models.value("Y", ("n", 1))])).name == "m"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (TensorProto.BFLOAT16, "input 'X' is BF16"),
        (TensorProto.COMPLEX64, "input 'X' is COMPLEX64, which Triton cannot serve"),
        (TensorProto.FLOAT8E4M3FN, "input 'X' is FLOAT8E4M3FN"),
    ],
)
def test_types_that_cannot_be_carried_are_refused(tmp_path, kind, words):
    path = plain(tmp_path, [onnx_models.value("X", ("n", 4), kind)], [onnx_models.value("Y", ("n", 4))])
    with pytest.raises(SetupError, match=words):
        source.read(path)


def test_every_type_of_the_onnx_backend_is_known(tmp_path):
    for kind, triton in onnx_file.TRITON_TYPES.items():
        if triton != "TYPE_BF16":
            value = onnx_models.value("X", ("n", 4), getattr(TensorProto, kind))
            found = onnx_file.read(plain(tmp_path, [value], [value]))
            assert found.inputs[0].data_type == triton


def test_what_is_no_tensor_or_has_no_shape_is_refused(tmp_path):
    sequence = helper.make_tensor_sequence_value_info("X", TensorProto.FLOAT, ("n", 1))
    with pytest.raises(SetupError, match="input 'X' is no tensor \\(sequence_type\\)"):
        source.read(plain(tmp_path, [sequence], [onnx_models.value("Y", ("n", 1))]))
    shapeless = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)
    with pytest.raises(SetupError, match="output 'Y' has no shape"):
        source.read(plain(tmp_path, [onnx_models.value("X", ("n", 1))], [shapeless]))


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"\x08\x07"])
def test_what_is_no_onnx_model_is_told(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(SetupError, match=re.escape(f"{tmp_path}/m.onnx: is no ONNX model")):
        source.read(tmp_path / "m.onnx")


def test_files_with_weights_are_found(tmp_path):
    assert onnx_file.read(with_data(tmp_path / "a")).external == ("weights.bin",)
    assert onnx_file.read(onnx_models.doubling(tmp_path / "b.onnx")).external == ()


@pytest.mark.parametrize("location", ["../weights.bin", "/weights.bin", "a/../../weights.bin", ""])
def test_weights_outside_of_the_models_folder_are_refused(tmp_path, location):
    with pytest.raises(SetupError, match="is not inside its folder"):
        source.read(with_data(tmp_path / "a", location))


def test_missing_weights_are_refused(tmp_path):
    path = with_data(tmp_path / "a")
    (tmp_path / "a" / "weights.bin").unlink()
    with pytest.raises(SetupError, match=r"its weights are in 'weights.bin', which is missing"):
        source.read(path)


def test_weights_that_would_take_the_models_own_name_are_refused(tmp_path):
    path = with_data(tmp_path / "a", "model.onnx")
    (tmp_path / "a" / "model.onnx").write_bytes(b"")
    with pytest.raises(SetupError, match="save the model with another name for its data"):
        source.read(path)


def test_weights_of_a_graph_inside_a_node_are_found(tmp_path):
    path = with_data(tmp_path / "a")
    model = onnx.load(path, load_external_data=False)
    inner = helper.make_graph([], "inner", [], [], [model.graph.initializer[0]])
    inner.initializer[0].external_data[0].value = "deeper.bin"
    model.graph.node.append(helper.make_node("If", ["c"], ["d"], then_branch=inner, else_branch=inner))
    (tmp_path / "a" / "deeper.bin").write_bytes(b"")
    onnx.save(model, path)
    assert onnx_file.read(path).external == ("deeper.bin", "weights.bin")
