# SPDX-License-Identifier: Apache-2.0
"""One request of an ``execute`` call to a job: tensors copied out, class, rows, timeout and wanted outputs read.

Law: touches one request alone, so that a bad one cannot disturb its neighbours.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

from priority_router.config import Above, RouterPolicy
from priority_router.core.values import MICROSECOND, Request
from priority_router.errors import InvalidRequest
from priority_router.interface import CLASS_TENSOR, EXECUTOR_OUTPUT, QUEUE_OUTPUT, TIMING_OUTPUTS
from priority_router.runtime import codec
from priority_router.runtime.classify import Classifier, UnknownClass
from priority_router.runtime.tenants import TooUrgent
from priority_router.runtime.work import (
    Array,
    Job,
    Tensors,
    Wanted,
)

_MOST_WANTED: Final = 1024
"""Different sets of outputs that are remembered; clients choose them, so the memory is bounded."""


_ACTIONS: Final = {Above.LOWER: "lowered", Above.REJECT: "rejected"}


class Intake:
    """Reads requests under one policy; used by the ``execute`` thread alone.

    Attributes:
        unknown_classes: requests that named a class the policy does not have, refused or not.
        capped: requests that asked for more than their tenant may, by the name of its rule and what became of them.
    """

    def __init__(self, policy: RouterPolicy) -> None:
        self._batched = policy.scheduling.max_batch_size > 0
        self._classifier = Classifier(policy)
        self._ids = itertools.count(1)
        self._wanted: dict[frozenset[str], Wanted] = {}
        self.unknown_classes = 0
        self.capped = {(rule.name, _ACTIONS[rule.above]): 0 for rule in policy.tenants}

    def adopt(self, policy: RouterPolicy) -> None:
        """Reads by another policy from the next request on; may be called from any thread."""
        for rule in policy.tenants:
            self.capped.setdefault((rule.name, _ACTIONS[rule.above]), 0)
        self._classifier = Classifier(policy)

    def fill(self, job: Job, request: Any, parameters: str) -> Request:
        """Reads ``request`` into its job.

        Args:
            job: made for this request; on an error it holds what was read until then.
            request: Triton's; used only during this call.
            parameters: its own, as `parameters.text` reads them.

        Returns:
            What the core is to be given.

        Raises:
            InvalidRequest: the request cannot be served as it is.
        """
        class_tensor: Array | None = None
        tensors: list[tuple[str, Array]] = []
        for tensor in request.inputs():
            name, array = tensor.name(), tensor.as_numpy()
            if name == CLASS_TENSOR:
                class_tensor = array
            else:
                tensors.append((name, codec.private(array)))
        if len(tensors) > 1:
            tensors.sort(key=_name)
        rows = self._rows(tensors)
        try:
            classified = self._classifier.classify(class_tensor, parameters, rows)
        except UnknownClass:
            self.unknown_classes += 1
            raise
        except TooUrgent as error:
            self._count_capped(error.rule, Above.REJECT)
            raise
        self.unknown_classes += classified.was_unknown
        if classified.lowered_by:
            self._count_capped(classified.lowered_by, Above.LOWER)
        job.class_name = classified.name
        job.inputs = tensors
        job.wanted = self._outputs(request.requested_output_names())
        job.request = Request(
            next(self._ids),
            classified.name,
            rows,
            codec.signature(tensors, self._batched),
            request.timeout() * MICROSECOND,
            codec.size(tensors),
            classified.tenant,
        )
        return job.request

    def _count_capped(self, rule: str, above: Above) -> None:
        key = (rule, _ACTIONS[above])
        self.capped[key] = self.capped.get(key, 0) + 1

    def _rows(self, tensors: Tensors) -> int:
        if not tensors:
            raise InvalidRequest(f"the request has no input besides {CLASS_TENSOR}")
        if not self._batched:
            return 1
        first, array = tensors[0]
        for name, other in tensors:
            if other.ndim == 0:
                raise InvalidRequest(f"input {name!r} has no batch axis")
            if other.shape[0] != array.shape[0]:
                raise InvalidRequest(f"inputs {first!r} and {name!r} have different numbers of rows")
        rows = array.shape[0]
        if rows == 0:
            raise InvalidRequest("the request has no rows")
        return rows

    def _outputs(self, names: Any) -> Wanted:
        key = frozenset(names)
        wanted = self._wanted.get(key)
        if wanted is None:
            if len(self._wanted) >= _MOST_WANTED:
                self._wanted.clear()
            wanted = self._wanted[key] = Wanted(key - TIMING_OUTPUTS, QUEUE_OUTPUT in key, EXECUTOR_OUTPUT in key)
        return wanted


def _name(item: tuple[str, Array]) -> str:
    return item[0]
