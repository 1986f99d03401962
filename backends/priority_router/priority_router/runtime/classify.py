# SPDX-License-Identifier: Apache-2.0
"""Which class a request belongs to, by the policy's ``class_sources``.

Law: pure; a request's own tensor and parameters in, the name of a configured class out, or an InvalidRequest.

A header source is a header that Triton's front end forwards as a request parameter (``--http-header-forward-pattern``,
``--grpc-header-forward-pattern``). Triton appends forwarded headers to the parameters of the request body and marks
neither, so one that stands there alone cannot be told from the other. A name that stands there twice, in any spelling,
is therefore refused: where the gateway sets the header on every request, a client's own header or body parameter of
that name can then never be the one that counts. (Triton's generate endpoints forward nothing: docs/policy.md says what
a gateway must do about them.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from priority_router.config import RouterPolicy, SourceKind
from priority_router.errors import InvalidRequest
from priority_router.interface import CLASS_PARAMETER, CLASS_TENSOR
from priority_router.runtime.work import Array

_LONGEST_SHOWN = 64


class UnknownClass(InvalidRequest):
    """The request names a class that the policy does not have."""


class Classified(NamedTuple):
    """A request's class.

    Attributes:
        name: a class of the policy.
        was_unknown: the request named another one and is served as the default class.
    """

    name: str
    was_unknown: bool


class Classifier:
    """Applies one policy."""

    def __init__(self, policy: RouterPolicy) -> None:
        names = [traffic_class.name for traffic_class in policy.scheduling.classes]
        self._names = ", ".join(names)
        self._by_bytes = {name.encode(): Classified(name, was_unknown=False) for name in names}
        self._default = Classified(policy.default_class, was_unknown=False)
        self._instead_of_unknown = (
            Classified(policy.default_class, was_unknown=True) if policy.unknown_class_is_default else None
        )
        self._sources = policy.class_sources
        self._batched = policy.scheduling.max_batch_size > 0

    def classify(self, tensor: Array | None, parameters: str, rows: int) -> Classified:
        """The class of one request.

        Args:
            tensor: ``CLASS``: BYTES ``[rows, 1]``, or ``[1]`` without a batch axis; None where the request has none.
            parameters: the request's parameters, JSON text.
            rows: length of the batch axis; 1 where there is none.

        Raises:
            InvalidRequest: the class is unknown, given twice, of another type or shape, or not the same for all rows.
        """
        pairs: Sequence[tuple[str, object]] | None = None
        for source in self._sources:
            if source.kind is SourceKind.TENSOR:
                if tensor is not None:
                    return self._known(self._from_tensor(tensor, rows))
                continue
            if pairs is None:
                pairs = _pairs(parameters)
            if source.kind is SourceKind.PARAMETER:
                values = [value for key, value in pairs if key == CLASS_PARAMETER]
                found = _only(values, f"parameter {CLASS_PARAMETER!r}")
            else:
                values = [value for key, value in pairs if key.lower() == source.name]
                found = _only(values, f"header {source.name!r}")
            if found is not None:
                return self._known(found)
        return self._default

    def _from_tensor(self, tensor: Array, rows: int) -> bytes:
        shape = (rows, 1) if self._batched else (1,)
        if tensor.dtype != object or tensor.shape != shape:
            found = f"{tensor.dtype} {list(tensor.shape)}" if tensor.dtype != object else f"BYTES {list(tensor.shape)}"
            raise InvalidRequest(f"input {CLASS_TENSOR} must be BYTES {list(shape)}, found {found}")
        values: list[bytes] = tensor.reshape(-1).tolist()
        first = values[0]
        if rows > 1 and any(value != first for value in values):
            other = next(value for value in values if value != first)
            raise InvalidRequest(
                f"input {CLASS_TENSOR} names {_shown(first)} and {_shown(other)}: all rows of a request share one class"
            )
        return first

    def _known(self, name: bytes) -> Classified:
        found = self._by_bytes.get(name, self._instead_of_unknown)
        if found is None:
            raise UnknownClass(f"class {_shown(name)} is unknown; this router knows {self._names}")
        return found


def _pairs(parameters: str) -> Sequence[tuple[str, object]]:
    """The parameters in their order, repetitions kept."""
    if not parameters or parameters == "{}":
        return ()
    pairs: Sequence[tuple[str, object]] = json.loads(parameters, object_pairs_hook=tuple)
    return pairs


def _only(values: Sequence[object], what: str) -> bytes | None:
    if not values:
        return None
    if len(values) > 1:
        raise InvalidRequest(f"{what} is given {len(values)} times; it may be given once")
    if not isinstance(values[0], str):
        raise InvalidRequest(f"{what} must be a text, found {type(values[0]).__name__}")
    return values[0].encode("utf-8", "surrogatepass")


def _shown(name: bytes) -> str:
    """A client's text in an error: escaped, and cut to what a log line bears."""
    try:
        text = repr(name.decode())
    except UnicodeDecodeError:
        text = repr(name)[1:]
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...'"
