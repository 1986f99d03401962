# SPDX-License-Identifier: Apache-2.0
"""Samples of the rules about files: PR0xx."""

from __future__ import annotations

from typing import Final

from support.lint_samples.sample import (
    LANE_CONFIG,
    LANE_POLICY,
    SCORER_CONFIG,
    SCORER_MODEL,
    Edit,
    Move,
    Refusal,
    lane,
    policy,
    sample,
    scorer,
    with_line,
)

FOUND_BY_READING: Final = (
    sample(
        "PR001",
        "",
        scorer("max_batch_size: 4", "max_batch_size 4"),
        fix=(scorer("max_batch_size 4", "max_batch_size: 4", "write max_batch_size: VALUE"),),
        shows=Refusal("scorer", "failed to poll"),
    ),
    sample(
        "PR002",
        "",
        scorer("max_batch_size: 4", "max_batchsize: 4"),
        fix=(scorer("max_batchsize", "max_batch_size"),),
        shows=Refusal("scorer", "failed to poll"),
    ),
    sample(
        "PR003",
        "",
        scorer("max_batch_size: 4", "max_batch_size: ${size}"),
        fix=(scorer("${size}", "4", "write what it stands for"),),
        shows=Refusal("scorer", r"Expected integer, got: \$"),
    ),
    sample(
        "PR006",
        "",
        scorer("{ key: 2 value { } }", "{ key: 2 value { } } priority_queue_policy { key: 2 value { } }"),
        fix=(
            scorer(
                "{ key: 2 value { } } priority_queue_policy { key: 2 value { } }",
                "{ key: 2 value { } }",
                "remove the entry at 11:3, or that at 11:46",
            ),
        ),
    ),
    sample(
        "PR018",
        "",
        Edit(SCORER_CONFIG, "", 'parameters { key: "a" value { string_value: "${a}" } }'),
        fix=(Edit(SCORER_CONFIG, "${a}", "1", "write what it stands for"),),
    ),
    sample(
        "PR007",
        "",
        lane("max_batch_size: 64", "max_batch_size: 0100"),
        fix=(lane("0100", "64", "write 100, or 64 if that is meant"),),
    ),
)
"""Rules about what the configurations are read from; who only sees what they mean does not find them."""

SAMPLES: Final = (
    sample(
        "PR004",
        "",
        Move(LANE_POLICY, "lane/policy.toml", ""),
        fix=(Move("lane/policy.toml", LANE_POLICY, "put policy.toml into lane/1"),),
        shows=Refusal("lane", "at least one version must be available"),
    ),
    sample(
        "PR005",
        "",
        policy('"levels"', '"level"'),
        fix=(policy('"level"', '"levels"'),),
        shows=Refusal("lane", "mode = 'level' cannot be used"),
    ),
    sample(
        "PR008",
        "",
        scorer('name: "scorer"', 'name: "score"'),
        shows=Refusal("scorer", "unexpected directory name 'scorer'"),
    ),
    sample(
        "PR009",
        "no version folder",
        Move(SCORER_MODEL, "scorer/model.py", ""),
        fix=(Move("scorer/model.py", SCORER_MODEL, "make the folder scorer/1, with model.py in it"),),
        shows=Refusal("scorer", "at least one version must be available"),
    ),
    sample(
        "PR009",
        "no model file",
        scorer('backend: "python"', 'backend: "onnxruntime"'),
        Move(SCORER_MODEL, "scorer/1/scorer.onnx", ""),
        fix=(Move("scorer/1/scorer.onnx", "scorer/1/model.onnx", "scorer/1/model.onnx"),),
        shows=Refusal("scorer", "model.onnx"),
    ),
    with_line(
        "PR009",
        "version policy",
        line="version_policy { specific { versions: [ 2 ] } }",
        path=SCORER_CONFIG,
        said="remove version_policy",
        shows=Refusal("scorer", "at least one version must be available"),
    ),
    sample(
        "PR015",
        "misspelt backend",
        lane('backend: "priority_router"', 'backend: "priority-router"'),
        shows=Refusal("lane", "unable to find backend library for backend 'priority-router'"),
    ),
    sample(
        "PR015",
        "platform",
        lane('backend: "priority_router"', 'platform: "priority_router"'),
        fix=(lane('platform: "priority_router"', 'backend: "priority_router"', 'backend: "priority_router" in place'),),
        shows=Refusal("lane", "unexpected platform type 'priority_router'"),
    ),
    sample(
        "PR015",
        "no backend",
        lane('backend: "priority_router"\n', ""),
        fix=(Edit(LANE_CONFIG, "", 'backend: "priority_router"'),),
        shows=Refusal("lane", "Could not determine backend"),
    ),
    sample(
        "PR016",
        "",
        scorer('backend: "python"', 'backend: "pyton"'),
        shows=Refusal("scorer", "unable to find backend library for backend 'pyton'"),
    ),
    sample(
        "PR017",
        "",
        scorer('backend: "python"\n', ""),
        Move(SCORER_MODEL, "scorer/1/weights.bin", ""),
        fix=(Edit(SCORER_CONFIG, "", 'backend: "somebody-s"', "write backend in scorer"),),
        shows=Refusal("scorer", "Could not determine backend"),
    ),
    sample(
        "PR019",
        "max_batch_size",
        scorer("max_batch_size: 4", "max_batch_size: -1"),
        fix=(scorer("max_batch_size: -1", "max_batch_size: 4", "its largest batch"),),
        shows=Refusal("scorer", "must be non-negative value"),
    ),
    sample(
        "PR019",
        "length",
        scorer("TYPE_FP32 dims: [ 4 ]", "TYPE_FP32 dims: [ 0 ]"),
        fix=(scorer("TYPE_FP32 dims: [ 0 ]", "TYPE_FP32 dims: [ 4 ]", "write its lengths"),),
        shows=Refusal("scorer", "dimension must be integer >= 1, or -1"),
    ),
    sample(
        "PR019",
        "output's length",
        scorer("dims: [ 2 ]", "dims: [ -2 ]"),
        fix=(scorer("dims: [ -2 ]", "dims: [ 2 ]", "write its lengths"),),
        shows=Refusal("scorer", "dimension must be integer >= 1, or -1"),
    ),
    sample(
        "PR019",
        "no data type",
        scorer("data_type: TYPE_FP32 dims: [ 4 ]", "dims: [ 4 ]"),
        fix=(scorer("dims: [ 4 ]", "data_type: TYPE_FP32 dims: [ 4 ]", "data_type: TYPE_FP32"),),
        shows=Refusal("scorer", "model input 'X' must specify 'data_type'"),
    ),
    sample(
        "PR019",
        "type that is none",
        scorer("TYPE_FP32 dims: [ 4 ]", "TYPE_INVALID dims: [ 4 ]"),
        fix=(scorer("TYPE_INVALID", "TYPE_FP32"),),
        shows=Refusal("scorer", "model input 'X' must specify 'data_type'"),
    ),
    sample(
        "PR019",
        "GPUs on the CPU",
        scorer("KIND_CPU count: 1", "KIND_CPU count: 1 gpus: [ 0, 1 ]"),
        fix=(scorer(" gpus: [ 0, 1 ]", ""),),
        shows=Refusal("scorer", "has kind KIND_CPU but specifies one or more GPUs"),
    ),
    sample(
        "PR019",
        "of the router",
        lane("max_batch_size: 64", "max_batch_size: -1"),
        fix=(lane("max_batch_size: -1", "max_batch_size: 64", "its largest batch"),),
        shows=Refusal("lane", "must be non-negative value"),
    ),
    sample(
        "PR014",
        "",
        scorer('backend: "python"', 'platform: "python"'),
        fix=(scorer('platform: "python"', 'backend: "python"'),),
        shows=Refusal("scorer", "unexpected platform type 'python'"),
    ),
    sample(
        "PR014",
        "backend's name",
        scorer('backend: "python"', 'platform: "onnxruntime"'),
        Move(SCORER_MODEL, "scorer/1/model.onnx", ""),
        fix=(scorer('platform: "onnxruntime"', 'platform: "onnxruntime_onnx"'),),
        shows=Refusal("scorer", "unexpected platform type 'onnxruntime'"),
    ),
    sample("PR010", "policy", policy("50_000", "50"), fix=(policy("= 50\n", "= 50000\n"),), asked=False),
    sample(
        "PR010",
        "executor",
        policy('executor = "scorer"', 'executor = "scorer"\nshared_executor = true'),
        scorer("key: 2 value { }", "key: 2 value { default_timeout_microseconds: 200 }"),
        fix=(scorer("default_timeout_microseconds: 200", "default_timeout_microseconds: 200000"),),
        asked=False,
    ),
    sample("PR011", "executor", scorer("default_priority_level: 2", "default_priority_level: 1")),
    sample(
        "PR011",
        "policy",
        policy("level = 1\n", "level = 3\n"),
        policy("level = 2\n", "level = 1\n"),
        policy("level = 3\n", "level = 2\n"),
        fix=(
            policy('"online"\nlevel = 2\n', '"online"\nlevel = 1\n', "level = 1 for 'online'"),
            policy('"background"\nlevel = 1\n', '"background"\nlevel = 2\n', "level = 2 for 'background'"),
        ),
    ),
)
