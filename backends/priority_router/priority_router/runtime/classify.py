# SPDX-License-Identifier: Apache-2.0
"""Which class a request belongs to, by the policy's ``class_sources``, and whose it is.

Law: pure; a request's own tensor and parameters in, the name of a configured class and its tenant out, or an
InvalidRequest.

A header source is a header that Triton's front end forwards as a request parameter (``--http-header-forward-pattern``,
``--grpc-header-forward-pattern``). Triton appends forwarded headers to the parameters of the request body and marks
neither, so one that stands there alone cannot be told from the other. A name that stands there twice, in any spelling,
is therefore refused: where the gateway sets the header on every request, a client's own header or body parameter of
that name can then never be the one that counts. (Triton's generate endpoints forward nothing: docs/policy.md says what
a gateway must do about them.)
"""

from __future__ import annotations

from typing import NamedTuple

from priority_router.config import RouterPolicy, SourceKind
from priority_router.errors import InvalidRequest
from priority_router.interface import CLASS_PARAMETER, CLASS_TENSOR
from priority_router.runtime.parameters import Pairs, look_up, pairs, shown
from priority_router.runtime.tenants import Tenants
from priority_router.runtime.work import Array


class UnknownClass(InvalidRequest):
    """The request names a class that the policy does not have."""


class Classified(NamedTuple):
    """A request's class.

    Attributes:
        name: a class of the policy.
        was_unknown: the request named another one and is served as the default class.
        tenant: whose it is; empty where it is not said or does not matter.
        lowered_by: name of the tenant rule that gave it this class in place of a more urgent one; empty = none.
    """

    name: str
    was_unknown: bool
    tenant: str = ""
    lowered_by: str = ""


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
        self._tenants = Tenants(policy) if policy.reads_tenants else None
        self._batched = policy.scheduling.max_batch_size > 0

    def classify(self, tensor: Array | None, parameters: str, rows: int) -> Classified:
        """The class of one request.

        Args:
            tensor: ``CLASS``: BYTES ``[rows, 1]``, or ``[1]`` without a batch axis; None where the request has none.
            parameters: the request's parameters, JSON text.
            rows: length of the batch axis; 1 where there is none.

        Raises:
            InvalidRequest: the class is unknown, given twice, of another type or shape, or not the same for all rows;
                or the same of the tenant, or it may not have this class.
        """
        if self._tenants is None:
            return self._class(tensor, parameters, None, rows)
        given = pairs(parameters)
        asked = self._class(tensor, parameters, given, rows)
        tenant = self._tenants.tenant(given)
        rule = self._tenants.lowered(tenant, asked.name)
        if rule is None:
            return asked._replace(tenant=tenant) if tenant else asked
        return Classified(rule.most_urgent_class, asked.was_unknown, tenant, rule.name)

    def _class(self, tensor: Array | None, parameters: str, given: Pairs | None, rows: int) -> Classified:
        for source in self._sources:
            if source.kind is SourceKind.TENSOR:
                if tensor is not None:
                    return self._known(self._from_tensor(tensor, rows))
                continue
            if given is None:
                given = pairs(parameters)
            found, _ = look_up(source, given, CLASS_PARAMETER)
            if found is not None:
                return self._known(found.encode("utf-8", "surrogatepass"))
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
                f"input {CLASS_TENSOR} names {shown(first)} and {shown(other)}: all rows of a request share one class"
            )
        return first

    def _known(self, name: bytes) -> Classified:
        found = self._by_bytes.get(name, self._instead_of_unknown)
        if found is None:
            raise UnknownClass(f"class {shown(name)} is unknown; this router knows {self._names}")
        return found
