# SPDX-License-Identifier: Apache-2.0
"""Router against executor, as a running server has them: one wrong setting each, and the one finding that it gives."""

import copy
import re
from typing import Any

import pytest
from priority_router.config import parse_policy
from priority_router.ops.rules import sharing
from priority_router.ops.rules.models import Model
from priority_router.ops.server import comparison

LIMITS = {"max_queue_size": 8, "default_timeout_microseconds": 9}


def policy(*, mode="levels", top="", level=2, instances=1, max_batch_size=4):
    return parse_policy(
        f"""policy_version = 1
        executor = "executor"
        mode = "{mode}"
        {top}
        executor_shape = {{ instances = {instances}, max_batch_size = {max_batch_size} }}
        class = [{{ name = "online", level = 1 }}, {{ name = "bulk", level = {level} }}]
        """
    )


def tensor(name, data_type="TYPE_FP32", dims=(4,), **more):
    return {"name": name, "data_type": data_type, "dims": list(dims), **more}


EXECUTOR: dict[str, Any] = {
    "name": "executor",
    "max_batch_size": 4,
    "input": [tensor("X"), tensor("TAG", "TYPE_INT64", (1,), optional=True)],
    "output": [tensor("Y", dims=[-1])],
    "instance_group": [{"kind": "KIND_CPU", "count": 1, "gpus": [], "passive": False}],
    "dynamic_batching": {
        "max_queue_delay_microseconds": 0,
        "priority_levels": 2,
        "default_priority_level": 2,
        "priority_queue_policy": {"1": {"max_queue_size": 0}, "2": {"allow_timeout_override": False}},
    },
}
PLAIN_EXECUTOR = EXECUTOR | {"dynamic_batching": {"priority_levels": 0, "priority_queue_policy": {}}}
ROUTER: dict[str, Any] = {
    "name": "router",
    "max_batch_size": 64,
    "input": [tensor("X"), tensor("CLASS", "TYPE_STRING", (1,), optional=True)],
    "output": [
        tensor("Y"),
        tensor("ROUTER_QUEUE_US", "TYPE_INT64", (1,)),
        tensor("ROUTER_EXECUTOR_US", "TYPE_INT64", (1,)),
    ],
    "dynamic_batching": {"priority_levels": 0, "max_queue_delay_microseconds": 0},
}


def findings(declared, router, executor):
    served = Model("router", router, completed=True, policy=declared)
    return list(comparison.findings(served, Model("executor", executor, completed=True)))


def with_batching(config, **settings):
    return config | {"dynamic_batching": config["dynamic_batching"] | settings}


def without(config, key):
    return {name: value for name, value in config.items() if name != key}


def groups(*entries):
    return EXECUTOR | {"instance_group": [{"kind": "KIND_GPU", "passive": False, **entry} for entry in entries]}


@pytest.mark.parametrize(
    ("declared", "router", "executor"),
    [
        (policy(), ROUTER, EXECUTOR),
        (policy(mode="plain"), ROUTER, PLAIN_EXECUTOR),
        (policy(mode="plain"), ROUTER, without(EXECUTOR, "dynamic_batching")),
        (policy(mode="plain", max_batch_size=0), ROUTER, PLAIN_EXECUTOR | {"max_batch_size": 0}),
        (policy(instances=6), ROUTER, groups({"count": 2, "gpus": [0, 1]}, {"count": 2, "gpus": [3]})),
        (policy(), ROUTER, groups({"count": 1}, {"count": 3, "passive": True})),
        (policy(), ROUTER, with_batching(EXECUTOR, priority_levels=3)),
        (policy(), ROUTER, with_batching(EXECUTOR, priority_queue_policy={"3": LIMITS})),
        (policy(), ROUTER, with_batching(EXECUTOR, default_queue_policy={"allow_timeout_override": True})),
        (
            policy(instances=9),
            ROUTER,
            without(without(EXECUTOR, "dynamic_batching"), "instance_group") | {"ensemble_scheduling": {}},
        ),
        (policy(), ROUTER, EXECUTOR | {"output": [tensor("Y"), tensor("Z")]}),
        (policy(), ROUTER, with_batching(EXECUTOR, default_queue_policy=LIMITS)),
        (policy(top="shared_executor = true"), ROUTER, with_batching(EXECUTOR, priority_queue_policy={"2": LIMITS})),
        (policy(), ROUTER | {"max_batch_size": 2}, EXECUTOR),
    ],
    ids=[
        "levels",
        "plain",
        "plain without dynamic batching",
        "no batch axis",
        "gpus",
        "passive",
        "more levels",
        "limits of others",
        "override beside levels",
        "ensemble",
        "output not routed",
        "default limits that no level has",
        "limits for others",
        "small requests only",
    ],
)
def test_what_agrees_says_nothing(declared, router, executor):
    assert findings(declared, router, executor) == []


@pytest.mark.parametrize(
    ("declared", "router", "executor", "code", "said"),
    [
        (
            policy(max_batch_size=8),
            ROUTER,
            EXECUTOR,
            "PR305",
            "8 in policy.toml and 4 in .* fail; write max_batch_size = 4 in pol",
        ),
        (
            policy(max_batch_size=2),
            ROUTER,
            EXECUTOR,
            "PR308",
            "2 in policy.toml and 4 in .* smaller .*; write max_batch_size = 4",
        ),
        (
            policy(instances=5),
            ROUTER,
            EXECUTOR,
            "PR306",
            "instances is 5 in policy.toml and 1 in .*; write instances = 1 in pol",
        ),
        (
            policy(),
            ROUTER,
            groups({"count": 2, "gpus": [0, 1]}),
            "PR306",
            "instances is 1 in policy.toml and 4 in .*idle",
        ),
        (
            policy(),
            ROUTER,
            PLAIN_EXECUTOR,
            "PR101",
            "up to 2 and executor/config.pbtxt has no priority_levels: Triton serves all at .*priority_levels: 2, ",
        ),
        (policy(), ROUTER, without(EXECUTOR, "dynamic_batching"), "PR101", "has no priority_levels"),
        (
            policy(level=7),
            ROUTER,
            EXECUTOR,
            "PR102",
            "up to 7 and executor/config.pbtxt has 2 priority_levels: .* those above at .*write priority_levels: 7, ",
        ),
        (
            policy(mode="plain"),
            ROUTER,
            EXECUTOR,
            "PR304",
            'mode = "plain" and executor/config.pbtxt has priority_levels: 2: .*500 ms.*; remove priority_levels: 2, ',
        ),
        (
            policy(),
            ROUTER,
            with_batching(EXECUTOR, default_queue_policy=LIMITS, priority_queue_policy={"1": {}}),
            "PR109",
            "executor/config.pbtxt has default_timeout_microseconds: 9, max_queue_size: 8 in default_queue_policy",
        ),
        (
            policy(),
            ROUTER,
            with_batching(EXECUTOR, priority_queue_policy={"2": LIMITS}),
            "PR109",
            "in priority_queue_policy 2: it",
        ),
        (
            policy(mode="plain"),
            ROUTER,
            with_batching(PLAIN_EXECUTOR, default_queue_policy={"allow_timeout_override": True}),
            "PR109",
            "allow_timeout_override: true in default_queue_policy.*500 ms",
        ),
        (
            policy(),
            ROUTER,
            with_batching(EXECUTOR, max_queue_delay_microseconds=70),
            "PR108",
            "executor/config.pbtxt has max_queue_delay_microseconds: 70:.*; remove max_queue_delay_microseconds: 70",
        ),
        (
            policy(),
            ROUTER,
            EXECUTOR | {"sequence_batching": {}},
            "PR115",
            "executor/config.pbtxt has sequence_batching",
        ),
        (
            policy(),
            with_batching(ROUTER, max_queue_delay_microseconds="70"),
            EXECUTOR,
            "PR209",
            "router/config.pbtxt has max_queue_delay_microseconds: 70",
        ),
        (
            policy(),
            with_batching(ROUTER, default_queue_policy=LIMITS),
            EXECUTOR,
            "PR208",
            "router/config.pbtxt has default_timeout",
        ),
        (
            policy(),
            ROUTER | {"input": [*ROUTER["input"], tensor("NOPE")]},
            EXECUTOR,
            "PR203",
            r"input 'NOPE' in router/config.pbtxt is none of executor 'executor' \(it has X, TAG\)",
        ),
        (policy(), ROUTER | {"output": [tensor("NOPE")]}, EXECUTOR, "PR204", r"output 'NOPE' .* \(it has Y\)"),
        (
            policy(),
            ROUTER | {"input": [tensor("X", "TYPE_INT8")]},
            EXECUTOR,
            "PR203",
            r"input 'X' is TYPE_INT8 \[4\] in router/config.pbtxt and TYPE_FP32 .*; write data_type: TYPE_FP32",
        ),
        (policy(), ROUTER | {"input": [tensor("X", dims=[4, 1])]}, EXECUTOR, "PR203", r"TYPE_FP32 \[4, 1\] in router"),
        (policy(), ROUTER | {"input": [tensor("X", dims=[5])]}, EXECUTOR, "PR203", r"TYPE_FP32 \[5\] in router"),
        (
            policy(),
            ROUTER | {"output": [tensor("Y", "TYPE_INT32")]},
            EXECUTOR,
            "PR216",
            "output 'Y' is TYPE_INT32 .*: answers come as the",
        ),
        (
            policy(),
            ROUTER | {"input": [tensor("X", optional=True)]},
            EXECUTOR,
            "PR203",
            "input 'X' is optional in router/config.pbtxt",
        ),
        (
            policy(),
            ROUTER | {"input": ROUTER["input"][1:]},
            EXECUTOR,
            "PR203",
            "needs the input 'X', .* every request fails; write { name: \"X\" data_type: TYPE_FP32 dims",
        ),
    ],
)
def test_what_disagrees_is_said_once(declared, router, executor, code, said):
    before = copy.deepcopy((router, executor))
    (finding,) = findings(declared, router, executor)
    assert finding.rule.code == code
    assert re.search(said, finding.sentence()), finding.sentence()
    assert "\n" not in finding.sentence()
    assert (router, executor) == before


@pytest.mark.parametrize(
    ("top", "served", "said"),
    [
        ("", ["router", "exekutor", "else"], 'write executor = "exekutor" in policy.toml, if that is meant'),
        ("", ["router", "else"], "load it, or correct executor in policy.toml (there is else)"),
        ("", ["router"], "(there is no other model)"),
        ("executor_version = 9", ["executor", "router"], "'executor' version 9 of router 'router' is not there"),
        ("executor_version = 9", ["executor", "router"], "remove executor_version = 9 from policy.toml"),
    ],
)
def test_a_missing_executor_is_named_with_what_was_meant(top, served, said):
    finding = sharing.missing_executor(Model("router", ROUTER), policy(top=top), served, {})
    assert finding.rule.code == "PR301"
    assert said in finding.sentence()
    assert "UNAVAILABLE" in finding.sentence()
