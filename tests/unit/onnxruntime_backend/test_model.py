# SPDX-License-Identifier: Apache-2.0
"""backends/onnxruntime/model.py with a stand-in for Triton's Python API and real ONNX models."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import onnx_models
from support.fake_triton import InferenceResponse, Request, Tensor, TritonError
from support.modules import load_module

BACKEND = Path(__file__).parents[3] / "backends" / "onnxruntime" / "model.py"


class TritonModelException(Exception):
    pass


class ModelConfig:
    """As in Triton: the dictionary is the state, ``set_dynamic_batching`` leaves an existing block alone."""

    def __init__(self, config):
        self.config = config

    def as_dict(self):
        return self.config

    def set_max_batch_size(self, rows):
        self.config["max_batch_size"] = rows

    def set_dynamic_batching(self):
        self.config.setdefault("dynamic_batching", {})


@pytest.fixture
def warnings():
    return []


@pytest.fixture
def backend(monkeypatch, tmp_path, warnings):
    api: Any = types.ModuleType("triton_python_backend_utils")
    api.Tensor, api.TritonError, api.InferenceResponse = Tensor, TritonError, InferenceResponse
    api.TritonModelException, api.ModelConfig = TritonModelException, ModelConfig
    api.Logger = types.SimpleNamespace(log_warn=warnings.append)
    api.get_model_dir = lambda: str(tmp_path / "1")
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", api)
    return load_module("onnxruntime_backend_model", BACKEND)


@pytest.fixture
def load(backend, tmp_path):
    def load(config):
        model = backend.TritonPythonModel()
        place = {"model_repository": str(tmp_path), "model_version": "1", "model_name": "m"}
        model.initialize({"model_config": json.dumps(config), **place})
        return model

    return load


@pytest.fixture
def onnx_file(tmp_path):
    return tmp_path / "1" / "model.onnx"


def entry(name, dims=(4,), data_type="TYPE_FP32", **more):
    return {"name": name, "data_type": data_type, "dims": list(dims), **more}


def config(inputs=None, outputs=None, max_batch_size=8, **more):
    return {
        "name": "m",
        "max_batch_size": max_batch_size,
        "input": [entry("X")] if inputs is None else inputs,
        "output": [entry("Y")] if outputs is None else outputs,
        **more,
    }


def rows(*values, width=4):
    return np.array([[value] * width for value in values], np.float32)


class CountingSession:
    """Passes calls on to a session and keeps the row count of each run."""

    def __init__(self, session):
        self.session, self.runs = session, []

    def run(self, wanted, feed):
        self.runs.append((tuple(wanted), [len(array) if array.shape else None for array in feed.values()]))
        return self.session.run(wanted, feed)


def counted(model):
    model._session = CountingSession(model._session)
    return model._session


def test_a_batch_is_one_run_and_each_request_gets_its_own_rows(load, onnx_file):
    onnx_models.doubling(onnx_file)
    model = load(config())
    session = counted(model)
    responses = model.execute([Request({"X": rows(1)}), Request({"X": rows(2, 3)}), Request({"X": rows(4)})])
    assert [len(r.arrays()["Y"]) for r in responses] == [1, 2, 1]
    assert np.concatenate([r.arrays()["Y"] for r in responses]).tolist() == rows(2, 4, 6, 8).tolist()
    assert session.runs == [(("Y",), [4])]


def test_only_requested_outputs_are_computed_and_returned(load, onnx_file):
    onnx_models.doubling(onnx_file)
    model = load(config(outputs=[entry("Y"), entry("Z")]))
    session = counted(model)
    one, other, both = model.execute(
        [Request({"X": rows(1)}, ("Z",)), Request({"X": rows(2)}, ("Y",)), Request({"X": rows(3)}, ())]
    )
    assert list(one.arrays()) == ["Z"]
    assert list(other.arrays()) == ["Y"]
    assert {name: a.tolist() for name, a in both.arrays().items()} == {"Y": rows(6).tolist(), "Z": rows(-3).tolist()}
    model.execute([Request({"X": rows(1)}, ("Z",))])
    assert session.runs[-1] == (("Z",), [1])


def test_unequal_shapes_run_separately(load, onnx_file):
    onnx_models.doubling(onnx_file, ("n", "k"))
    model = load(config([entry("X", (-1,))], [entry("Y", (-1,))]))
    session = counted(model)
    responses = model.execute(
        [Request({"X": rows(1, width=7)}), Request({"X": rows(2, width=9)}), Request({"X": rows(3, width=7)})]
    )
    assert [r.arrays()["Y"].tolist() for r in responses] == [
        rows(2, width=7).tolist(),
        rows(4, width=9).tolist(),
        rows(6, width=7).tolist(),
    ]
    assert sorted(session.runs) == [(("Y",), [1]), (("Y",), [2])]


def test_a_request_that_the_model_refuses_leaves_its_neighbours_alone(load, onnx_file):
    onnx_models.adding(onnx_file)
    model = load(config([entry("X", (-1,)), entry("W", (-1,))], [entry("Y", (-1,))]))
    good = {"X": rows(1, width=5), "W": rows(2, width=5)}
    bad = {"X": rows(1, width=5), "W": rows(2, width=3)}
    first, refused, last = model.execute([Request(good), Request(bad), Request(good)])
    assert first.arrays()["Y"].tolist() == last.arrays()["Y"].tolist() == rows(3, width=5).tolist()
    assert refused.error().message().startswith("ONNX Runtime: ")


def test_a_joined_run_that_fails_is_repeated_request_by_request(load, onnx_file):
    onnx_models.doubling(onnx_file)
    model = load(config())

    class FailsOnSeven:
        def __init__(self, session):
            self.session = session

        def run(self, wanted, feed):
            if (feed["X"] == 7).any():
                raise RuntimeError("seven")
            return self.session.run(wanted, feed)

    model._session = FailsOnSeven(model._session)
    first, refused, last = model.execute([Request({"X": rows(1)}), Request({"X": rows(7)}), Request({"X": rows(2, 3)})])
    assert first.arrays()["Y"].tolist() == rows(2).tolist()
    assert last.arrays()["Y"].tolist() == rows(4, 6).tolist()
    assert (refused.error().message(), refused.error().code()) == ("ONNX Runtime: seven", TritonError.INTERNAL)


def test_an_input_that_the_model_calls_invalid_is_invalid_arg(load, onnx_file):
    onnx_models.doubling(onnx_file)
    (response,) = load(config()).execute([Request({"X": rows(1, width=3)})])
    assert response.error().code() == TritonError.INVALID_ARG


def test_text_goes_through_and_a_request_that_is_no_utf8_fails_alone(load, onnx_file):
    onnx_models.echoing_text(onnx_file)
    text = {"data_type": "TYPE_STRING", "dims": (-1,)}
    model = load(config([entry("X", **text)], [entry("Y", **text)]))

    def request(*items):
        return Request({"X": np.array([items], np.object_)})

    good, refused, empty, other = model.execute(
        [
            request("grün\0x".encode(), b""),
            request(b"\xff", b"a"),
            Request({"X": np.empty((2, 0), np.object_)}),
            request(b"b"),
        ]
    )
    assert good.arrays()["Y"].tolist() == [["grün\0x", ""]]
    assert other.arrays()["Y"].tolist() == [["b"]]
    assert empty.arrays()["Y"].shape == (2, 0)
    assert refused.error().code() == TritonError.INVALID_ARG
    assert "input X" in refused.error().message()


def test_zero_size_tensors_keep_shape_and_type_alone_and_joined(load, onnx_file):
    onnx_models.doubling(onnx_file, ("n", "k"))
    model = load(config([entry("X", (-1,))], [entry("Y", (-1,))]))
    empty = np.empty((1, 0), np.float32)
    for batch in ([empty], [empty, np.empty((2, 0), np.float32)]):
        for array, response in zip(batch, model.execute([Request({"X": a}) for a in batch]), strict=True):
            assert response.arrays()["Y"].shape == array.shape
            assert response.arrays()["Y"].dtype == np.float32


def test_without_a_batch_axis_every_request_runs_alone(load, onnx_file):
    onnx_models.doubling(onnx_file, (2, 3))
    model = load(config([entry("X", (2, 3))], [entry("Y", (2, 3))], max_batch_size=0))
    session = counted(model)
    responses = model.execute([Request({"X": np.full((2, 3), n, np.float32)}) for n in (1, 2)])
    assert [r.arrays()["Y"].tolist() for r in responses] == [[[2.0] * 3] * 2, [[4.0] * 3] * 2]
    assert len(session.runs) == 2


def test_scalars_are_one_element_for_the_client(load, onnx_file):
    onnx_models.scalar(onnx_file)
    model = load(config([entry("X", (1,))], [entry("Y", (1,))], max_batch_size=0))
    session = counted(model)
    (response,) = model.execute([Request({"X": np.array([3], np.float32)})])
    assert response.arrays()["Y"].tolist() == [6.0]
    assert session.runs == [(("Y",), [None])]


def test_an_input_with_a_default_may_be_left_out(load, onnx_file):
    onnx_models.with_default(onnx_file)
    model = load(config([entry("X", (2,)), entry("B", (2,), optional=True)], [entry("Y", (2,))], max_batch_size=0))
    x = np.array([1, 2], np.float32)
    default, replaced = model.execute([Request({"X": x}), Request({"X": x, "B": x})])
    assert default.arrays()["Y"].tolist() == [11.0, 22.0]
    assert replaced.arrays()["Y"].tolist() == [2.0, 4.0]


def test_reshape_is_what_the_model_sees(load, onnx_file):
    onnx_models.summing(onnx_file)
    model = load(config([entry("X", (2, 2), reshape={"shape": [4]})], [entry("Y", (1,), reshape={"shape": []})]))
    # Triton applies the reshape on the way in and on the way out; the backend works with the model's shapes.
    (response,) = model.execute([Request({"X": rows(1, 2)})])
    assert response.arrays()["Y"].tolist() == [4.0, 8.0]


def test_an_output_without_one_row_per_row_is_an_error(load, onnx_file):
    onnx_models.repeating_rows(onnx_file)
    (response,) = load(config()).execute([Request({"X": rows(1)})])
    assert response.error().code() == TritonError.INTERNAL
    assert "output Y has shape [2, 4] for 1 rows" in response.error().message()


def test_threads_come_from_the_configuration(backend, load, onnx_file):
    onnx_models.doubling(onnx_file)
    parameters = {
        "intra_op_thread_count": {"string_value": "3"},
        "inter_op_thread_count": {"string_value": "2"},
        "execution_mode": {"string_value": "1"},
    }
    options = load(config(parameters=parameters))._session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 2)
    assert options.execution_mode == backend.onnxruntime.ExecutionMode.ORT_PARALLEL


def test_parameters_without_effect_are_named(load, onnx_file, warnings):
    onnx_models.doubling(onnx_file)
    parameters = {"gpu_mem_limit": {"string_value": "1"}, "intra_op_thread_count": {"string_value": "1"}}
    load(config(parameters=parameters))
    assert warnings == ["m: parameter gpu_mem_limit has no effect on this CPU backend"]


def test_another_file_name_and_a_folder_are_found(load, tmp_path, onnx_file):
    onnx_models.doubling(tmp_path / "1" / "other.onnx")
    load(config(default_model_filename="other.onnx"))
    onnx_models.doubling(tmp_path / "1" / "large" / "model.onnx")
    load(config(default_model_filename="large"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"default_model_filename": "no.onnx"}, "1/no.onnx does not exist: put the ONNX file there"),
        ({"inputs": []}, "lacks the model's inputs X"),
        ({"inputs": [entry("X"), entry("V")]}, "input V is not in the model, which has X"),
        ({"outputs": [entry("V")]}, "output V is not in the model, which has Y, Z"),
        (
            {"inputs": [entry("X", data_type="TYPE_INT32")]},
            "input X: the configuration says TYPE_INT32, the model has TYPE_FP32",
        ),
        (
            {"outputs": [entry("Y", (5,))]},
            "output Y: the configuration says [-1, 5], the batch axis included, the model has [-1, 4]",
        ),
        ({"outputs": [entry("Y", (-1,))]}, "output Y: the configuration says [-1, -1]"),
        (
            {"inputs": [entry("X", (4,))], "max_batch_size": 0},
            "input X: the configuration says [4], the model has [-1, 4]",
        ),
        ({"parameters": {"intra_op_thread_count": {"string_value": "two"}}}, "intra_op_thread_count is 'two'"),
        ({"inputs": [entry("X", allow_ragged_batch=True)]}, "allow_ragged_batch is not supported"),
        ({"inputs": [entry("X", optional=True)]}, "input X is optional, which needs max_batch_size: 0"),
        ({"sequence_batching": {"direct": {}}}, "sequence_batching: not supported"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_at_load(load, onnx_file, changed, message):
    onnx_models.doubling(onnx_file)
    with pytest.raises(TritonModelException) as refusal:
        load(config(**changed))
    assert message in str(refusal.value)


def test_an_input_may_fix_a_dimension_that_the_model_leaves_open_an_output_may_not(load, onnx_file):
    onnx_models.doubling(onnx_file, ("n", "k"))
    load(config([entry("X", (7,))], [entry("Y", (-1,))]))
    with pytest.raises(TritonModelException, match=r"output Y: the configuration says \[-1, 7\]"):
        load(config([entry("X", (7,))], [entry("Y", (7,))]))


def test_optional_needs_a_default_in_the_model(load, onnx_file):
    onnx_models.doubling(onnx_file, (2,))
    with pytest.raises(TritonModelException, match="input X is optional, but the model has no default"):
        load(config([entry("X", (2,), optional=True)], [entry("Y", (2,))], max_batch_size=0))


def test_a_file_that_is_no_model_is_named(load, onnx_file):
    onnx_file.parent.mkdir()
    onnx_file.write_bytes(b"not a model")
    with pytest.raises(TritonModelException, match=r"model\.onnx cannot be loaded"):
        load(config())


def complete(backend, **given):
    given = {"name": "m", "max_batch_size": 0, "input": [], "output": [], **given}
    return backend.TritonPythonModel.auto_complete_config(ModelConfig(given)).as_dict()


def test_an_empty_configuration_is_completed_for_batches(backend, load, onnx_file, warnings):
    onnx_models.doubling(onnx_file, ("n", 4, "k"))
    completed = complete(backend)
    assert completed == {
        "name": "m",
        "max_batch_size": 4,
        "input": [entry("X", (4, -1))],
        "output": [entry("Y", (4, -1)), entry("Z", (4, -1))],
        "dynamic_batching": {},
    }
    assert len(warnings) == 1
    load(completed)


def test_one_value_per_row_is_completed_with_a_reshape(backend, load, onnx_file):
    onnx_models.summing(onnx_file)
    completed = complete(backend)
    assert completed["output"] == [entry("Y", (1,), reshape={"shape": []})]
    load(completed)


def test_a_model_without_a_batch_axis_is_completed_without_one(backend, load, onnx_file):
    onnx_models.doubling(onnx_file, (2, 3))
    completed = complete(backend)
    assert completed["max_batch_size"] == 0
    assert completed["input"] == [entry("X", (2, 3))]
    assert "dynamic_batching" not in completed
    load(completed)


def test_a_scalar_is_completed_as_one_element(backend, load, onnx_file):
    onnx_models.scalar(onnx_file)
    completed = complete(backend)
    assert completed["input"] == [entry("X", (1,))]
    load(completed)


def test_what_the_configuration_says_is_kept(backend, onnx_file):
    onnx_models.doubling(onnx_file)
    batching = {"priority_levels": 2}
    completed = complete(backend, max_batch_size=16, output=[entry("Z")], dynamic_batching=batching)
    assert completed["max_batch_size"] == 16
    assert completed["output"] == [entry("Z")]
    assert completed["input"] == [entry("X")]
    assert completed["dynamic_batching"] == batching
    full = {"name": "m", "max_batch_size": 0, "input": [entry("X")], "output": [entry("Y")]}
    assert complete(backend, **full) == full


def test_a_batch_size_for_a_model_without_batches_is_refused(backend, onnx_file):
    onnx_models.doubling(onnx_file, (2, 3))
    with pytest.raises(TritonModelException, match="write max_batch_size: 0"):
        complete(backend, max_batch_size=8)
