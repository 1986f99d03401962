# SPDX-License-Identifier: Apache-2.0
"""Rules about router, executor and policy together (PR3xx), and about the server around them (PR4xx)."""

from __future__ import annotations

from typing import Final

from priority_router.ops.rules.finding import Rule, Severity

NO_EXECUTOR: Final = Rule(
    "PR301",
    Severity.ERROR,
    "Executor missing",
    "The router loads all the same, and answers every request with UNAVAILABLE.",
    "Correct executor, or executor_version, in policy.toml, or add the model.",
)
ROUTER_AS_EXECUTOR: Final = Rule(
    "PR302",
    Severity.ERROR,
    "A router as executor",
    "A router that calls itself does not load. One that calls another waits in two queues, of which the second orders"
    " calls of mixed classes.",
    "Name the model that does the work.",
)
SHARED: Final = Rule(
    "PR303",
    Severity.WARNING,
    "Executor shared without shared_executor = true",
    "The router holds its work back for an executor that others fill meanwhile: urgent requests wait behind theirs.",
    "Write shared_executor = true, in levels mode.",
)
LEVELS_IN_PLAIN_MODE: Final = Rule(
    "PR304",
    Severity.WARNING,
    "Levels in plain mode",
    "The router calls without a level, and without the dispatch hook Triton may wait up to 500 ms between batches.",
    'Write dynamic_batching { } for the executor, or mode = "levels" into policy.toml.',
)
BATCH_TOO_LARGE: Final = Rule(
    "PR305",
    Severity.ERROR,
    "executor_shape.max_batch_size above the executor's",
    "The router makes batches that the executor refuses.",
    "Write the executor's max_batch_size.",
)
INSTANCES_DIFFER: Final = Rule(
    "PR306",
    Severity.WARNING,
    "executor_shape.instances is not what the executor has",
    "With too many, what cannot run yet waits inside Triton; with too few, some instances stay idle.",
    "Write the number of instances over all GPUs: of each group count times its gpus.",
)
UNLIMITED: Final = Rule(
    "PR307",
    Severity.WARNING,
    "Class with an unlimited queue",
    "Nothing bounds how many requests wait, nor the memory that they take.",
    "Write a max_queue_size.",
)
BATCH_TOO_SMALL: Final = Rule(
    "PR308",
    Severity.WARNING,
    "executor_shape.max_batch_size below the executor's",
    "Batches stay smaller than they may be.",
    "Write the executor's max_batch_size.",
)

THREAD_POOL: Final = Rule(
    "PR401",
    Severity.ERROR,
    "Too few threads for a router",
    "Each call to the executor holds a thread of the Python backend's pool, and each answer needs one: urgent calls "
    "wait for a thread behind less urgent ones.",
    "Start the server with --backend-config=python,thread-pool-size=N, N being 4 for each instance of the executor "
    "and 12 more, at least 32.",
)
