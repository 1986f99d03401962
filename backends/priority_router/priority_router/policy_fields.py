# SPDX-License-Identifier: Apache-2.0
"""Every key of ``policy.toml``: kind, default with its reason, meaning, and the check on its single value.

Law: data only. What depends on several keys is checked in ``config``.
"""

from __future__ import annotations

from typing import Final

from priority_router.policy_checks import (
    MODEL_NAME,
    NAME_OF_CLASS,
    NAME_OF_TENANT,
    REQUIRED,
    SHARE,
    SLOWDOWN,
    VERSION_ONE,
    Field,
    between,
    one_of,
    sources,
)

LATEST_VERSION: Final = -1
"""Triton's own number for "the latest version that serves": an executor may be updated without touching the policy."""

DEFAULT_MODE: Final = "levels"
"""Also helps while others share the executor: online p99 192 ms instead of 19.3 s in the measured case."""

DEFAULT_UNKNOWN_CLASS: Final = "reject"
"""A misspelt class is told to its sender; silently served at the default it would be found by its latency alone."""

DEFAULT_TENANT_SOURCES: Final = ("parameter",)
"""The way that needs no server option; who must not trust its callers names a header of the gateway instead."""

DEFAULT_FAIR_BY: Final = "none"
"""One queue, as in Triton: whose requests are equal only the owner can say."""

DEFAULT_ABOVE: Final = "lower"
"""The request is served all the same, so that a rule that is added breaks no caller."""

DEFAULT_CLASS_SOURCES: Final = ("tensor", "parameter")
"""Both ways a client can name its class without any server option; the tensor first, since a joined batch has one."""

DEFAULT_EXECUTOR_TIMEOUT_MICROSECONDS: Final = 60_000_000
"""Longer than any execution worth prioritising, short enough that callers hear of a dead executor within a minute."""

DEFAULT_MAX_EXECUTION_MICROSECONDS: Final = 0
"""Not declared: only the owner can promise it, and nothing that is decided depends on it."""

DEFAULT_MAX_FILL_SLOWDOWN: Final = 0.1
"""Fills batches freely where a batch costs what a row costs; keeps urgent dispatches short where each row costs."""

DEFAULT_BATCH_EFFICIENCY: Final = 0.95
"""Costs 5 % of the background's rows/s at most; halved the urgent median on a linear model (26 to 13 ms, measured)."""

DEFAULT_OVERTAKING: Final = False
"""Measured as a rule it made the urgent p95 worse (110 instead of 104 ms), so it is left to those who need it."""

DEFAULT_SHARED_EXECUTOR: Final = False
"""Late binding alone orders the queue better as long as all work comes through the router."""

DEFAULT_MAX_QUEUE_SIZE: Final = 0
"""Unlimited, as in Triton: a limit is a promise about somebody's traffic, which only the owner can make."""

DEFAULT_TIMEOUT_MICROSECONDS: Final = 0
"""None, as in Triton."""

DEFAULT_ALLOW_TIMEOUT_OVERRIDE: Final = True
"""A caller's timeout can only shorten its own wait, so honouring it costs nobody else anything."""

DEFAULT_TIMEOUT_ACTION: Final = "REJECT"
"""Triton's default: an answer that comes too late is of no use to its caller."""

DEFAULT_ORDER: Final = "arrival"
"""Fair among requests whose deadlines nobody chose with the others in mind."""

DEFAULT_MAX_BLOCKING_MICROSECONDS: Final = 0
"""None: a bound costs the less urgent classes rows/s wherever a batch has a fixed cost."""

DEFAULT_MAX_WAIT_MICROSECONDS: Final = 0
"""Never: an old request that becomes urgent costs those who were promised to be served first."""

DEFAULT_MIN_SHARE: Final = 0.0
"""None: time that is promised to one class is taken from the more urgent ones."""

DEFAULT_MAX_QUEUE_BYTES: Final = 0
"""Unlimited, as the number of requests is."""

DEFAULT_REJECT_PREDICTED_LATE: Final = False
"""An answer that says no at once is worth more than one at the timeout only to callers who can go elsewhere."""

MAX_ROWS: Final = 8192
"""Learned times are kept per row count; past this they would cost more than they tell."""

MAX_LEVEL: Final = 2**32 - 1
"""Far above any real policy, and within what every client and front end can carry."""

MAX_QUEUE_SIZE: Final = 2**32 - 1
"""Triton's own for a queue."""

MAX_QUEUE_BYTES: Final = 2**60
"""More than any machine has."""

MAX_MICROSECONDS: Final = 10**15
"""31 years; in ns, and added to the time since the machine started, it stays within 64 bits with a sign."""

MAX_MODEL_VERSION: Final = 2**63 - 1
"""Triton's versions are 64 bits with a sign."""

TOP_LEVEL: Final = (
    Field("policy_version", "integer", REQUIRED, "Form of this file, at present 1.", VERSION_ONE),
    Field("mode", "text", DEFAULT_MODE, "How the executor is called.", one_of("levels", "plain")),
    Field("executor", "text", REQUIRED, "Name of the model that the router calls.", MODEL_NAME),
    Field(
        "executor_version",
        "integer",
        LATEST_VERSION,
        "Its version; left out: the latest.",
        between(1, MAX_MODEL_VERSION),
    ),
    Field("default_class", "text", None, "Class of requests that name none; left out: the least urgent."),
    Field(
        "unknown_class",
        "text",
        DEFAULT_UNKNOWN_CLASS,
        "What becomes of a request that names an unknown class.",
        one_of("reject", "default"),
    ),
    Field(
        "class_sources",
        "list of texts",
        DEFAULT_CLASS_SOURCES,
        "Where the class is looked for, in this order.",
        sources("tensor", "parameter"),
    ),
    Field(
        "tenant_sources",
        "list of texts",
        DEFAULT_TENANT_SOURCES,
        "Where a request's tenant is looked for, in this order, if fair_by or a [[tenant]] asks for it.",
        sources("parameter"),
    ),
    Field(
        "executor_timeout_microseconds",
        "integer",
        DEFAULT_EXECUTOR_TIMEOUT_MICROSECONDS,
        "Time after which a call without an answer is given up; at least twice the longest execution.",
        between(1000, MAX_MICROSECONDS),
    ),
    Field(
        "max_execution_microseconds",
        "integer",
        DEFAULT_MAX_EXECUTION_MICROSECONDS,
        "Declared: no dispatch takes longer than this; 0: not declared. For lint and worst cases, not for decisions.",
        between(0, MAX_MICROSECONDS),
    ),
    Field(
        "max_fill_slowdown",
        "number",
        DEFAULT_MAX_FILL_SLOWDOWN,
        "Share by which less urgent rows may lengthen a dispatch.",
        SLOWDOWN,
    ),
    Field(
        "batch_efficiency",
        "number",
        DEFAULT_BATCH_EFFICIENCY,
        "Share of the best rows/s at which a less urgent dispatch is large enough.",
        SHARE,
    ),
    Field("overtaking", "boolean", DEFAULT_OVERTAKING, "Urgent work may pass a dispatch that waits inside Triton."),
    Field("shared_executor", "boolean", DEFAULT_SHARED_EXECUTOR, "Others send work to the same executor."),
    Field(
        "max_queue_bytes",
        "integer",
        DEFAULT_MAX_QUEUE_BYTES,
        "Bytes of input that requests of all classes together may hold while they wait; 0: unlimited.",
        between(0, MAX_QUEUE_BYTES),
    ),
    Field("guard_executor", "boolean", None, "Clients may not call the executor; left out: not shared_executor."),
)

EXECUTOR_SHAPE: Final = (
    Field("instances", "integer", REQUIRED, "Instances of the executor over all devices.", between(1, 4096)),
    Field(
        "max_batch_size", "integer", REQUIRED, "The executor's own, in rows; 0: no batch axis.", between(0, MAX_ROWS)
    ),
)

CLASS: Final = (
    Field("name", "text", REQUIRED, "What clients send and metrics show.", NAME_OF_CLASS),
    Field("level", "integer", REQUIRED, "1 is the most urgent; classes may share a level.", between(1, MAX_LEVEL)),
    Field(
        "max_queue_size",
        "integer",
        DEFAULT_MAX_QUEUE_SIZE,
        "Requests that may wait; 0: unlimited.",
        between(0, MAX_QUEUE_SIZE),
    ),
    Field(
        "default_timeout_microseconds",
        "integer",
        DEFAULT_TIMEOUT_MICROSECONDS,
        "Longest time in the router's queue; 0: no limit.",
        between(0, MAX_MICROSECONDS),
    ),
    Field(
        "allow_timeout_override",
        "boolean",
        DEFAULT_ALLOW_TIMEOUT_OVERRIDE,
        "A caller's own timeout counts where it is the shorter one.",
    ),
    Field(
        "timeout_action",
        "text",
        DEFAULT_TIMEOUT_ACTION,
        "REJECT answers at the timeout, DELAY serves after the level's unexpired work.",
        one_of("REJECT", "DELAY"),
    ),
    Field(
        "order",
        "text",
        DEFAULT_ORDER,
        "Who of the class is served first: who arrived first, or whose queue timeout passes first.",
        one_of("arrival", "deadline"),
    ),
    Field(
        "max_blocking_microseconds",
        "integer",
        DEFAULT_MAX_BLOCKING_MICROSECONDS,
        "Longest time that a dispatch of a less urgent class is predicted to take; 0: no limit.",
        between(0, MAX_MICROSECONDS),
    ),
    Field(
        "max_wait_microseconds",
        "integer",
        DEFAULT_MAX_WAIT_MICROSECONDS,
        "Time in the queue after which a request is as urgent as the most urgent level; 0: never.",
        between(0, MAX_MICROSECONDS),
    ),
    Field(
        "min_share",
        "number",
        DEFAULT_MIN_SHARE,
        "Share of the executor's time that the class gets at least while it has work; all together at most 1.",
        between(0, 1),
    ),
    Field(
        "max_queue_bytes",
        "integer",
        DEFAULT_MAX_QUEUE_BYTES,
        "Bytes of input that requests of the class may hold while they wait; 0: unlimited.",
        between(0, MAX_QUEUE_BYTES),
    ),
    Field(
        "reject_predicted_late",
        "boolean",
        DEFAULT_REJECT_PREDICTED_LATE,
        "A request that is predicted to start after its queue timeout is refused at once.",
    ),
    Field(
        "fair_by",
        "text",
        DEFAULT_FAIR_BY,
        "tenant: tenants with work get equal parts of the class's executor time.",
        one_of("none", "tenant"),
    ),
)

TENANT: Final = (
    Field("name", "text", REQUIRED, 'The tenant, or "*": all that have no rule of their own.', NAME_OF_TENANT),
    Field("most_urgent_class", "text", REQUIRED, "Its requests may be of this level and less urgent ones."),
    Field(
        "above",
        "text",
        DEFAULT_ABOVE,
        "What becomes of a request that asks for more: served in that class, or refused.",
        one_of("lower", "reject"),
    ),
)

FIXED: Final = (
    "policy_version",
    "mode",
    "executor",
    "executor_version",
    "shared_executor",
    "guard_executor",
    "executor_shape.instances",
    "executor_shape.max_batch_size",
)
"""What a router takes in when it is loaded alone; all other keys hold as soon as the file has changed."""

HABITS: Final = {
    "priority": "level",
    "priority_level": "level",
    "priority_levels": "level",
    "timeout_microseconds": "default_timeout_microseconds",
    "default_priority_level": "default_class",
    "model_name": "executor",
    "model_version": "executor_version",
    "classes": "class",
    "tenants": "tenant",
}
"""Names people bring along from Triton's own configuration, and the ones they mean."""
