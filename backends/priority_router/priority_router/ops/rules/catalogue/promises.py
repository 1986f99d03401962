# SPDX-License-Identifier: Apache-2.0
"""Rules about what a policy promises beyond levels (docs/policies.md), and about times: PR5xx."""

from __future__ import annotations

from typing import Final

from priority_router.ops.rules.finding import Rule, Severity

SAME_DEADLINES: Final = Rule(
    "PR501",
    Severity.WARNING,
    "Order by deadline with one timeout for all",
    "Where callers cannot shorten the class's timeout, deadlines have the order of arrival.",
    'Write allow_timeout_override = true, or order = "arrival".',
)
NO_DEADLINES: Final = Rule(
    "PR502",
    Severity.NOTE,
    "Order by deadline without a timeout of the class",
    "A request that brings no timeout comes after all that do, and while those keep coming it is never served.",
    "Write a default_timeout_microseconds.",
)
AGE_AFTER_TIMEOUT: Final = Rule(
    "PR503",
    Severity.WARNING,
    "max_wait_microseconds not below the timeout",
    "A request is answered at its timeout before it is old enough, so the age bound never acts.",
    "Write a max_wait_microseconds that is well below default_timeout_microseconds.",
)
AGE_OF_URGENT: Final = Rule(
    "PR504",
    Severity.WARNING,
    "max_wait_microseconds on the most urgent level",
    "What is served in order of arrival at the most urgent level is passed by nobody, so its age changes nothing.",
    "Write max_wait_microseconds for the less urgent classes that are to have it.",
)
BLOCKING_OF_LAST: Final = Rule(
    "PR505",
    Severity.WARNING,
    "max_blocking_microseconds on the least urgent level",
    "It bounds dispatches of less urgent classes, and there are none.",
    "Write max_blocking_microseconds for the class that is not to be kept waiting.",
)
SHARE_OF_URGENT: Final = Rule(
    "PR506",
    Severity.WARNING,
    "min_share of a class that nobody can pass",
    "The most urgent class is served first as it is, unless others have a share, an age bound or the same level.",
    "Write min_share for the less urgent classes that are to have it.",
)
LITTLE_LEFT: Final = Rule(
    "PR507",
    Severity.WARNING,
    "Shares that leave the most urgent level next to nothing",
    "While the others have work, the most urgent level gets only what their shares leave of the executor's time.",
    "Write shares that are together at most half, or levels that say what is urgent.",
)
NOTHING_IS_LATE: Final = Rule(
    "PR508",
    Severity.WARNING,
    "Early refusal where no request has a timeout",
    "What has no timeout is never late, so that nothing is refused.",
    "Write a default_timeout_microseconds, or allow_timeout_override = true for those of the callers.",
)
NO_ROOM_FOR_TENANTS: Final = Rule(
    "PR509",
    Severity.NOTE,
    "Queue too short for fair tenants",
    "Tenants share turns, not room: one that sends a few batches at once fills the queue, and others are refused.",
    "Write a larger max_queue_size, and limit tenants at the gateway.",
)
TENANT_WITHOUT_CAP: Final = Rule(
    "PR510",
    Severity.WARNING,
    "Tenant rule that caps nothing",
    "Its most_urgent_class is of the most urgent level, and no rule for the others makes it an exception.",
    "Name a less urgent class, or remove the rule.",
)
TIMEOUT_TOO_SHORT: Final = Rule(
    "PR511",
    Severity.WARNING,
    "Timeout shorter than one execution",
    "Whatever comes while the executor has just begun is answered at its timeout before it can start.",
    "Write a default_timeout_microseconds of at least two executions.",
)
BLOCKING_TOO_SHORT: Final = Rule(
    "PR512",
    Severity.WARNING,
    "max_blocking_microseconds shorter than one row takes",
    "No dispatch can keep to it: each is counted as over the budget, and urgent requests wait longer than promised.",
    "Write at least the time of one row; --profile FILE tells it.",
)
GIVEN_UP: Final = Rule(
    "PR513",
    Severity.WARNING,
    "executor_timeout_microseconds below the time in flight",
    "A dispatch may wait inside Triton for another one. Such a dispatch is given up, and its callers get UNAVAILABLE, "
    "while the executor still works on it.",
    "Write at least twice max_execution_microseconds.",
)
FEW_BYTES: Final = Rule(
    "PR514",
    Severity.WARNING,
    "max_queue_bytes below one request",
    "The largest request that the router accepts can never wait: it is refused unless the executor is free.",
    "Write at least the bytes of such a request, or a smaller max_batch_size for the router.",
)
UNREAD_SOURCES: Final = Rule(
    "PR515",
    Severity.WARNING,
    "tenant_sources that nothing reads",
    "Without fair_by and [[tenant]] it does not matter whose a request is, and nobody looks.",
    'Write fair_by = "tenant" for a class, or a [[tenant]] rule.',
)
DECLARED_TOO_SHORT: Final = Rule(
    "PR516",
    Severity.WARNING,
    "max_execution_microseconds below what was recorded",
    "The longest waits that `priority-router simulate --worst-case` computes from it do not hold.",
    "Write a time that no dispatch exceeds; --profile FILE tells what nine in ten keep to.",
)
BYTES_ABOVE_ALL: Final = Rule(
    "PR517",
    Severity.WARNING,
    "max_queue_bytes of a class above that of all together",
    "The class never has as much waiting, so that its own limit does nothing, and it can fill what the others need.",
    "Write less for the class than at the top of the file, or more there.",
)
