# SPDX-License-Identifier: Apache-2.0
"""The one place that reads error texts: what the executor's errors mean to the caller.

Law: pure; text and code in, a RequestError out.

Python backends up to and including 24.10 lose the code of a failed BLS call: everything arrives as INTERNAL. The texts
of Triton's own refusals are therefore matched here and given the code that a direct call would have got. Later releases
carry the code, which is then kept.
"""

from __future__ import annotations

import re
from typing import Any, Final

from priority_router.errors import ExecutorFailed, RequestError, Unavailable

_REFUSALS: Final = ("Exceeds maximum queue size", "Request timeout expired")
"""UNAVAILABLE when called directly: the executor's own queue limits, where its owner kept any."""

_NOT_SERVING: Final = (
    "is not ready",
    "is not at ready state",
    "has no available versions",
    "Request for unknown model",
    "Server not ready",
    "Server exiting",
    "Server is stopping",
)
"""The executor is missing, loading or unloaded, or the server is stopping."""

_DEAD_PROCESS: Final = re.compile(r"Stub process( '.*')? is not healthy\.")
"""What the python backend answers for a model whose process has died or stands still."""

_BAD_SHAPE: Final = "unexpected shape for input '"
"""INVALID_ARG when called directly: a router's config.pbtxt lets through what the executor's does not."""

_TOO_MANY_ROWS: Final = re.compile(r"inference request batch-size must be <= (\d+) for '")

_LOST_CODES: Final = frozenset(("INTERNAL", "UNKNOWN"))

CODE_NAMES: Final = (
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
)
"""Triton's error codes; a release may lack the last."""


def executor_error(text: str, code: str, executor: str) -> RequestError:
    """What a failed call of the executor means to the callers whose rows it held.

    Args:
        text: as Triton gave it.
        code: name of the code that came with it.
        executor: the model that was called.
    """
    # Triton sets this before errors from handing the request over; the model's own errors come without.
    refused_by_triton = text.startswith(f"Model {executor} - ")
    if refused_by_triton and any(fragment in text for fragment in _NOT_SERVING):
        return Unavailable(f"executor {executor!r} is not serving: {text}")
    if _DEAD_PROCESS.fullmatch(text):
        return Unavailable(f"executor {executor!r} does not answer: {text}")
    if code in _LOST_CODES and any(fragment in text for fragment in _REFUSALS):
        return ExecutorFailed(text, "UNAVAILABLE")
    if code in _LOST_CODES and refused_by_triton and _BAD_SHAPE in text:
        return ExecutorFailed(text, "INVALID_ARG")
    return ExecutorFailed(text, code)


def largest_batch(text: str) -> int | None:
    """The executor's max_batch_size where it refused a dispatch for having more rows; None for any other error."""
    found = _TOO_MANY_ROWS.search(text)
    return int(found[1]) if found is not None else None


class ErrorCodes:
    """Triton's code constants by name, in the form this server's ``pb_utils`` has them."""

    def __init__(self, triton_error: Any) -> None:
        self._by_name = {name: getattr(triton_error, name) for name in CODE_NAMES if hasattr(triton_error, name)}
        self._names = {code: name for name, code in self._by_name.items()}

    def constant(self, name: str) -> Any:
        """The constant for a code name; INTERNAL for one that this release does not know."""
        return self._by_name.get(name, self._by_name["INTERNAL"])

    def name(self, constant: Any) -> str:
        """The name of a constant; ``UNKNOWN`` for one that is not known here."""
        return self._names.get(constant, "UNKNOWN")
