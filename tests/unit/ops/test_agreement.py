# SPDX-License-Identifier: Apache-2.0
"""A table: one wrong setting each, and the one sentence that it gives."""

import copy
import re
from typing import Any

import pytest
from priority_router.config import parse_policy
from priority_router.ops import agreement

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
    ],
)
def test_what_agrees_says_nothing(declared, router, executor):
    assert agreement.disagreements(declared, router, executor) == []


@pytest.mark.parametrize(
    ("declared", "router", "executor", "said"),
    [
        (
            policy(max_batch_size=8),
            ROUTER,
            EXECUTOR,
            "8 in policy.toml and 4 in .* fail; write max_batch_size = 4 in pol",
        ),
        (
            policy(max_batch_size=2),
            ROUTER,
            EXECUTOR,
            "2 in policy.toml and 4 in .* smaller .*; write max_batch_size = 4",
        ),
        (
            policy(instances=5),
            ROUTER,
            EXECUTOR,
            "instances is 5 in policy.toml and 1 in .*; write instances = 1 in pol",
        ),
        (policy(), ROUTER, groups({"count": 2, "gpus": [0, 1]}), "instances is 1 in policy.toml and 4 in .*idle"),
        (
            policy(),
            ROUTER,
            PLAIN_EXECUTOR,
            "up to 2 and executor/config.pbtxt has no priority_levels.* priority_levels: 2 ",
        ),
        (policy(), ROUTER, without(EXECUTOR, "dynamic_batching"), "has no priority_levels"),
        (
            policy(level=7),
            ROUTER,
            EXECUTOR,
            "up to 7 and executor/config.pbtxt has 2 priority_levels.* priority_levels: 7 ",
        ),
        (policy(mode="plain"), ROUTER, EXECUTOR, 'mode = "plain".*priority_levels: 2 in executor/config.pbtxt.*500 ms'),
        (
            policy(),
            ROUTER,
            with_batching(EXECUTOR, default_queue_policy=LIMITS),
            "executor/config.pbtxt has default_timeout_microseconds: 9, max_queue_size: 8 in default_queue_policy",
        ),
        (
            policy(),
            ROUTER,
            with_batching(EXECUTOR, priority_queue_policy={"2": LIMITS}),
            "in priority_queue_policy 2: it",
        ),
        (
            policy(mode="plain"),
            ROUTER,
            with_batching(PLAIN_EXECUTOR, default_queue_policy={"allow_timeout_override": True}),
            "allow_timeout_override: true in default_queue_policy.*500 ms",
        ),
        (
            policy(),
            ROUTER,
            with_batching(EXECUTOR, max_queue_delay_microseconds=70),
            "executor/config.pbtxt has max_queue_delay_microseconds: 70.*; remove it",
        ),
        (policy(), ROUTER, EXECUTOR | {"sequence_batching": {}}, "executor/config.pbtxt has sequence_batching"),
        (
            policy(),
            with_batching(ROUTER, max_queue_delay_microseconds="70"),
            EXECUTOR,
            "router/config.pbtxt has max_queue_delay_microseconds: 70",
        ),
        (policy(), with_batching(ROUTER, priority_levels=2), EXECUTOR, "router/config.pbtxt has priority_levels: 2"),
        (
            policy(),
            with_batching(ROUTER, default_queue_policy=LIMITS),
            EXECUTOR,
            "router/config.pbtxt has default_timeout",
        ),
        (
            policy(),
            ROUTER | {"sequence_batching": {}},
            EXECUTOR,
            "router/config.pbtxt has sequence_batching.*no request",
        ),
        (
            policy(),
            ROUTER | {"input": [*ROUTER["input"], tensor("NOPE")]},
            EXECUTOR,
            r"input 'NOPE' in router/config.pbtxt is none of executor 'executor' \(it has X, TAG\)",
        ),
        (policy(), ROUTER | {"output": [tensor("NOPE")]}, EXECUTOR, r"output 'NOPE' .* \(it has Y\)"),
        (
            policy(),
            ROUTER | {"input": [tensor("X", "TYPE_INT8")]},
            EXECUTOR,
            r"input 'X' is TYPE_INT8 \[4\] in router/config.pbtxt and TYPE_FP32 \[4\] in .*dims: \[ 4 \] in router/con",
        ),
        (policy(), ROUTER | {"input": [tensor("X", dims=[4, 1])]}, EXECUTOR, r"TYPE_FP32 \[4, 1\] in router"),
        (policy(), ROUTER | {"input": [tensor("X", dims=[5])]}, EXECUTOR, r"TYPE_FP32 \[5\] in router"),
        (policy(), ROUTER | {"output": [tensor("Y", "TYPE_INT32")]}, EXECUTOR, "output 'Y' is TYPE_INT32"),
        (
            policy(),
            ROUTER | {"input": [tensor("X", optional=True)]},
            EXECUTOR,
            "input 'X' is optional in router/config.pbtxt",
        ),
        (
            policy(),
            ROUTER | {"input": ROUTER["input"][1:]},
            EXECUTOR,
            "needs the input 'X', .* every request fails; add",
        ),
    ],
)
def test_what_disagrees_is_said_once(declared, router, executor, said):
    before = copy.deepcopy((router, executor))
    (sentence,) = agreement.disagreements(declared, router, executor)
    assert sentence.startswith("router 'router': ")
    assert re.search(said, sentence), sentence
    assert "\n" not in sentence
    assert (router, executor) == before


@pytest.mark.parametrize(
    ("top", "served", "said"),
    [
        ("", ["router", "exekutor", "else"], 'did you mean executor = "exekutor" in router\'s policy.toml?'),
        ("", ["router", "else"], "load it, or correct executor in router's policy.toml (served: else)"),
        ("", ["router"], "(served: no other)"),
        ("executor_version = 9", ["executor", "router"], "'executor' version 9 is not loaded"),
        ("executor_version = 9", ["executor", "router"], "correct executor_version in router's policy.toml"),
    ],
)
def test_a_missing_executor_is_named_with_what_was_meant(top, served, said):
    sentence = agreement.missing_executor("router", policy(top=top), served)
    assert said in sentence
    assert "UNAVAILABLE" in sentence
