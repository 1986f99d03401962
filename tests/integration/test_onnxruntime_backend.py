# SPDX-License-Identifier: Apache-2.0
"""backends/onnxruntime on the real server."""

from __future__ import annotations

import concurrent.futures
import contextlib

import numpy as np
import pytest
import tritonclient.grpc
from support import onnx_models
from support.server import running
from tritonclient.utils import InferenceServerException

ONE_INSTANCE = "instance_group { kind: KIND_CPU count: 1 }\n"
# Waits until four rows are there, for so many seconds at most.
FOUR_ROWS = ONE_INSTANCE + (
    "max_batch_size: 4\ndynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: %d000000 }\n"
)
ALWAYS_FOUR, MOSTLY_FOUR = FOUR_ROWS % 100, FOUR_ROWS % 1
TWO_COLUMNS = """
input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }
input { name: "W" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }
"""
X = 'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] }\n'
Y = 'output { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }\n'

MODELS = {
    "completed": (onnx_models.doubling, ""),
    "summing": (onnx_models.summing, ONE_INSTANCE),
    "scalar": (onnx_models.scalar, ONE_INSTANCE),
    "text": (onnx_models.echoing_text, ONE_INSTANCE),
    "joined": (onnx_models.doubling, ALWAYS_FOUR),
    "lengths": (lambda path: onnx_models.doubling(path, ("n", "k")), MOSTLY_FOUR),
    "adding": (onnx_models.adding, MOSTLY_FOUR + TWO_COLUMNS),
    "reshaped": (
        onnx_models.doubling,
        ONE_INSTANCE
        + "max_batch_size: 4\n"
        + 'input { name: "X" data_type: TYPE_FP32 dims: [ 2, 2 ] reshape { shape: [ 4 ] } }\n'
        + 'output { name: "Y" data_type: TYPE_FP32 dims: [ 2, 2 ] reshape { shape: [ 4 ] } }\n',
    ),
    "optional": (
        onnx_models.with_default,
        ONE_INSTANCE
        + "max_batch_size: 0\n"
        + 'input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }\n'
        + 'input { name: "B" data_type: TYPE_FP32 dims: [ 2 ] optional: true }\n'
        + 'output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }\n',
    ),
}

REFUSED = {
    "nofile": (None, "max_batch_size: 4\n" + X + Y, "1/model.onnx does not exist"),
    "wrongtype": (
        onnx_models.doubling,
        "max_batch_size: 4\n" + X.replace("FP32", "INT32") + Y,
        "the model has TYPE_FP32",
    ),
    "wrongdims": (onnx_models.doubling, "max_batch_size: 4\n" + X.replace("4", "5") + Y, "the model has [-1, 4]"),
    "wrongname": (
        onnx_models.doubling,
        "max_batch_size: 4\n" + X + Y.replace('"Y"', '"V"'),
        "output V is not in the model",
    ),
    "nobatch": (lambda path: onnx_models.doubling(path, (2, 4)), "max_batch_size: 4\n", "write max_batch_size: 0"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("onnx") / "repository"
    configs = {name: config for name, (_, config) in MODELS.items()}
    configs |= {name: config for name, (_, config, _) in REFUSED.items()}
    for name, config in configs.items():
        write = (MODELS.get(name) or REFUSED[name])[0]
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(f'backend: "onnxruntime"\n{config}')
        if write is not None:
            write(repository / name / "1" / "model.onnx")
    loads = [f"--load-model={name}" for name in MODELS]
    with running(repository, hooks=False, extra_args=["--model-control-mode=explicit", *loads]) as started:
        yield started


@pytest.fixture(scope="module")
def client(server):
    with contextlib.closing(tritonclient.grpc.InferenceServerClient(server.grpc)) as made:
        yield made


def infer(client, model, outputs=("Y",), **arrays):
    kinds = {"f": "FP32", "O": "BYTES"}
    inputs = []
    for name, array in arrays.items():
        tensor = tritonclient.grpc.InferInput(name, list(array.shape), kinds[array.dtype.kind])
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    result = client.infer(model, inputs, outputs=[tritonclient.grpc.InferRequestedOutput(o) for o in outputs])
    return [result.as_numpy(output) for output in outputs]


def at_once(client, model, requests):
    """Sends all requests together; answers come in the order of the requests, errors as values."""

    def one(arrays):
        try:
            return infer(client, model, **arrays)[0]
        except InferenceServerException as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(one, requests))


def executions(client, model):
    return client.get_inference_statistics(model).model_stats[0].execution_count


def full(value, *shape):
    return np.full(shape, value, np.float32)


def test_a_configuration_is_completed_from_the_model(client):
    config = client.get_model_config("completed").config
    assert config.max_batch_size == 4
    assert config.HasField("dynamic_batching")
    assert [(i.name, list(i.dims)) for i in config.input] == [("X", [4])]
    assert [o.name for o in config.output] == ["Y", "Z"]
    assert [a.tolist() for a in infer(client, "completed", ("Z", "Y"), X=full(3, 2, 4))] == [
        full(-3, 2, 4).tolist(),
        full(6, 2, 4).tolist(),
    ]


def test_without_instance_group_triton_starts_two_instances(client):
    """Why every configuration of this project writes the count."""
    assert [group.count for group in client.get_model_config("completed").config.instance_group] == [2]
    assert [group.count for group in client.get_model_config("summing").config.instance_group] == [1]


def test_single_values_per_row_and_per_model(client):
    assert infer(client, "summing", X=full(1, 3, 4))[0].tolist() == [[4.0]] * 3
    assert infer(client, "scalar", X=full(3, 1))[0].tolist() == [6.0]


def test_reshape(client):
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    assert infer(client, "reshaped", X=x)[0].tolist() == (2 * x).tolist()


def test_a_batch_is_joined_into_one_execution(client):
    before = executions(client, "joined")
    answers = at_once(client, "joined", [{"X": full(value, 1, 4)} for value in (1, 2, 3, 4)])
    assert [answer.tolist() for answer in answers] == [full(2 * value, 1, 4).tolist() for value in (1, 2, 3, 4)]
    assert executions(client, "joined") - before == 1


def test_unequal_lengths_come_back_as_they_were(client):
    requests = [{"X": full(value, 1, 7 + value % 2 * 2)} for value in (1, 2, 3, 4)]
    answers = at_once(client, "lengths", requests)
    assert [a.tolist() for a in answers] == [(2 * r["X"]).tolist() for r in requests]


def test_zero_size_tensors(client):
    answers = at_once(client, "lengths", [{"X": full(0, 1, 0)}, {"X": full(0, 3, 0)}])
    assert [(a.shape, a.dtype) for a in answers] == [((1, 0), np.float32), ((3, 0), np.float32)]


def test_what_the_model_refuses_fails_alone(client):
    good = {"X": full(1, 1, 5), "W": full(2, 1, 5)}
    bad = {"X": full(1, 1, 5), "W": full(2, 1, 3)}
    first, refused, second, third = at_once(client, "adding", [good, bad, good, good])
    assert [a.tolist() for a in (first, second, third)] == [full(3, 1, 5).tolist()] * 3
    assert isinstance(refused, InferenceServerException)
    assert "ONNX Runtime" in refused.message()


def test_text(client):
    items = np.array([["grün\0x".encode(), b""]], np.object_)
    assert infer(client, "text", X=items)[0].tolist() == items.tolist()
    assert infer(client, "text", X=np.empty((2, 0), np.object_))[0].shape == (2, 0)
    with pytest.raises(InferenceServerException, match="input X: ONNX strings are UTF-8") as refusal:
        infer(client, "text", X=np.array([[b"\xff"]], np.object_))
    assert refusal.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_an_optional_input_takes_the_models_default(client):
    x = np.array([1, 2], np.float32)
    assert infer(client, "optional", X=x)[0].tolist() == [11.0, 22.0]
    assert infer(client, "optional", X=x, B=x)[0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize("model", REFUSED)
def test_a_model_that_does_not_fit_is_refused_with_the_reason(client, model):
    with pytest.raises(InferenceServerException) as refusal:
        client.load_model(model)
    assert REFUSED[model][2] in refusal.value.message()
