# SPDX-License-Identifier: Apache-2.0
"""What is said of an ensemble's steps, and of which nothing can be."""

from unit.ops.rules.written import codes, found, model, scorer

WHOLE = """platform: "ensemble" max_batch_size: 4 ensemble_scheduling { step {
  model_name: "%s" model_version: -1 input_map { key: "%s" value: "A" } output_map { key: "%s" value: "B" }
} }"""


def whole(name="scorer", given="X", taken="Y"):
    return model("whole", WHOLE % (name, given, taken))


def test_steps_that_are_there_and_have_the_tensors_are_fine():
    assert codes(scorer(), whole()) == []


def test_each_name_that_its_model_lacks_is_told():
    unknown_input, unknown_output = found(scorer(), whole(given="x", taken="Z"))
    assert "input_map of step 1 in whole/config.pbtxt has key 'x'" in unknown_input.what
    assert unknown_input.place.path == ("ensemble_scheduling", "step", 0, "input_map", "x")
    assert 'write key: "X" in place of key: "x"' in unknown_input.fix or 'key: "X"' in unknown_input.fix
    assert 'write key: "Y" in place of key: "Z"' in unknown_output.fix


def test_nothing_is_said_of_a_model_that_leaves_its_tensors_to_triton_or_cannot_be_read():
    open_model = model("open", 'backend: "onnxruntime" instance_group { kind: KIND_CPU count: 1 }')
    assert [code for code in codes(open_model, whole("open", "any", "thing")) if "PR12" in code] == []
    assert codes(whole("broken"), unreadable=("broken",)) == []


def test_a_missing_step_is_told_with_the_nearest_name_or_all_there_are():
    (near,) = found(scorer(), whole("scoring"))
    assert near.rule.code == "PR122"
    assert 'write model_name: "scorer" in whole/config.pbtxt' in near.fix
    (far,) = found(scorer(), whole("tokenizer"))
    assert "add that model" in far.fix
    assert "there is scorer" in far.fix
