# SPDX-License-Identifier: Apache-2.0
"""What a request's parameters say, headers among them, by a policy's sources.

Law: pure; JSON text in, one text out, or an InvalidRequest. Only `text` touches a request, which pays for each reading.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from priority_router.config import ClassSource, SourceKind
from priority_router.errors import InvalidRequest

Pairs = Sequence[tuple[str, object]]
"""Parameters in their order, repetitions kept."""

_LONGEST_SHOWN: Final = 64


def text(request: Any) -> str:
    """All parameters of a request of Triton's, JSON text.

    Raises:
        InvalidRequest: they are no text.
    """
    try:
        found: str = request.parameters()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the request's parameters are not UTF-8: {error}") from None
    return found


def pairs(parameters: str) -> Pairs:
    """The parameters of a request, from the JSON text that Triton gives."""
    if not parameters or parameters == "{}":
        return ()
    found: Pairs = json.loads(parameters, object_pairs_hook=tuple)
    return found


def look_up(source: ClassSource, given: Pairs, parameter: str) -> tuple[str | None, str]:
    """What a source that is no tensor says; None where it is not there. And what to call it in an error.

    Raises:
        InvalidRequest: it is there twice, or is no text.
    """
    if source.kind is SourceKind.PARAMETER:
        values = [value for key, value in given if key == parameter]
        what = f"parameter {parameter!r}"
    else:
        values = [value for key, value in given if key.lower() == source.name]
        what = f"header {source.name!r}"
    if not values:
        return None, what
    if len(values) > 1:
        raise InvalidRequest(f"{what} is given {len(values)} times; it may be given once")
    if not isinstance(values[0], str):
        raise InvalidRequest(f"{what} must be a text, found {type(values[0]).__name__}")
    return values[0], what


def shown(name: bytes) -> str:
    """A client's text in an error: escaped, and cut to what a log line bears."""
    try:
        escaped = repr(name.decode())
    except UnicodeDecodeError:
        escaped = repr(name)[1:]
    return escaped if len(escaped) <= _LONGEST_SHOWN else escaped[:_LONGEST_SHOWN] + "...'"
