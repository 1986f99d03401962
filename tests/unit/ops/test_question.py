# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from priority_router.ops.probe.question import (
    Unanswerable,
    ZeroTensor,
    encode,
    parameters,
    zero_inputs,
    zero_inputs_of_metadata,
)


def config(*inputs, batch=4):
    return {"max_batch_size": batch, "input": list(inputs)}


def entry(name="X", data_type="TYPE_FP32", dims=("4",), **more):
    return {"name": name, "data_type": data_type, "dims": list(dims), **more}


def test_one_row_of_every_required_input():
    made = zero_inputs(config(entry(), entry("S", "TYPE_STRING", [1]), entry("CLASS", optional=True)))
    assert made == [ZeroTensor("X", "FP32", (1, 4)), ZeroTensor("S", "BYTES", (1, 1))]


def test_free_lengths_become_one_and_there_may_be_no_batch_axis():
    assert zero_inputs(config(entry(dims=["-1", "3"]), batch=0)) == [ZeroTensor("X", "FP32", (1, 3))]
    assert zero_inputs(config(entry(dims=[]), batch=2)) == [ZeroTensor("X", "FP32", (1,))]


def test_only_optional_inputs_are_all_sent():
    assert [tensor.name for tensor in zero_inputs(config(entry("A", optional=True), entry("B", optional=True)))] == [
        "A",
        "B",
    ]


def test_a_class_is_sent_beside_the_required_inputs():
    made = zero_inputs(config(entry(), entry("CLASS", "TYPE_STRING", [1], optional=True)), "größte")
    assert made == [ZeroTensor("X", "FP32", (1, 4)), ZeroTensor("CLASS", "BYTES", (1, 1), "größte".encode())]
    assert made[1].raw == b"\x08\0\0\0" + "größte".encode()


def test_no_class_is_invented_where_all_inputs_are_optional():
    inputs = config(entry("A", optional=True), entry("CLASS", "TYPE_STRING", [1], optional=True))
    assert [tensor.name for tensor in zero_inputs(inputs)] == ["A"]
    assert [tensor.name for tensor in zero_inputs(inputs, "urgent")] == ["A", "CLASS"]


def test_a_required_class_is_sent_in_either_case():
    inputs = config(entry("CLASS", "TYPE_STRING", [1]))
    assert zero_inputs(inputs) == [ZeroTensor("CLASS", "BYTES", (1, 1))]
    assert zero_inputs(inputs, "urgent") == [ZeroTensor("CLASS", "BYTES", (1, 1), b"urgent")]


@pytest.mark.parametrize("inputs", [[entry()], [entry(), entry("CLASS", "TYPE_INT64", [1])]])
def test_a_model_that_takes_no_class_is_said(inputs):
    with pytest.raises(Unanswerable, match="no input CLASS, so it cannot be asked as class 'urgent'"):
        zero_inputs(config(*inputs), "urgent")


def test_an_unknown_type_is_said():
    with pytest.raises(Unanswerable, match="input X has type INVALID"):
        zero_inputs(config(entry(data_type="TYPE_INVALID")))


@pytest.mark.parametrize(
    ("datatype", "length"), [("BOOL", 6), ("FP16", 12), ("BF16", 12), ("INT64", 48), ("BYTES", 24)]
)
def test_raw_form(datatype, length):
    assert ZeroTensor("X", datatype, (2, 3)).raw == bytes(length)


def test_encoding():
    body, header_length = encode([ZeroTensor("X", "FP32", (1, 4)), ZeroTensor("S", "BYTES", (1, 1))])
    header = json.loads(body[:header_length])
    assert header["inputs"][0] == {
        "name": "X",
        "datatype": "FP32",
        "shape": [1, 4],
        "parameters": {"binary_data_size": 16},
    }
    assert body[header_length:] == bytes(16 + 4)


def test_of_metadata_every_input_is_filled():
    inputs = [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}, {"name": "S", "datatype": "BYTES", "shape": ["-1"]}]
    made = zero_inputs_of_metadata({"inputs": inputs})
    assert made == [ZeroTensor("X", "FP32", (1, 4)), ZeroTensor("S", "BYTES", (1,))]
    assert zero_inputs_of_metadata({}) == []


def test_parameters_say_the_class_and_that_only_life_is_asked():
    assert parameters(None) == {}
    assert parameters("online") == {"class": "online"}
    assert parameters(None, live=True) == {"priority_router_probe": True}
    header = json.loads(encode([], parameters(None, live=True))[0])
    assert header["parameters"]["priority_router_probe"] is True
