# SPDX-License-Identifier: Apache-2.0
"""Rules about a router: PR2xx."""

from __future__ import annotations

from typing import Final

from priority_router.interface import BATCHES_PER_REQUEST
from priority_router.ops.rules.finding import Rule, Severity

ROUTER_INSTANCES: Final = Rule(
    "PR201",
    Severity.ERROR,
    "Router that is not one CPU instance",
    "Each instance would have a queue of its own; the router does not load.",
    "Write instance_group [ { kind: KIND_CPU count: 1 } ].",
)
SMALL_ROUTER: Final = Rule(
    "PR202",
    Severity.ERROR,
    "Router that accepts less than its executor",
    "Requests that the executor would take fail; where one has a batch axis and the other has none, all do.",
    f"Write {BATCHES_PER_REQUEST} times the executor's max_batch_size; 0 where that is 0.",
)
INPUTS: Final = Rule(
    "PR203",
    Severity.ERROR,
    "Inputs of router and executor differ",
    "Requests fail in the executor, and those joined with them.",
    "Give the router the executor's inputs, and CLASS.",
)
OUTPUTS: Final = Rule(
    "PR204",
    Severity.ERROR,
    "Output that the executor does not have",
    "Requests for it, and those that name no outputs, fail.",
    "Give the router outputs of the executor only, and the two times.",
)
OWN_TENSORS: Final = Rule(
    "PR205",
    Severity.ERROR,
    "CLASS or a timing output declared wrongly",
    "The router does not load.",
    "Declare CLASS as TYPE_STRING, ROUTER_QUEUE_US and ROUTER_EXECUTOR_US as TYPE_INT64, each with dims: [ 1 ].",
)
UNUSABLE_ROUTER: Final = Rule(
    "PR206",
    Severity.ERROR,
    "Setting that a router refuses",
    "With sequence_batching, preserve_ordering or a decoupled transaction policy the router does not load.",
    "Write dynamic_batching { } and no model_transaction_policy.",
)
ROUTER_LEVELS: Final = Rule(
    "PR207",
    Severity.ERROR,
    "priority_levels on the router",
    "Clients would order the queue in front of the router by a priority of their own; the router does not load.",
    "Write dynamic_batching { }: the order is that of the classes in policy.toml.",
)
ROUTER_LIMITS: Final = Rule(
    "PR208",
    Severity.WARNING,
    "Queue limit or timeout in front of the router",
    "Triton turns requests away before the router sees their class, and without the dispatch hook waits up to 500 ms.",
    "Write dynamic_batching { } and put limits and timeouts into [[class]] of policy.toml.",
)
ROUTER_DELAY: Final = Rule(
    "PR209",
    Severity.WARNING,
    "Queue delay in front of the router",
    "Every request may wait that long before the router gets it, which neither its timeouts nor its metrics cover.",
    "Write dynamic_batching { }: the router fills batches itself.",
)
NO_ROUTER_BATCHING: Final = Rule(
    "PR210",
    Severity.WARNING,
    "Router without dynamic_batching",
    "Triton hands requests over one at a time, each in a call of its own, which costs throughput.",
    "Write dynamic_batching { }.",
)
RATE_LIMITER: Final = Rule(
    "PR211",
    Severity.WARNING,
    "Rate limiter on the router",
    "The router itself computes nothing. With --rate-limit it would wait for resources that its executor holds.",
    "Remove rate_limiter.",
)
ROUTER_WARMUP: Final = Rule(
    "PR212",
    Severity.WARNING,
    "model_warmup on the router",
    "Triton runs it as a request: the router then loads only while its executor serves.",
    "Move model_warmup to the executor.",
)
ROUTER_KIND: Final = Rule(
    "PR213",
    Severity.WARNING,
    "Router whose instance is left to Triton",
    "On a machine with GPUs Triton starts one instance for each of them, and the router does not load.",
    "Write instance_group [ { kind: KIND_CPU count: 1 } ].",
)
CLASS_INPUT: Final = Rule(
    "PR214",
    Severity.WARNING,
    "CLASS missing or not optional",
    "Without the input a request that names its class in it is refused; where it is not optional, every one that does"
    " not.",
    "Declare CLASS with optional: true.",
)
BF16: Final = Rule(
    "PR215",
    Severity.ERROR,
    "BF16 tensor on a router",
    "Python has no such numbers; the router does not load.",
    "Let the executor take and give TYPE_FP32 or TYPE_FP16.",
)
DIFFERENT_OUTPUT: Final = Rule(
    "PR216",
    Severity.WARNING,
    "Output declared otherwise than the executor's",
    "Answers come as the executor makes them, whatever the router declares: clients that go by the declaration misread "
    "them.",
    "Write the executor's data_type and dims.",
)
SEVERAL_VERSIONS: Final = Rule(
    "PR217",
    Severity.WARNING,
    "Several versions of a router at once",
    "Each is a router of its own, with a queue of its own, in front of the same executor.",
    "Let only the latest serve.",
)
