# SPDX-License-Identifier: Apache-2.0
"""Samples of the rules about routers: PR2xx."""

from __future__ import annotations

from typing import Final

from support.lint_samples.sample import (
    CLEAN,
    LANE_CONFIG,
    LANE_POLICY,
    Edit,
    Failure,
    Refusal,
    lane,
    sample,
    scorer,
    with_line,
)

_X: Final = '{ name: "X" data_type: TYPE_FP32 dims: [ 4 ] }'
_CLASS: Final = '{ name: "CLASS" data_type: TYPE_STRING dims: [ 1 ] optional: true }'
_QUEUE: Final = '{ name: "ROUTER_QUEUE_US" data_type: TYPE_INT64 dims: [ 1 ] }'
_ONE_CPU: Final = "instance_group [ { kind: KIND_CPU count: 1 } ]"
_PLAIN: Final = "dynamic_batching { }"
_WARMUP: Final = """model_warmup {
  name: "zeros"
  inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } }
}"""

SAMPLES: Final = (
    sample(
        "PR201",
        "count",
        lane("count: 1", "count: 2"),
        fix=(lane(_ONE_CPU.replace("1", "2"), _ONE_CPU),),
        shows=Refusal("lane", "must be one CPU instance"),
    ),
    sample(
        "PR201",
        "groups",
        lane("count: 1 }", "count: 1 }, { kind: KIND_CPU count: 1 }"),
        fix=(lane(_ONE_CPU.replace("1 }", "1 }, { kind: KIND_CPU count: 1 }"), _ONE_CPU),),
        shows=Refusal("lane", "must be one CPU instance"),
    ),
    sample(
        "PR201",
        "GPU",
        lane("KIND_CPU", "KIND_GPU"),
        fix=(lane(_ONE_CPU.replace("CPU", "GPU"), _ONE_CPU),),
        shows=Refusal("lane", "KIND_GPU"),
    ),
    sample("PR202", "", lane("max_batch_size: 64", "max_batch_size: 2"), shows=Failure("batch-size", rows=4)),
    sample(
        "PR202", "no batches", lane("max_batch_size: 64", "max_batch_size: 0"), shows=Refusal("lane", "both must be 0")
    ),
    sample(
        "PR202",
        "no batches, no block",
        lane("max_batch_size: 64", "max_batch_size: 0"),
        lane(_PLAIN + "\n", ""),
        fix=(lane("max_batch_size: 0", f"max_batch_size: 64 {_PLAIN}", f"max_batch_size: 64 and {_PLAIN}"),),
        shows=Refusal("lane", "both must be 0"),
    ),
    sample(
        "PR203",
        "type",
        lane("TYPE_FP32 dims: [ 4 ]", "TYPE_INT8 dims: [ 4 ]"),
        fix=(lane("data_type: TYPE_INT8", "data_type: TYPE_FP32"),),
        shows=Failure("X"),
    ),
    sample(
        "PR203",
        "dims",
        lane("dims: [ 4 ]", "dims: [ 5 ]"),
        shows=Failure("X"),
    ),
    sample(
        "PR203",
        "unknown",
        lane(f"{_CLASS}", f'{_CLASS}, {{ name: "Z" data_type: TYPE_FP32 dims: [ 1 ] optional: true }}'),
        fix=(
            lane(
                ', { name: "Z" data_type: TYPE_FP32 dims: [ 1 ] optional: true }',
                "",
                '{ name: "Z" data_type: TYPE_FP32 dims: [ 1 ] optional: true }',
            ),
        ),
        shows=Failure("Z", tensors=("Z",)),
    ),
    sample(
        "PR203",
        "missing",
        scorer(_X, f'{_X}, {{ name: "W" data_type: TYPE_INT32 dims: [ 3 ] }}'),
        fix=(
            lane(
                _CLASS,
                f'{_CLASS}, {{ name: "W" data_type: TYPE_INT32 dims: [ 3 ] }}',
                '{ name: "W" data_type: TYPE_INT32 dims: [ 3 ] }',
            ),
        ),
        shows=Failure("expected 2 inputs"),
    ),
    sample(
        "PR203",
        "optional",
        scorer(_X, f'{_X}, {{ name: "W" data_type: TYPE_INT32 dims: [ 3 ] }}'),
        lane(_CLASS, f'{_CLASS}, {{ name: "W" data_type: TYPE_INT32 dims: [ 3 ] optional: true }}'),
        fix=(lane("[ 3 ] optional: true", "[ 3 ]", "remove optional: true for 'W'"),),
        shows=Failure("expected 2 inputs"),
    ),
    sample(
        "PR216",
        "type",
        lane("TYPE_FP32 dims: [ 2 ]", "TYPE_INT32 dims: [ 2 ]"),
        fix=(lane("data_type: TYPE_INT32", "data_type: TYPE_FP32"),),
    ),
    sample("PR216", "dims", lane("dims: [ 2 ]", "dims: [ 3 ]")),
    sample("PR204", "name", lane('"Y"', '"Y0"'), fix=(lane('name: "Y0"', 'name: "Y"'),), shows=Failure("Y0")),
    sample(
        "PR205", "CLASS", lane(_CLASS, _CLASS.replace("STRING", "INT32")), shows=Refusal("lane", "CLASS is TYPE_INT32")
    ),
    sample(
        "PR205",
        "time",
        lane(_QUEUE, _QUEUE.replace("INT64", "INT32")),
        shows=Refusal("lane", "ROUTER_QUEUE_US is TYPE_INT32"),
    ),
    sample("PR206", "sequences", lane(_PLAIN, "sequence_batching { }"), shows=Refusal("lane", "has sequence_batching")),
    sample(
        "PR206",
        "order",
        lane(_PLAIN, "dynamic_batching { preserve_ordering: true }"),
        fix=(lane(" preserve_ordering: true", ""),),
        shows=Refusal("lane", "has preserve_ordering"),
    ),
    with_line(
        "PR206",
        "decoupled",
        line="model_transaction_policy { decoupled: true }",
        path=LANE_CONFIG,
        said="remove model_transaction_policy",
        shows=Refusal("lane", "is decoupled"),
    ),
    sample(
        "PR207",
        "",
        lane(_PLAIN, "dynamic_batching { priority_levels: 2 default_priority_level: 2 }"),
        shows=Refusal("lane", "has priority_levels"),
    ),
    sample("PR208", "", lane(_PLAIN, "dynamic_batching { default_queue_policy { max_queue_size: 100 } }")),
    sample("PR209", "", lane(_PLAIN, "dynamic_batching { max_queue_delay_microseconds: 100 }")),
    sample("PR210", "", lane(_PLAIN + "\n", ""), fix=(Edit(LANE_CONFIG, "", _PLAIN),)),
    sample(
        "PR211",
        "",
        lane("count: 1", 'count: 1 rate_limiter { resources [ { name: "R" count: 1 } ] }'),
        fix=(lane(' rate_limiter { resources [ { name: "R" count: 1 } ] }', "", "remove rate_limiter"),),
    ),
    with_line(
        "PR212",
        "",
        line=_WARMUP,
        path=LANE_CONFIG,
        said="remove model_warmup",
    ),
    sample("PR213", "no group", lane(_ONE_CPU + "\n", ""), fix=(Edit(LANE_CONFIG, "", _ONE_CPU),)),
    sample(
        "PR213",
        "no kind",
        lane("{ kind: KIND_CPU count: 1 }", "{ count: 1 }"),
        fix=(lane("instance_group [ { count: 1 } ]", _ONE_CPU),),
    ),
    sample("PR214", "missing", lane(f",\n  {_CLASS}", ""), fix=(lane(_X, f"{_X}, {_CLASS}", _CLASS),)),
    sample(
        "PR214",
        "required",
        lane("[ 1 ] optional: true", "[ 1 ]"),
        fix=(lane("TYPE_STRING dims: [ 1 ]", "TYPE_STRING dims: [ 1 ] optional: true", "optional: true for CLASS"),),
    ),
    sample(
        "PR215",
        "",
        lane("TYPE_FP32 dims: [ 4 ]", "TYPE_BF16 dims: [ 4 ]"),
        scorer("TYPE_FP32 dims: [ 4 ]", "TYPE_BF16 dims: [ 4 ]"),
        fix=(
            lane("data_type: TYPE_BF16", "data_type: TYPE_FP32", "data_type: TYPE_FP32 for it in lane/config.pbtxt"),
            scorer("data_type: TYPE_BF16", "data_type: TYPE_FP32", "and in the configuration of scorer"),
        ),
        shows=Refusal("lane", "is BF16"),
    ),
    sample(
        "PR217",
        "",
        Edit(LANE_CONFIG, "", "version_policy { all { } }"),
        files={**CLEAN, "lane/2/policy.toml": CLEAN[LANE_POLICY]},
        fix=(lane("version_policy { all { } }", "version_policy { latest { num_versions: 1 } }"),),
    ),
)
