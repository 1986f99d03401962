# SPDX-License-Identifier: Apache-2.0
"""Everything that can go wrong, and how a request can end.

The tree::

    PriorityRouterError
    ├── PolicyError              policy.toml: file, key, what is wrong, what to write instead
    ├── SetupError               this server cannot run the router: what was found, what to do
    └── RequestError             one request ends without an answer; carries its Outcome and Triton code
        ├── InvalidRequest       INVALID_ARG   the caller's own mistake
        ├── QueueFull            UNAVAILABLE   as many wait as may
        ├── QueueTimeout         UNAVAILABLE   waited longer than its queue timeout
        ├── PredictedLate        UNAVAILABLE   would wait longer than its queue timeout
        ├── Cancelled            CANCELLED     the caller went away
        ├── Unavailable          UNAVAILABLE   draining, executor missing, executor not answering
        ├── InternalFault        INTERNAL      the router itself failed; counted as unavailable
        └── ExecutorFailed       as reported   the executor answered with an error

This module imports nothing of the package.
"""

from __future__ import annotations

import enum
from typing import ClassVar


class Outcome(enum.Enum):
    """How a request ended: a closed set, and the ``outcome`` label of ``priority_router_requests_total``."""

    SUCCESS = "success"
    QUEUE_FULL = "queue_full"
    TIMEOUT = "timeout"
    PREDICTED_LATE = "predicted_late"
    CANCELLED = "cancelled"
    INVALID = "invalid"
    UNAVAILABLE = "unavailable"
    EXECUTOR_ERROR = "executor_error"


class PriorityRouterError(Exception):
    """Base of every error this product raises."""


class PolicyError(PriorityRouterError):
    """``policy.toml`` cannot be used; the text names file, key, fault and remedy."""


class SetupError(PriorityRouterError):
    """This server or machine cannot run what was asked; the text says what was found and what to do."""


class RequestError(PriorityRouterError):
    """A request ended without an answer.

    Attributes:
        outcome: the metric label.
        code: name of the Triton error code the caller receives (``UNAVAILABLE``, ``INVALID_ARG``, ...).
    """

    outcome: ClassVar[Outcome]
    code: str


class InvalidRequest(RequestError):
    """The request itself is wrong."""

    outcome = Outcome.INVALID
    code = "INVALID_ARG"


class QueueFull(RequestError):
    """As many requests wait as ``max_queue_size`` of their class, or a ``max_queue_bytes``, allows."""

    outcome = Outcome.QUEUE_FULL
    code = "UNAVAILABLE"


class QueueTimeout(RequestError):
    """The request waited in the router longer than its queue timeout."""

    outcome = Outcome.TIMEOUT
    code = "UNAVAILABLE"


class PredictedLate(RequestError):
    """The request cannot start before its queue timeout passes, as far as can be predicted."""

    outcome = Outcome.PREDICTED_LATE
    code = "UNAVAILABLE"


class Cancelled(RequestError):
    """The caller cancelled before the request was sent to the executor."""

    outcome = Outcome.CANCELLED
    code = "CANCELLED"


class Unavailable(RequestError):
    """The router or its executor cannot serve now; a later try may succeed."""

    outcome = Outcome.UNAVAILABLE
    code = "UNAVAILABLE"


class InternalFault(RequestError):
    """The router itself failed.

    The one error whose text is not for the caller, who may be anybody: what failed, with its traceback, is in the
    server's log, and ``runtime.replies`` tells the caller to look there.
    """

    outcome = Outcome.UNAVAILABLE
    code = "INTERNAL"


class ExecutorFailed(RequestError):
    """The executor answered with an error, passed on with its text and, where Triton tells it, its code."""

    outcome = Outcome.EXECUTOR_ERROR

    def __init__(self, message: str, code: str = "INTERNAL") -> None:
        super().__init__(message)
        self.code = code
