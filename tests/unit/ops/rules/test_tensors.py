# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a router against its executor's; more of them in test_pair."""

import dataclasses

import pytest

from .written import LEVELS, codes, found, model, router, scorer

X = "data_type: TYPE_FP32 dims: [ 4 ]"


def routed(inputs="", output="data_type: TYPE_FP32 dims: [ 2 ]"):
    text = f"""backend: "priority_router" max_batch_size: 64 dynamic_batching {{ }}
    instance_group {{ kind: KIND_CPU count: 1 }}
    input {{ name: "CLASS" data_type: TYPE_STRING dims: [ 1 ] optional: true }} {inputs}
    output {{ name: "Y" {output} }}"""
    return dataclasses.replace(router(), config=model("lane", text).config)


def called(inputs="", output="data_type: TYPE_FP32 dims: [ 2 ]"):
    return scorer(tensors=f'max_batch_size: 4 {inputs} output {{ name: "Y" {output} }}')


@pytest.mark.parametrize(
    ("ours", "theirs", "agree"),
    [
        (X, X, True),
        (X, X + " reshape { shape: [ 2, 2 ] }", True),
        (X + " reshape { shape: [ 2, 2 ] }", X, False),
        ("data_type: TYPE_FP32 dims: [ 2, 2 ] reshape { shape: [ 4 ] }", X, True),
        ("data_type: TYPE_FP32 dims: [ 1 ] reshape { }", X, False),
        ("data_type: TYPE_FP32 dims: [ -1 ]", X, True),
        ("data_type: TYPE_FP32 dims: [ 5 ]", X, False),
        ("data_type: 11 dims: [ 4 ]", X, True),
        (X, X + " optional: true", True),
        (X + " optional: true", X, False),
    ],
)
def test_what_reaches_the_executor_is_what_counts(ours, theirs, agree):
    findings = found(routed(f'input {{ name: "X" {ours} }}'), called(f'input {{ name: "X" {theirs} }}'))
    assert [finding.rule.code for finding in findings] == ([] if agree else ["PR203"])
    assert all("requests" in finding.what for finding in findings)
    if "reshape" in ours and not agree:
        assert findings[0].fix.endswith("write dims: [ 4 ] for it in lane/config.pbtxt, without reshape")


def test_an_output_is_what_the_router_makes_before_its_reshape():
    shaped = "data_type: TYPE_FP32 dims: [ 1, 2 ] reshape { shape: [ 2 ] }"
    one = f'input {{ name: "X" {X} }}'
    assert codes(routed(one, output=shaped), called(one)) == []
    assert codes(routed(one), called(one, output=shaped)) == ["PR216 lane"]


def test_a_misspelt_input_is_told_its_name():
    unknown, missing = found(routed(f'input {{ name: "x_" {X} }}'), called(f'input {{ name: "x" {X} }}'))
    assert (unknown.rule.code, missing.rule.code) == ("PR203", "PR203")
    assert unknown.fix == 'write name: "x" in lane/config.pbtxt'


def test_an_executor_with_an_input_of_the_router_s_own_name_must_rename_it():
    inputs = f'input {{ name: "CLASS" {X} }}'
    (finding,) = found(routed(), called(inputs))
    assert finding.rule.code == "PR203"
    assert "give the input another name in scorer/config.pbtxt" in finding.fix


def test_bf16_in_the_executor_alone_is_not_to_be_copied():
    brain = 'input { name: "X" data_type: TYPE_BF16 dims: [ 4 ] }'
    (finding,) = found(routed(f'input {{ name: "X" {X} }}'), called(brain))
    assert finding.rule.code == "PR203"
    assert finding.fix == "let 'scorer' have it as TYPE_FP32, since no router can pass TYPE_BF16 on"


@pytest.mark.parametrize(
    "text",
    [
        f'backend: "onnxruntime" {LEVELS}',
        f'platform: "tensorrt_plan" {LEVELS} input {{ name: "X" {X} }} output {{ name: "Y" {X.replace("4", "2")} }}',
        f'backend: "onnxruntime" {LEVELS} output {{ name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }}',
        LEVELS,
    ],
)
def test_what_a_backend_has_yet_to_find_is_compared_with_nothing(text):
    executor = model("scorer", text + " instance_group { kind: KIND_CPU count: 1 }")
    assert codes(router(), executor) == []


def test_what_a_server_has_completed_is_compared():
    bare = model("scorer", f'backend: "onnxruntime" {LEVELS} instance_group {{ kind: KIND_CPU count: 1 }}')
    completed = dataclasses.replace(bare, completed=True)
    assert codes(router(), completed) == ["PR202 lane", "PR305 lane"]


def test_variable_lengths_are_noted_where_requests_are_joined():
    free = 'input { name: "X" data_type: TYPE_FP32 dims: [ 3, -1 ] }'
    (finding,) = found(routed(free), called(free))
    assert (finding.rule.code, finding.place.path) == ("PR113", ("input", 0, "dims"))
    assert "such as dims: [ 3, 128 ]" in finding.fix
