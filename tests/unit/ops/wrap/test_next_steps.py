# SPDX-License-Identifier: Apache-2.0
"""The commands that wrap ends with; the integration tests run them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from priority_router.ops.wrap import next_steps, source
from priority_router.ops.wrap.options import WantedClass
from support.bare_models import IDENTITY, model

CLASSES = (WantedClass("slow", 3), WantedClass("fast", 2))


def of(folder, text=IDENTITY):
    return source.read(model(folder, text))


def words(folder, text=IDENTITY):
    return shlex.split(next_steps.curl("router", of(folder, text), "fast"))


def body(folder, text):
    command = words(folder, text)
    return json.loads(command[command.index("-d") + 1])


def test_a_small_request_is_json(tmp_path):
    assert body(tmp_path / "m", IDENTITY) == {
        "inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 4], "data": [0.0] * 4}],
        "parameters": {"class": "fast"},
    }


def test_without_a_batch_axis_there_is_none(tmp_path):
    (tensor,) = body(tmp_path / "m", IDENTITY.replace("max_batch_size: 4", "max_batch_size: 0"))["inputs"]
    assert tensor["shape"] == [4]


@pytest.mark.parametrize(
    ("kind", "datatype", "zero"),
    [
        ("TYPE_STRING", "BYTES", ""),
        ("TYPE_BOOL", "BOOL", False),
        ("TYPE_INT64", "INT64", 0),
        ("TYPE_FP64", "FP64", 0.0),
    ],
)
def test_zeros_of_each_kind(tmp_path, kind, datatype, zero):
    text = IDENTITY.replace('"X" data_type: TYPE_FP32 dims: [ 4 ]', f'"X" data_type: {kind} dims: [ -1 ]')
    (tensor,) = body(tmp_path / "m", text)["inputs"]
    assert (tensor["datatype"], tensor["data"], tensor["shape"]) == (datatype, [zero], [1, 1])
    assert type(tensor["data"][0]) is type(zero)


@pytest.mark.parametrize(
    ("entry", "size"),
    [('"é" data_type: TYPE_FP32 dims: [ 3, 224, 224 ]', 602112), ('"X" data_type: TYPE_FP16 dims: [ 4 ]', 8)],
)
def test_a_large_request_or_one_of_half_floats_is_zeros_behind_a_header(tmp_path, entry, size):
    command = words(tmp_path / "m", IDENTITY.replace('"X" data_type: TYPE_FP32 dims: [ 4 ]', entry))
    header = command[command.index("%s") + 1].removesuffix(";")
    (tensor,) = json.loads(header)["inputs"]
    assert tensor["parameters"] == {"binary_data_size": size}
    assert command[command.index("-c") + 1] == str(size)
    assert f"Inference-Header-Content-Length: {len(header.encode())}" in command


@pytest.mark.parametrize("entry", ["TYPE_FP32 dims: [ 1000 ]", "TYPE_FP32 dims: [ -1 ]", "TYPE_FP16 dims: [ 4 ]"])
def test_an_answer_that_cannot_be_read_is_not_asked_for(tmp_path, entry):
    asked = body(tmp_path / "m", IDENTITY.replace('"Y" data_type: TYPE_FP32 dims: [ 4 ]', f'"Y" data_type: {entry}'))
    assert asked["outputs"] == [{"name": "ROUTER_EXECUTOR_US"}, {"name": "ROUTER_QUEUE_US"}]


def test_inputs_that_may_be_left_out_are(tmp_path):
    more = IDENTITY.replace(
        "dims: [ 4 ] } ]\noutput",
        'dims: [ 4 ] }, { name: "W" data_type: TYPE_INT32 dims: [ 1 ] optional: true } ]\noutput',
    )
    assert [tensor["name"] for tensor in body(tmp_path / "m", more)["inputs"]] == ["X"]


def test_a_name_survives_the_shell(tmp_path):
    text = IDENTITY.replace('"X"', '"it\'s $HOME \\"é\\""')
    assert body(tmp_path / "m", text)["inputs"][0]["name"] == 'it\'s $HOME "é"'


@pytest.mark.parametrize("plain", [False, True])
def test_the_steps_name_what_was_made(tmp_path, plain):
    steps = "\n".join(next_steps.lines(Path("/my models"), "front", of(tmp_path / "m"), CLASSES, plain))
    assert "priority-router serve --model-repository '/my models'" in steps
    assert "Ask, as fast:" in steps
    assert "/v2/models/front/infer" in steps
    assert "thread-pool-size=32" in steps
    assert ("model=front" in steps) is not plain
    assert "sweep" in steps
    unbatched = of(tmp_path / "n", IDENTITY.replace("max_batch_size: 4\n", ""))
    assert "sweep" not in "\n".join(next_steps.lines(Path("r"), "front", unbatched, CLASSES, plain))


def test_a_request_too_long_to_paste_is_left_to_probe(tmp_path):
    inputs = ", ".join(f'{{ name: "X{number}" data_type: TYPE_FP32 dims: [ 4 ] }}' for number in range(100))
    made = of(tmp_path / "m", IDENTITY.replace('{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }', inputs))
    steps = list(next_steps.lines(Path("r"), "front", made, CLASSES, False))
    ask = steps[steps.index("Ask, as fast:") + 1]
    assert ask.startswith("  priority-router probe --model front --class fast  # ")
    assert max(map(len, steps)) < 4000


def test_many_instances_need_a_larger_pool(tmp_path):
    made = of(tmp_path / "m", IDENTITY.replace("count: 1", "count: 8"))
    assert "thread-pool-size=44" in "\n".join(next_steps.lines(Path("r"), "front", made, CLASSES, False))
