# SPDX-License-Identifier: Apache-2.0
"""The examples of `--explain` are what they say: lint finds fault with the first lines, and not with the second."""

import json
import tomllib
from typing import Any

import pytest
from google.protobuf import text_format
from priority_router.ops.lint import examples
from priority_router.ops.lint.check import check
from priority_router.ops.lint.examples import EXAMPLES
from priority_router.ops.rules.catalogue import RULES
from tritonclient.grpc import model_config_pb2
from unit.ops.lint.repositories import codes

EXECUTOR = """
name: "executor" backend: "python" max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching {
  priority_levels: 2 default_priority_level: 2
  priority_queue_policy [ { key: 1 value { } }, { key: 2 value { } } ]
}
"""
ROUTER = """
name: "router" backend: "priority_router" max_batch_size: 64
input [
  { name: "X" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "CLASS" data_type: TYPE_STRING dims: [ 1 ] optional: true }
]
output [
  { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "ROUTER_QUEUE_US" data_type: TYPE_INT64 dims: [ 1 ] },
  { name: "ROUTER_EXECUTOR_US" data_type: TYPE_INT64 dims: [ 1 ] }
]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching { }
"""
PIPELINE = """
name: "pipeline" platform: "ensemble" max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [ {
  model_name: "other" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" }
} ] }
"""
POLICY: dict[str, Any] = {
    "policy_version": 1,
    "mode": "levels",
    "executor": "executor",
    "executor_shape": {"instances": 1, "max_batch_size": 4},
    "class": [
        {"name": "online", "level": 1, "max_queue_size": 64},
        {"name": "background", "level": 2, "max_queue_size": 64},
    ],
}
OTHER = EXECUTOR.replace('"executor"', '"other"')
CONFIGS = {
    examples.EXECUTOR: EXECUTOR,
    examples.ROUTER: ROUTER,
    examples.OTHER: OTHER,
    examples.PIPELINE: PIPELINE,
}


def toml(table):
    # JSON writes texts, numbers and booleans as TOML does.
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())


def repository(folder, file="", lines="", fields=frozenset()):
    """A repository in which nothing is wrong but the lines, which take the place of fields, or of a table's keys."""
    texts = dict(CONFIGS)
    if file in CONFIGS:
        config = text_format.Parse(CONFIGS[file], model_config_pb2.ModelConfig())
        for field in fields:
            config.ClearField(field)
        texts[file] = text_format.MessageToString(config) + lines + "\n"
    policy = dict(POLICY)
    if file == examples.POLICY:
        given = tomllib.loads(lines)
        background = [table for table in policy["class"] if table["name"] == "background"]
        if given.get("class"):
            given["class"] += background if len(given["class"]) == 1 else []
        policy |= given
    for name, text in texts.items():
        path = folder / name
        (path.parent / "1").mkdir(parents=True)
        path.write_text(text)
        if 'backend: "python"' in text:
            (path.parent / "1" / "model.py").touch()
    shape, given = policy.pop("executor_shape"), {key: policy.pop(key, []) for key in ("class", "tenant")}
    tables = "".join(f"[[{key}]]\n{toml(table)}" for key in given for table in given[key])
    (folder / "router" / "0").mkdir()
    for version in "01":
        path = folder / "router" / version / "policy.toml"
        path.write_text(f"{toml(policy)}[executor_shape]\n{toml(shape)}{tables}")
    return folder


def fields(*texts):
    """Names at the beginnings of a text's lines, as far as a configuration has them."""
    known = {field.name for field in model_config_pb2.ModelConfig.DESCRIPTOR.fields}
    mistyped = {"max_batchsize": "max_batch_size"}
    found = {line.partition(" ")[0].partition(":")[0] for text in texts for line in text.splitlines()}
    schedulers = {"dynamic_batching", "sequence_batching"}
    found = {mistyped.get(name, name) for name in found} & known
    return found | (schedulers if found & schedulers else set())


IN_FILES = {code: example for code, example in EXAMPLES.items() if example.file in (*CONFIGS, examples.POLICY)}


def test_every_rule_has_an_example_in_its_place():
    assert list(EXAMPLES) == list(RULES)
    assert set(EXAMPLES) - set(IN_FILES) == {
        "PR004",
        "PR009",
        "PR012",
        "PR013",
        "PR017",
        "PR117",
        "PR120",
        "PR401",
        "PR512",
        "PR516",
    }


def test_nothing_is_wrong_with_the_repository_around_them(tmp_path):
    assert codes(check([repository(tmp_path)])) == []


@pytest.mark.parametrize("code", IN_FILES)
def test_the_wrong_lines_break_the_rule_and_the_right_ones_do_not(tmp_path, code):
    example = IN_FILES[code]
    replaced = fields(example.wrong, example.right)
    wrong = check([repository(tmp_path / "wrong", example.file, example.wrong, replaced)])
    assert code in codes(wrong)
    right = check([repository(tmp_path / "right", example.file, example.right, replaced)])
    assert code not in codes(right)
    assert {"PR001", "PR002", "PR003", "PR005"}.isdisjoint(codes(right))
