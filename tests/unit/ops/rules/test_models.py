# SPDX-License-Identifier: Apache-2.0
"""Folders, ONNX files, and what a router and its policy are by themselves."""

import dataclasses

import pytest
from priority_router.config import parse_policy
from priority_router.ops.rules.models import Model, OnnxTensors

from .written import LEVELS, codes, found, model, router, scorer

PYTHON = {"backend": "python"}


@pytest.mark.parametrize(
    ("config", "versions", "files", "said"),
    [
        (PYTHON, (1,), {"1/model.py"}, ""),
        (PYTHON, (1,), None, ""),
        (PYTHON, (), None, ""),
        (PYTHON, (), set(), "make the folder other/1, with model.py in it"),
        (PYTHON, (1, 2), {"1/model.py"}, "put the model into other/2/model.py"),
        (PYTHON | {"version_policy": {"all": {}}}, (1, 2), {"2/model.py"}, "put the model into other/1/model.py"),
        (PYTHON | {"version_policy": {"specific": {"versions": ["3"]}}}, (1,), {"1/model.py"}, "remove version_policy"),
        (PYTHON | {"default_model_filename": "m.py"}, (1,), {"1/m.py"}, ""),
        (PYTHON | {"default_model_filename": "m.py"}, (1,), {"1/model.py"}, "other/1/m.py"),
        ({"backend": "somebody-s"}, (1,), {"1/anything"}, ""),
        ({"backend": "somebody-s", "default_model_filename": "m.bin"}, (1,), {"1/anything"}, ""),
        ({"backend": "pytorch"}, (1,), {"1/model.py"}, "other/1/model.pt"),
        ({"backend": "pytorch", "runtime": "model.py"}, (1,), {"1/model.py"}, ""),
        ({"platform": "tensorflow_savedmodel"}, (1,), {"1/model.graphdef"}, "other/1/model.savedmodel"),
        ({"backend": "tensorflow"}, (1,), {"1/model.graphdef"}, ""),
        ({}, (1, 2), {"1/model.plan"}, "other/2/model.plan"),
        ({"platform": "tensorrt_plan"}, (1,), set(), "other/1/model.plan"),
        ({"platform": "tensorrt_plan", "cc_model_filenames": {"8.0": "a.plan"}}, (1,), {"1/a.plan"}, ""),
        ({"backend": "onnxruntime"}, (1,), {"1/model.onnx/model.onnx"}, ""),
        ({"platform": "ensemble", "ensemble_scheduling": {}}, (1,), set(), ""),
        ({"platform": "ensemble", "ensemble_scheduling": {}}, (), set(), "make the folder other/1, left empty"),
    ],
)
def test_a_version_that_serves_must_hold_its_model(config, versions, files, said):
    one = Model("other", config, versions=versions, files=None if files is None else frozenset(files))
    findings = found(one)
    assert [finding.rule.code for finding in findings] == (["PR009"] if said else [])
    assert not said or said in findings[0].fix


@pytest.mark.parametrize(
    ("versions", "files", "missing"),
    [
        ((1,), {"1/policy.toml"}, []),
        ((1, 2), {"1/policy.toml"}, [2]),
        ((1, 2), {"2/policy.toml"}, []),
        ((), {"policy.toml"}, [1]),
        ((), set(), [1]),
    ],
)
def test_a_router_needs_its_policy_in_the_version_that_serves(versions, files, missing):
    lane = dataclasses.replace(router(), versions=versions, files=frozenset(files))
    findings = found(lane, scorer())
    assert [finding.rule.code for finding in findings] == ["PR004"] * len(missing)
    for finding, version in zip(findings, missing, strict=True):
        assert finding.fix == f"put policy.toml into lane/{version}"
        assert ("there is lane/" in finding.what) is bool(files)


def test_a_router_of_which_nobody_knows_the_files_may_lack_its_policy():
    lane = dataclasses.replace(router(), policy=None, policy_file="")
    assert codes(lane, scorer()) == ["PR004 lane"]


@pytest.mark.parametrize(
    ("error", "what", "fix"),
    [
        ("f: mode = 'x; y' cannot be used; write z", "f: mode = 'x; y' cannot be used: the", "write z"),
        (
            "f: n = '1' cannot be used; write an integer: A; b.",
            "f: n = '1' cannot be used: the",
            "write an integer: A; b",
        ),
        ("f: unknown key priority = 1: did you mean level?", "f: unknown key priority = 1: the", "did you mean level?"),
        ("f: unknown key a = 1: it belongs in [[class]]", "f: unknown key a = 1: the", "it belongs in [[class]]"),
        ("f: not valid TOML: at line 3", "f: not valid TOML: at line 3: the", "correct that in lane/1/policy.toml"),
    ],
)
def test_the_words_of_a_policy_error_are_what_and_fix(error, what, fix):
    lane = dataclasses.replace(router(), policy=None, policy_error=error)
    (finding,) = found(lane, scorer())
    assert finding.rule.code == "PR005"
    assert what in finding.what
    assert finding.fix == fix


@pytest.mark.parametrize(
    ("config", "files", "said"),
    [
        ({}, {"1/policy.toml"}, 'write backend: "priority_router" into other/config.pbtxt'),
        ({}, {"config.pbtxt", "1/policy.toml"}, 'write backend: "priority_router" in other/config.pbtxt'),
        (PYTHON, {"config.pbtxt", "1/policy.toml"}, 'in place of backend: "python" in'),
        (PYTHON, {"config.pbtxt", "1/policy.toml", "1/model.py"}, ""),
        ({}, {"1/policy.toml", "1/model.onnx"}, ""),
        ({"backend": "somebody-s"}, {"config.pbtxt", "1/policy.toml"}, ""),
        ({"backend": "prioritty_router"}, {"config.pbtxt", "1/policy.toml"}, "in place of"),
    ],
)
def test_a_policy_in_what_is_no_router(config, files, said):
    findings = found(Model("other", config, versions=(1,), files=frozenset(files)))
    assert [finding.rule.code for finding in findings] == (["PR015"] if said else [])
    assert not said or said in findings[0].fix


@pytest.mark.parametrize(
    ("name", "config", "files", "expected"),
    [
        ("other", {"backend": "pyton"}, {"1/model.py"}, ["PR016"]),
        ("other", {"backend": "onnxruntme"}, {"1/model.onnx"}, ["PR016"]),
        ("other", {"backend": "pyton"}, {"1/libtriton_pyton.so"}, []),
        ("other", {"backend": "my_own"}, {"1/x"}, []),
        ("other", {}, {"1/weights.bin"}, ["PR017"]),
        ("other", {"default_model_filename": "weights.bin"}, {"1/weights.bin"}, []),
        ("other.my_own", {}, {"1/weights.bin"}, []),
        ("other", {}, None, []),
    ],
)
def test_a_backend_that_triton_does_not_know(name, config, files, expected):
    one = Model(name, config, versions=(1,), files=None if files is None else frozenset(files))
    assert [finding.rule.code for finding in found(one)] == expected


@pytest.mark.parametrize("name", [None, "", "other"])
def test_a_name_may_be_left_out(name):
    assert codes(Model("other", PYTHON | ({} if name is None else {"name": name}))) == []


FREE, FIXED = (None, 4), (1, 4)


@pytest.mark.parametrize(
    ("shapes", "size", "backend", "fails"),
    [
        ({"X": FREE}, 4, "onnxruntime", False),
        ({"X": FIXED}, 4, "onnxruntime", True),
        ({"X": ()}, 4, "onnxruntime", True),
        ({"X": FREE, "W": FIXED}, 4, "onnxruntime", True),
        ({"X": FIXED}, 0, "onnxruntime", False),
        ({"X": FIXED}, 4, "python", False),
    ],
)
def test_a_batch_axis_must_be_free(shapes, size, backend, fails):
    onnx = OnnxTensors(shapes, {"Y": FREE})
    one = Model("other", {"backend": backend, "max_batch_size": size}, onnx=onnx)
    assert codes(one) == (["PR117 other"] if fails else [])


def test_what_to_write_for_a_fixed_batch_axis_leaves_the_other_lengths_free():
    config = {"backend": "onnxruntime", "max_batch_size": 4, "input": [{"name": "X"}]}
    (finding,) = found(Model("other", config, onnx=OnnxTensors({"X": (2, None)}, {"Y": FREE})))
    assert "'X' of its model.onnx has the shape [2, -1]" in finding.what
    assert finding.fix.endswith("max_batch_size: 0 in other/config.pbtxt and dims: [ 2, -1 ] for 'X' there")


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("instance_group { kind: KIND_CPU count: 1 }", []),
        ("instance_group { kind: KIND_CPU }", []),
        ("instance_group { kind: KIND_CPU count: 2 }", ["PR201 lane"]),
        ("instance_group { kind: KIND_MODEL count: 1 }", ["PR201 lane"]),
        ("instance_group { kind: KIND_GPU gpus: [ 0 ] }", ["PR201 lane"]),
        ("instance_group { kind: KIND_CPU } instance_group { kind: KIND_CPU passive: true }", ["PR201 lane"]),
        ("instance_group { count: 2 }", ["PR201 lane"]),
        ("instance_group { count: 1 }", ["PR213 lane"]),
        ("", ["PR213 lane"]),
    ],
)
def test_a_router_is_one_cpu_instance(groups, expected):
    config = {key: value for key, value in router().config.items() if key != "instance_group"}
    lane = dataclasses.replace(router(), config={**config, **model("lane", groups).config})
    assert codes(lane, scorer()) == expected


@pytest.mark.parametrize(
    ("sources", "needed"), [('["parameter"]', False), ('["header:x-class"]', False), ('["parameter", "tensor"]', True)]
)
def test_class_is_needed_where_it_is_a_source(sources, needed):
    inputs = [tensor for tensor in router().config["input"] if tensor["name"] != "CLASS"]
    lane = router(top=f"class_sources = {sources}")
    lane = dataclasses.replace(lane, config={**lane.config, "input": inputs})
    assert codes(lane, scorer()) == (["PR214 lane"] if needed else [])


@pytest.mark.parametrize(
    ("size", "policy_size", "expected"),
    [(64, 4, []), (4, 4, []), (3, 4, ["PR202"]), (0, 4, ["PR202"]), (64, 0, ["PR202"]), (0, 0, [])],
)
def test_a_router_without_a_known_executor_is_compared_with_its_policy(size, policy_size, expected):
    lane = router(max_batch_size=policy_size)
    lane = dataclasses.replace(lane, config={**lane.config, "max_batch_size": size})
    findings = found(lane, unreadable=("scorer",))
    assert [finding.rule.code for finding in findings] == expected
    for finding in findings:
        assert ("the router does not load" in finding.what) is (size == 0 or policy_size == 0)
        assert finding.fix == f"write max_batch_size: {16 * policy_size} in lane/config.pbtxt"


@pytest.mark.parametrize(
    ("classes", "turned"),
    [
        ({"online": 1, "background": 2}, ""),
        ({"a": 2, "b": 1}, ""),
        ({"online": 2, "other": 1}, ""),
        ({"online": 1, "bulk": 1}, ""),
        (
            {"real-time": 3, "normal": 2, "nightly-batch": 1},
            "level = 1 for 'real-time', level = 2 for 'normal' and level = 3",
        ),
        ({"Interactive.eu": 10, "OFFLINE": 4}, "level = 4 for 'Interactive.eu' and level = 10 for 'OFFLINE'"),
        ({"online": 1, "interactive": 3, "bulk": 2}, "level = 3 for 'online', level = 1 for 'interactive'"),
        ({"onlineshop": 2, "batchman": 1}, ""),
    ],
)
def test_classes_whose_names_say_the_opposite(classes, turned):
    tables = "".join(
        f'[[class]]\nname = "{name}"\nlevel = {level}\nmax_queue_size = 1\n' for name, level in classes.items()
    )
    top = 'policy_version = 1\nmode = "plain"\nexecutor = "scorer"\n'
    shape = "[executor_shape]\ninstances = 1\nmax_batch_size = 4\n"
    lane = dataclasses.replace(router(), policy=parse_policy(top + shape + tables))
    findings = found(lane, scorer(text="dynamic_batching { }"))
    assert [finding.rule.code for finding in findings] == (["PR011"] if turned else [])
    assert not turned or turned in findings[0].fix


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("default_timeout_microseconds = 1", ["PR010"]),
        ("default_timeout_microseconds = 999", ["PR010"]),
        ("default_timeout_microseconds = 1000", []),
        ('timeout_action = "DELAY"', ["PR111"]),
        ('timeout_action = "DELAY"\nallow_timeout_override = false', []),
        ('timeout_action = "DELAY"\nallow_timeout_override = false\ndefault_timeout_microseconds = 5000', ["PR111"]),
    ],
)
def test_timeouts_of_a_class(lines, expected):
    text = f"""policy_version = 1
executor = "scorer"
mode = "plain"
executor_shape = {{ instances = 1, max_batch_size = 4 }}
[[class]]
name = "online"
level = 1
max_queue_size = 1
{lines}"""
    lane = dataclasses.replace(router(), policy=parse_policy(text))
    assert [finding.rule.code for finding in found(lane, scorer(text="dynamic_batching { }"))] == expected


def test_the_pool_of_a_router_that_nobody_starts_is_not_looked_at():
    assert codes(router(instances=100), scorer(groups="instance_group { kind: KIND_CPU count: 100 }")) == []


def test_an_override_beside_levels_is_one_finding():
    block = LEVELS.replace("key: 1 value { }", "key: 1 value { allow_timeout_override: true }")
    assert codes(router(), scorer(text=block)) == ["PR110 scorer"]
