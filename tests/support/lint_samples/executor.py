# SPDX-License-Identifier: Apache-2.0
"""Samples of the rules about executors: PR1xx."""

from __future__ import annotations

from typing import Final

from support.lint_samples.sample import (
    CLEAN,
    LANE_CONFIG,
    LANE_POLICY,
    LEVELS_BLOCK,
    SCORER,
    SCORER_BLOCK,
    SCORER_CONFIG,
    SCORER_MODEL,
    WITH_ENSEMBLE,
    Edit,
    Failure,
    Move,
    Refusal,
    lane,
    policy,
    sample,
    scorer,
    with_line,
)

_ONE_CPU: Final = "instance_group [ { kind: KIND_CPU count: 1 } ]"
_PLAIN: Final = "dynamic_batching { }"
_X: Final = '{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }'
_ORDER: Final = "  preserve_ordering: true\n"
_WITH_OTHER: Final = {**CLEAN, "second/config.pbtxt": SCORER.replace('"scorer"', '"second"'), "second/1/model.py": ""}
_SHARING: Final = {
    **WITH_ENSEMBLE,
    LANE_POLICY: CLEAN[LANE_POLICY].replace('"scorer"\n', '"scorer"\nshared_executor = true\n'),
}
"""An ensemble calls the executor as well, and the router knows."""

SAMPLES: Final = (
    sample(
        "PR101",
        "plain block",
        scorer(SCORER_BLOCK, _PLAIN),
        fix=(scorer(_PLAIN, LEVELS_BLOCK, f"{LEVELS_BLOCK} in place of {_PLAIN} in scorer"),),
    ),
    sample(
        "PR101",
        "no block",
        scorer(SCORER_BLOCK, ""),
        fix=(Edit(SCORER_CONFIG, "", LEVELS_BLOCK, f"{LEVELS_BLOCK} in scorer"),),
    ),
    sample(
        "PR101",
        "block with something else",
        scorer(SCORER_BLOCK, "dynamic_batching { preferred_batch_size: [ 4 ] }"),
        fix=tuple(
            scorer("preferred_batch_size: [ 4 ]", f"preferred_batch_size: [ 4 ] {line}", line)
            for line in (
                "priority_levels: 2",
                "default_priority_level: 2",
                "priority_queue_policy { key: 1 value { } }",
                "priority_queue_policy { key: 2 value { } }",
            )
        ),
    ),
    sample(
        "PR102",
        "",
        policy("level = 2", "level = 3"),
        fix=(
            scorer("priority_levels: 2", "priority_levels: 3"),
            scorer("default_priority_level: 2", "default_priority_level: 3"),
            scorer(
                "{ key: 2 value { } }",
                "{ key: 2 value { } } priority_queue_policy { key: 3 value { } }",
                "priority_queue_policy { key: 3 value { } }",
            ),
        ),
    ),
    sample(
        "PR103",
        "too high",
        scorer("default_priority_level: 2", "default_priority_level: 3"),
        shows=Refusal("scorer", r"default priority level must be in range \[1, 2\]"),
    ),
    sample(
        "PR103",
        "not written",
        scorer("  default_priority_level: 2\n", ""),
        fix=(
            scorer(
                "priority_levels: 2\n", "priority_levels: 2 default_priority_level: 2\n", "default_priority_level: 2"
            ),
        ),
        shows=Refusal("scorer", r"default priority level must be in range \[1, 2\]"),
    ),
    sample(
        "PR104",
        "",
        scorer("{ key: 2 value { } }", "{ key: 2 value { } } priority_queue_policy { key: 3 value { } }"),
        fix=(
            scorer(" priority_queue_policy { key: 3 value { } }", "", "remove the priority_queue_policy with key: 3"),
        ),
        shows=Refusal("scorer", r"must have priority level in range \[1, 2\]"),
    ),
    sample(
        "PR105",
        "",
        scorer("  priority_queue_policy { key: 2 value { } }\n", ""),
        fix=(
            scorer(
                "priority_levels: 2\n",
                "priority_levels: 2 priority_queue_policy { key: 2 value { } }\n",
                "priority_queue_policy { key: 2 value { } }",
            ),
        ),
    ),
    sample(
        "PR106",
        "",
        scorer("priority_levels: 2\n", f"priority_levels: 2\n{_ORDER}"),
        fix=(scorer(_ORDER, ""),),
        shows=Refusal("scorer", "Only one priority level is allowed when 'preserve_ordering' is true"),
    ),
    sample(
        "PR107",
        "",
        policy('"levels"', '"plain"'),
        scorer(SCORER_BLOCK, "dynamic_batching { preserve_ordering: true }"),
        fix=(scorer(" preserve_ordering: true", ""),),
    ),
    sample(
        "PR108",
        "",
        scorer("priority_levels: 2\n", "priority_levels: 2\n  max_queue_delay_microseconds: 100\n"),
        fix=(scorer("  max_queue_delay_microseconds: 100\n", ""),),
    ),
    sample(
        "PR109",
        "levels",
        scorer("key: 1 value { }", "key: 1 value { max_queue_size: 8 }"),
        fix=(scorer(" max_queue_size: 8", ""),),
    ),
    sample(
        "PR109",
        "plain",
        policy('"levels"', '"plain"'),
        scorer(SCORER_BLOCK, "dynamic_batching { default_queue_policy { max_queue_size: 8 } }"),
        fix=(scorer(" max_queue_size: 8", ""),),
    ),
    sample(
        "PR110",
        "",
        scorer("key: 1 value { }", "key: 1 value { allow_timeout_override: true }"),
        fix=(scorer(" allow_timeout_override: true", ""),),
    ),
    sample(
        "PR111",
        "policy",
        policy(
            "default_timeout_microseconds = 50_000", 'default_timeout_microseconds = 50_000\ntimeout_action = "DELAY"'
        ),
        fix=(policy('timeout_action = "DELAY"', 'timeout_action = "REJECT"'),),
    ),
    sample(
        "PR111",
        "executor",
        policy('executor = "scorer"', 'executor = "scorer"\nshared_executor = true'),
        scorer("key: 2 value { }", "key: 2 value { timeout_action: DELAY default_timeout_microseconds: 9000 }"),
        fix=(scorer("timeout_action: DELAY", "timeout_action: REJECT"),),
    ),
    sample(
        "PR112",
        "",
        policy('executor = "scorer"', 'executor = "scorer"\nshared_executor = true'),
        scorer("key: 2 value { }", "key: 2 value { max_queue_size: 3 }"),
        fix=(scorer("max_queue_size: 3", "max_queue_size: 4"),),
    ),
    sample(
        "PR113",
        "",
        scorer("dims: [ 4 ]", "dims: [ -1 ]"),
        fix=(
            scorer("dims: [ -1 ]", "dims: [ 128 ]"),
            lane('dims: [ 4 ] },\n  { name: "CLASS"', 'dims: [ -1 ] },\n  { name: "CLASS"', "128"),
        ),
    ),
    sample(
        "PR114",
        "above",
        scorer("priority_levels: 2\n", "priority_levels: 2\n  preferred_batch_size: [ 2, 8 ]\n"),
        fix=(scorer("preferred_batch_size: [ 2, 8 ]", "preferred_batch_size: [ 2 ]"),),
        shows=Refusal("scorer", "dynamic batching preferred size must be <= max batch size"),
    ),
    sample(
        "PR114",
        "completed by the backend",
        scorer('backend: "python"\nmax_batch_size: 4\n', 'backend: "onnxruntime"\n'),
        scorer(f"input [ {_X} ]\n", ""),
        scorer('output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]\n', ""),
        scorer("priority_levels: 2\n", "priority_levels: 2\n  preferred_batch_size: [ 2 ]\n"),
        Move(SCORER_MODEL, "scorer/1/model.onnx", ""),
        fix=(scorer("  preferred_batch_size: [ 2 ]\n", ""),),
        shows=Refusal("scorer", "dynamic batching preferred size must be <= max batch size"),
        onnx={"X": (None, 4), "Y": (None, 4)},
    ),
    sample(
        "PR115",
        "sequences",
        scorer(SCORER_BLOCK, "sequence_batching { }"),
        fix=(scorer("sequence_batching { }", LEVELS_BLOCK),),
        shows=Failure("correlation ID"),
    ),
    with_line(
        "PR115",
        "decoupled",
        line="model_transaction_policy { decoupled: true }",
        path=SCORER_CONFIG,
        said="remove model_transaction_policy",
        shows=Failure("decoupled"),
    ),
    with_line(
        "PR116",
        "executor",
        line="response_cache { enable: true }",
        path=SCORER_CONFIG,
        said="remove response_cache",
    ),
    with_line(
        "PR116",
        "router",
        line="response_cache { enable: true }",
        path=LANE_CONFIG,
        said="remove response_cache",
    ),
    sample(
        "PR117",
        "",
        scorer('backend: "python"', 'backend: "onnxruntime"'),
        Move(SCORER_MODEL, "scorer/1/model.onnx", ""),
        fix=(
            scorer(
                "max_batch_size: 4",
                "max_batch_size: 0",
                "max_batch_size: 0 in scorer/config.pbtxt and lane/config.pbtxt",
            ),
            lane("max_batch_size: 64", "max_batch_size: 0"),
            policy("max_batch_size = 4", "max_batch_size = 0", "max_batch_size = 0 in lane/1/policy.toml"),
            scorer("dims: [ 4 ]", "dims: [ 1, 4 ]", "dims: [ 1, 4 ] for 'X'"),
            scorer("dims: [ 2 ]", "dims: [ 1, 4 ]", "dims: [ 1, 4 ] for 'Y'"),
            lane("dims: [ 4 ]", "dims: [ 1, 4 ]"),
            lane("dims: [ 2 ]", "dims: [ 1, 4 ]"),
        ),
        shows=Refusal("scorer", "batch"),
        onnx={"X": (1, 4), "Y": (1, 4)},
    ),
    sample(
        "PR118",
        "no group",
        scorer(_ONE_CPU + "\n", ""),
        fix=(Edit(SCORER_CONFIG, "", _ONE_CPU),),
    ),
    sample(
        "PR118",
        "no count",
        scorer('backend: "python"', 'backend: "onnxruntime"'),
        scorer(" kind: KIND_CPU count: 1", ""),
        scorer("dims: [ 2 ]", "dims: [ 4 ]"),
        lane("dims: [ 2 ]", "dims: [ 4 ]"),
        Move(SCORER_MODEL, "scorer/1/model.onnx", ""),
        fix=(scorer("instance_group [ { } ]", "instance_group [ { count: 1 } ]", "count: 1"),),
        onnx={"X": (None, 4), "Y": (None, 4)},
    ),
    sample(
        "PR119",
        "",
        policy('executor = "scorer"', 'executor = "whole"'),
        files=WITH_ENSEMBLE,
        fix=(policy('executor = "whole"', 'executor = "scorer"\nshared_executor = true', 'executor = "scorer"'),),
    ),
    sample(
        "PR121",
        "",
        Edit("second/config.pbtxt", "key: 1 value { }", "key: 1 value { allow_timeout_override: true }"),
        files=_WITH_OTHER,
        fix=(Edit("second/config.pbtxt", " allow_timeout_override: true", ""),),
    ),
    sample(
        "PR122",
        "misspelt",
        Edit("whole/config.pbtxt", 'model_name: "scorer"', 'model_name: "scores"'),
        files=_SHARING,
        fix=(Edit("whole/config.pbtxt", 'model_name: "scores"', 'model_name: "scorer"'),),
        shows=Refusal("whole", "scores"),
    ),
    sample(
        "PR123",
        "input",
        Edit("whole/config.pbtxt", 'input_map { key: "X"', 'input_map { key: "IMAGE"'),
        files=_SHARING,
        fix=(Edit("whole/config.pbtxt", 'key: "IMAGE"', 'key: "X"'),),
        shows=Refusal("whole", "IMAGE"),
    ),
    sample(
        "PR123",
        "output",
        Edit("whole/config.pbtxt", 'output_map { key: "Y"', 'output_map { key: "Y1"'),
        files=_SHARING,
        fix=(Edit("whole/config.pbtxt", 'key: "Y1"', 'key: "Y"'),),
        shows=Refusal("whole", "Y1"),
    ),
    sample(
        "PR124",
        "",
        scorer("KIND_CPU", "KIND_GPU"),
        fix=(scorer("KIND_GPU count: 1", "KIND_GPU count: 1 gpus: [ 0 ]", "gpus: [ 0 ]"),),
        shows=Refusal("scorer", "GPU"),  # where there is one it loads
    ),
)
