# SPDX-License-Identifier: Apache-2.0
"""Inputs for models of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from priority_router.ops.bench import model_inputs, wire
from priority_router.ops.bench.model_inputs import Input, InputError

IMAGE = Input("image", "TYPE_FP32", (2, 2))
TEXT = Input("text", "TYPE_STRING", (1,))
IDS = Input("ids", "TYPE_INT64", (-1,), optional=True)


def parse(document, *inputs, batched=True):
    return model_inputs.parse(json.dumps(document), "data.json", inputs or (IMAGE, TEXT, IDS), batched)


def entry(value=1.0, **more):
    return {"image": [value] * 4, "text": ["a"], **more}


def test_the_forms_of_values():
    made = parse(
        {
            "data": [
                entry(ids={"content": [1, 2, 3], "shape": [3]}),
                entry(ids=[7]),
                {
                    "image": {"b64": "AACAPwAAAEAAAEBAAACAQA=="},
                    "text": {"b64": "aGk=", "shape": [1]},
                },
            ]
        }
    )
    first, second, third = made.rows
    assert first["image"].dtype == np.float32
    assert first["image"].tolist() == [[1, 1], [1, 1]]
    assert first["text"].tolist() == ["a"]
    assert first["ids"].tolist() == [1, 2, 3]
    assert second["ids"].tolist() == [7]
    assert third["image"].tolist() == [[1, 2], [3, 4]]
    assert third["text"].tolist() == [b"hi"]
    assert "ids" not in third


def test_rows_are_stacked_from_those_that_follow_and_have_the_same_shapes():
    made = parse({"data": [entry(1.0), entry(2.0), entry(3.0, ids=[1, 2])]})
    pairs = made(2)
    assert [one["image"][:, 0, 0].tolist() for one in pairs] == [[1, 2], [2, 2], [3, 3]]
    assert pairs[2]["ids"].shape == (2, 2)
    assert parse({"data": [entry()]}, batched=False)(1)[0]["image"].shape == (2, 2)


def test_lists_that_stand_for_sequences_are_taken_one_after_the_other():
    assert len(parse({"data": [[entry(), entry()], [entry()]]}).rows) == 3


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], 'write {"data": [...]}'),
        ({"data": []}, "data is empty"),
        ({"data": [3]}, "data[0]: write an object"),
        ({"data": [entry(other=[1])]}, "data[0].other: the model has no such input; it has image, text, ids"),
        ({"data": [{"image": [1.0] * 4}]}, "data[0]: it lacks the input text"),
        ({"data": [entry(image=[1.0] * 3)]}, "data[0].image: it has 3 values, and its shape [2, 2] takes 4"),
        (
            {"data": [entry(image={"content": [1.0] * 4, "shape": [4]})]},
            "data[0].image.shape: it is [4], and the model",
        ),
        ({"data": [entry(image={"content": [1.0] * 4, "shape": "x"})]}, "data[0].image.shape: write a list of"),
        ({"data": [entry(image=["x"] * 4)]}, "data[0].image: its values are not those of TYPE_FP32"),
        ({"data": [entry(image={"b64": "*"})]}, "data[0].image.b64: write base64"),
        ({"data": [entry(image={"b64": "AAAA"})]}, "data[0].image: its 3 bytes are not those of 4 values"),
        ({"data": [entry(ids={"b64": "AAAA"})]}, "data[0].ids: the model leaves its shape open"),
        ({"data": [entry(ids=[1 << 80])]}, "data[0].ids: its values are not those of TYPE_INT64"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_place(document, words):
    with pytest.raises(InputError) as refused:
        parse(document)
    assert words in str(refused.value)


def test_what_is_no_json_is_said():
    with pytest.raises(InputError, match=r"data.json: not JSON"):
        model_inputs.parse("{", "data.json", [IMAGE], True)


@pytest.mark.parametrize("dtype", sorted(model_inputs._DTYPES))
def test_random_inputs_have_type_and_shape_and_can_be_sent(dtype):
    made = model_inputs.random([Input("x", dtype, (3, -1)), IDS], True, seed=1)
    one, *others = made(2)
    assert set(one) == {"x"}
    assert one["x"].shape == (2, 3, 1)
    assert any((other["x"] != one["x"]).any() for other in others)
    name, _ = wire.tensor_bytes("x", one["x"])
    assert name == dtype.removeprefix("TYPE_").replace("STRING", "BYTES")
    again = model_inputs.random([Input("x", dtype, (3, -1))], True, seed=1)
    assert (again(2)[0]["x"] == one["x"]).all()


def test_a_type_that_cannot_be_made_is_said():
    with pytest.raises(InputError, match="input x: no values of TYPE_BF16"):
        model_inputs.random([Input("x", "TYPE_BF16", (1,))], True, seed=1)


def test_a_configurations_inputs_without_that_of_the_class():
    config = {
        "input": [
            {"name": "bytes", "data_type": "TYPE_INT32", "dims": ["2048"]},
            {"name": "CLASS", "data_type": "TYPE_STRING", "dims": ["1"], "optional": True},
        ]
    }
    assert model_inputs.of_config(config) == [Input("bytes", "TYPE_INT32", (2048,))]
