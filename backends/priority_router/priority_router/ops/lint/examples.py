# SPDX-License-Identifier: Apache-2.0
"""For each rule a few lines that it finds fault with, and the same lines mended. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

EXECUTOR: Final = "executor/config.pbtxt"
ROUTER: Final = "router/config.pbtxt"
OTHER: Final = "other/config.pbtxt"
PIPELINE: Final = "pipeline/config.pbtxt"
POLICY: Final = "router/1/policy.toml"
FOLDERS: Final = "the model repository"
COMMAND: Final = "the command line"


@dataclass(frozen=True, slots=True)
class Example:
    """One example.

    Attributes:
        file: where the lines stand: one of the names above, or that of a file.
        wrong: with the fault.
        right: without it; empty where the lines are best left out.
    """

    file: str
    wrong: str
    right: str = ""


_LEVELS: Final = """dynamic_batching {
  priority_levels: 2
  default_priority_level: 2
  priority_queue_policy [ { key: 1 value { } }, { key: 2 value { } } ]
}"""
_NO_POLICIES: Final = "dynamic_batching { priority_levels: 2 default_priority_level: 2 }"
_PLAIN: Final = "dynamic_batching { }"
_DEFAULT_POLICY: Final = "dynamic_batching { default_queue_policy { %s } }"
_ROUTER_INPUTS: Final = """input [
  { name: "X" data_type: %s dims: [ 4 ] },
  { name: "CLASS" data_type: %s dims: [ 1 ]%s }
]"""
_ROUTER_OUTPUTS: Final = """output [
  { name: "%s" data_type: %s dims: [ 4 ] },
  { name: "ROUTER_QUEUE_US" data_type: TYPE_INT64 dims: [ 1 ] },
  { name: "ROUTER_EXECUTOR_US" data_type: TYPE_INT64 dims: [ 1 ] }
]"""
_RIGHT_INPUTS: Final = _ROUTER_INPUTS % ("TYPE_FP32", "TYPE_STRING", " optional: true")
_RIGHT_OUTPUTS: Final = _ROUTER_OUTPUTS % ("Y", "TYPE_FP32")
_ONE_CPU: Final = "instance_group [ { kind: KIND_CPU count: 1 } ]"
_CLASS: Final = '[[class]]\nname = "online"\nlevel = 1\n%s'
_LIMITED: Final = "max_queue_size = 64"
_TWO_CLASSES: Final = """[[class]]
name = "online"
level = %d

[[class]]
name = "background"
level = %d"""
_SHAPE: Final = "[executor_shape]\ninstances = %d\nmax_batch_size = %d"
_BEHIND: Final = _TWO_CLASSES % (1, 2) + "\n%s"
_BEFORE: Final = _CLASS + '\n\n[[class]]\nname = "background"\nlevel = 2'
_PARAMETER: Final = 'parameters { key: "threads" value { string_value: "%s" } }'
_SERVE: Final = "priority-router serve --model-repository models -- --backend-config=python,thread-pool-size=%d"

_FILES: Final = {
    "PR001": Example(
        EXECUTOR, "instance_group [ { kind: KIND_CPU count: 1 ]", "instance_group [ { kind: KIND_CPU count: 1 } ]"
    ),
    "PR002": Example(EXECUTOR, "max_batchsize: 4", "max_batch_size: 4"),
    "PR003": Example(EXECUTOR, "max_batch_size: ${max_batch_size}", "max_batch_size: 4"),
    "PR004": Example(
        FOLDERS, "router/config.pbtxt\nrouter/policy.toml\nrouter/1/", "router/config.pbtxt\nrouter/1/policy.toml"
    ),
    "PR005": Example(POLICY, '[[class]]\nname = "online"\npriority = 1', '[[class]]\nname = "online"\nlevel = 1'),
    "PR006": Example(EXECUTOR, f"{_PARAMETER % 1}\n{_PARAMETER % 2}", _PARAMETER % 2),
    "PR007": Example(EXECUTOR, "max_batch_size: 010", "max_batch_size: 10"),
    "PR008": Example(EXECUTOR, 'name: "classifier"', 'name: "executor"'),
    "PR009": Example(
        FOLDERS, "executor/config.pbtxt\nexecutor/model.onnx", "executor/config.pbtxt\nexecutor/1/model.onnx"
    ),
    "PR010": Example(
        POLICY, _CLASS % "default_timeout_microseconds = 50", _CLASS % "default_timeout_microseconds = 50_000"
    ),
    "PR011": Example(POLICY, _TWO_CLASSES % (2, 1), _TWO_CLASSES % (1, 2)),
    "PR012": Example(
        FOLDERS, "models/executor/config.pbtxt\nmore/executor/config.pbtxt", "models/executor/config.pbtxt"
    ),
    "PR013": Example(FOLDERS, "executor -> /mnt/models/executor   (not mounted)"),
    "PR014": Example(EXECUTOR, 'platform: "onnxruntime"', 'backend: "onnxruntime"'),
    "PR015": Example(ROUTER, 'backend: "priority-router"', 'backend: "priority_router"'),
    "PR016": Example(EXECUTOR, 'backend: "pyton"', 'backend: "python"'),
    "PR017": Example(
        FOLDERS, "executor/1/weights.bin", "executor/config.pbtxt   (with backend)\nexecutor/1/weights.bin"
    ),
    "PR018": Example(EXECUTOR, _PARAMETER % "${threads}", _PARAMETER % 2),
    "PR019": Example(EXECUTOR, "max_batch_size: -1", "max_batch_size: 4"),
}

_STEP: Final = """platform: "ensemble"
ensemble_scheduling { step [ {
  model_name: "%s" model_version: -1
  input_map { key: "%s" value: "X" } output_map { key: "Y" value: "Y" }
} ] }"""

_OF_EXECUTORS: Final = {
    "PR101": Example(EXECUTOR, _PLAIN, _LEVELS),
    "PR102": Example(
        EXECUTOR,
        "dynamic_batching {\n  priority_levels: 1\n  default_priority_level: 1\n"
        "  priority_queue_policy { key: 1 value { } }\n}",
        _LEVELS,
    ),
    "PR103": Example(EXECUTOR, _LEVELS.replace("default_priority_level: 2", "default_priority_level: 0"), _LEVELS),
    "PR104": Example(EXECUTOR, _LEVELS.replace("key: 1 ", "key: 0 value { } }, { key: 1 "), _LEVELS),
    "PR105": Example(EXECUTOR, _NO_POLICIES, _LEVELS),
    "PR106": Example(
        EXECUTOR, _LEVELS.replace("priority_levels", "preserve_ordering: true\n  priority_levels", 1), _LEVELS
    ),
    "PR107": Example(EXECUTOR, "dynamic_batching { preserve_ordering: true }", _PLAIN),
    "PR108": Example(EXECUTOR, "dynamic_batching { max_queue_delay_microseconds: 500 }", _PLAIN),
    "PR109": Example(EXECUTOR, _LEVELS.replace("value { }", "value { max_queue_size: 16 }"), _LEVELS),
    "PR110": Example(
        EXECUTOR,
        _DEFAULT_POLICY % "allow_timeout_override: true",
        _DEFAULT_POLICY % "allow_timeout_override: true default_timeout_microseconds: 1000000",
    ),
    "PR111": Example(
        POLICY,
        _CLASS % 'default_timeout_microseconds = 50_000\ntimeout_action = "DELAY"',
        _CLASS % 'default_timeout_microseconds = 50_000\ntimeout_action = "REJECT"',
    ),
    "PR112": Example(
        EXECUTOR,
        f"max_batch_size: 4\n{_DEFAULT_POLICY % 'max_queue_size: 2'}",
        f"max_batch_size: 4\n{_DEFAULT_POLICY % 'max_queue_size: 64'}",
    ),
    "PR113": Example(
        EXECUTOR,
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]',
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]',
    ),
    "PR114": Example(EXECUTOR, "max_batch_size: 4\ndynamic_batching { preferred_batch_size: [ 8 ] }", _PLAIN),
    "PR115": Example(EXECUTOR, "sequence_batching { }", _LEVELS),
    "PR116": Example(EXECUTOR, "response_cache { enable: true }"),
    "PR117": Example("executor/1/model.onnx", "input X: float32 [1, 4]", "input X: float32 [N, 4]"),
    "PR118": Example(EXECUTOR, "# no instance_group", _ONE_CPU),
    "PR119": Example(POLICY, 'executor = "pipeline"', 'executor = "executor"'),
    "PR120": Example(
        "executor/config.pbtxt, beside a model.onnx with the input X",
        'input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 4 ] } ]',
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]',
    ),
    "PR121": Example(
        OTHER,
        _DEFAULT_POLICY % "allow_timeout_override: true",
        _DEFAULT_POLICY % "allow_timeout_override: true default_timeout_microseconds: 1000000",
    ),
    "PR122": Example(PIPELINE, _STEP % ("othr", "X"), _STEP % ("other", "X")),
    "PR123": Example(PIPELINE, _STEP % ("other", "IMAGE"), _STEP % ("other", "X")),
    "PR124": Example(
        EXECUTOR,
        "instance_group [ { kind: KIND_GPU count: 1 } ]",
        "instance_group [ { kind: KIND_GPU count: 1 gpus: [ 0 ] } ]",
    ),
}

_OF_ROUTERS: Final = {
    "PR201": Example(ROUTER, "instance_group [ { kind: KIND_CPU count: 2 } ]", _ONE_CPU),
    "PR202": Example(ROUTER, "max_batch_size: 2", "max_batch_size: 64"),
    "PR203": Example(ROUTER, _RIGHT_INPUTS.replace("[ 4 ]", "[ 8 ]"), _RIGHT_INPUTS),
    "PR204": Example(ROUTER, _ROUTER_OUTPUTS % ("SCORES", "TYPE_FP32"), _RIGHT_OUTPUTS),
    "PR205": Example(ROUTER, _ROUTER_INPUTS % ("TYPE_FP32", "TYPE_INT32", " optional: true"), _RIGHT_INPUTS),
    "PR206": Example(ROUTER, "sequence_batching { }", _PLAIN),
    "PR207": Example(ROUTER, _NO_POLICIES, _PLAIN),
    "PR208": Example(ROUTER, _DEFAULT_POLICY % "max_queue_size: 64", _PLAIN),
    "PR209": Example(ROUTER, "dynamic_batching { max_queue_delay_microseconds: 500 }", _PLAIN),
    "PR210": Example(ROUTER, "# no dynamic_batching", _PLAIN),
    "PR211": Example(
        ROUTER,
        'instance_group [ { kind: KIND_CPU count: 1 rate_limiter { resources { name: "R" count: 1 } } } ]',
        _ONE_CPU,
    ),
    "PR212": Example(ROUTER, 'model_warmup { name: "first" batch_size: 1 }'),
    "PR213": Example(ROUTER, "instance_group [ { count: 1 } ]", _ONE_CPU),
    "PR214": Example(ROUTER, _ROUTER_INPUTS % ("TYPE_FP32", "TYPE_STRING", ""), _RIGHT_INPUTS),
    "PR215": Example(ROUTER, _ROUTER_INPUTS % ("TYPE_BF16", "TYPE_STRING", " optional: true"), _RIGHT_INPUTS),
    "PR216": Example(ROUTER, _ROUTER_OUTPUTS % ("Y", "TYPE_FP64"), _RIGHT_OUTPUTS),
    "PR217": Example(ROUTER, "version_policy { all { } }", "version_policy { latest { num_versions: 1 } }"),
}

_TOGETHER: Final = {
    "PR301": Example(POLICY, 'executor = "exekutor"', 'executor = "executor"'),
    "PR302": Example(POLICY, 'executor = "router"', 'executor = "executor"'),
    "PR303": Example(POLICY, 'executor = "other"', 'executor = "other"\nshared_executor = true'),
    "PR304": Example(POLICY, 'mode = "plain"', 'mode = "levels"'),
    "PR305": Example(POLICY, _SHAPE % (1, 8), _SHAPE % (1, 4)),
    "PR306": Example(POLICY, _SHAPE % (2, 4), _SHAPE % (1, 4)),
    "PR307": Example(POLICY, _CLASS % "", _CLASS % _LIMITED),
    "PR308": Example(POLICY, _SHAPE % (1, 2), _SHAPE % (1, 4)),
    "PR401": Example(COMMAND, _SERVE % 8, _SERVE % 32),
}

_PROMISES: Final = {
    "PR501": Example(
        POLICY,
        _CLASS % 'order = "deadline"\nallow_timeout_override = false',
        _CLASS % 'order = "deadline"\nallow_timeout_override = true\ndefault_timeout_microseconds = 1_000_000',
    ),
    "PR502": Example(
        POLICY,
        _CLASS % 'order = "deadline"',
        _CLASS % 'order = "deadline"\ndefault_timeout_microseconds = 1_000_000',
    ),
    "PR503": Example(
        POLICY,
        _BEHIND % "default_timeout_microseconds = 500_000\nmax_wait_microseconds = 500_000",
        _BEHIND % "default_timeout_microseconds = 500_000\nmax_wait_microseconds = 200_000",
    ),
    "PR504": Example(POLICY, _BEFORE % "max_wait_microseconds = 200_000", _BEHIND % "max_wait_microseconds = 200_000"),
    "PR505": Example(
        POLICY, _BEHIND % "max_blocking_microseconds = 20_000", _BEFORE % "max_blocking_microseconds = 20_000"
    ),
    "PR506": Example(POLICY, _BEFORE % "min_share = 0.2", _BEHIND % "min_share = 0.2"),
    "PR507": Example(POLICY, _BEHIND % "min_share = 0.95", _BEHIND % "min_share = 0.2"),
    "PR508": Example(
        POLICY,
        _CLASS % "reject_predicted_late = true\nallow_timeout_override = false",
        _CLASS % "reject_predicted_late = true\ndefault_timeout_microseconds = 100_000",
    ),
    "PR509": Example(
        POLICY, _CLASS % 'fair_by = "tenant"\nmax_queue_size = 4', _CLASS % 'fair_by = "tenant"\nmax_queue_size = 256'
    ),
    "PR510": Example(
        POLICY,
        '[[tenant]]\nname = "acme"\nmost_urgent_class = "online"',
        '[[tenant]]\nname = "acme"\nmost_urgent_class = "background"',
    ),
    "PR511": Example(
        POLICY,
        "max_execution_microseconds = 50_000\n" + _CLASS % "default_timeout_microseconds = 20_000",
        "max_execution_microseconds = 50_000\n" + _CLASS % "default_timeout_microseconds = 100_000",
    ),
    "PR512": Example(
        "router/1/policy.toml, with --profile of an executor that takes 12 ms for one row",
        _BEFORE % "max_blocking_microseconds = 10_000",
        _BEFORE % "max_blocking_microseconds = 20_000",
    ),
    "PR513": Example(
        POLICY,
        "max_execution_microseconds = 40_000_000",
        "max_execution_microseconds = 40_000_000\nexecutor_timeout_microseconds = 90_000_000",
    ),
    "PR514": Example(POLICY, _CLASS % "max_queue_bytes = 64", _CLASS % "max_queue_bytes = 4_000_000"),
    "PR515": Example(
        POLICY,
        'tenant_sources = ["header:x-tenant"]',
        'tenant_sources = ["header:x-tenant"]\n[[tenant]]\nname = "*"\nmost_urgent_class = "background"',
    ),
    "PR516": Example(
        "router/1/policy.toml, with --profile of an executor that takes 60 ms for its largest batch",
        "max_execution_microseconds = 50_000",
        "max_execution_microseconds = 100_000",
    ),
    "PR517": Example(
        POLICY,
        "max_queue_bytes = 1_000_000\n" + _CLASS % "max_queue_bytes = 4_000_000",
        "max_queue_bytes = 4_000_000\n" + _CLASS % "max_queue_bytes = 1_000_000",
    ),
}

EXAMPLES: Final[Mapping[str, Example]] = MappingProxyType(
    {**_FILES, **_OF_EXECUTORS, **_OF_ROUTERS, **_TOGETHER, **_PROMISES}
)
"""By code, in the order of the codes."""
