# SPDX-License-Identifier: Apache-2.0
"""Rules about single values of any model's configuration that Triton refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from priority_router.interface import BACKEND
from priority_router.ops.rules import backends
from priority_router.ops.rules.catalogue.files import REFUSED_VALUE
from priority_router.ops.rules.configs import at, backend, config_file, is_ensemble, listed, number, tensors
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model

_ADD_NO_TYPES: Final = (BACKEND, backends.PYTHON_BACKEND)
"""Backends that leave a tensor without data_type as it is."""


def check(model: Model) -> Iterator[Finding]:
    """All such values."""
    file = config_file(model)
    if (size := number(model.config, "max_batch_size")) < 0:
        yield Finding(
            REFUSED_VALUE,
            at(model, "max_batch_size"),
            f"{file} has max_batch_size: {size}: Triton refuses to load it",
            f"write max_batch_size: 0 in {file} for a model without a batch axis, or its largest batch",
        )
    for index, group in enumerate(model.config.get("instance_group") or ()):
        gpus = [int(gpu) for gpu in group.get("gpus") or ()]
        if group.get("kind") == "KIND_CPU" and gpus:
            yield Finding(
                REFUSED_VALUE,
                at(model, "instance_group", index, "gpus"),
                f"{file} has gpus: {listed(gpus)} beside kind: KIND_CPU: Triton refuses to load it",
                f"remove gpus: {listed(gpus)} from that instance_group of {file}, or write kind: KIND_GPU",
            )
    for kind in ("input", "output"):
        yield from _tensors(model, kind)


def _tensors(model: Model, kind: str) -> Iterator[Finding]:
    file = config_file(model)
    for tensor in tensors(model, kind).values():
        where = f"{kind} {tensor.name!r}"
        if tensor.refused_lengths:
            dims = listed(-1 if length in tensor.refused_lengths else length for length in tensor.dims)
            yield Finding(
                REFUSED_VALUE,
                at(model, kind, tensor.index, "dims"),
                f"{where} of {file} has dims: {listed(tensor.dims)}, and a length is at least 1, or -1 for any: Triton "
                "refuses to load it",
                f"write its lengths in {file}, such as dims: {dims}",
            )
        if tensor.untyped and (is_ensemble(model) or backend(model) in _ADD_NO_TYPES):
            yield Finding(
                REFUSED_VALUE,
                at(model, kind, tensor.index, "data_type"),
                f"{where} of {file} has no data_type: Triton refuses to load it",
                f"write its data_type in {file}, such as data_type: TYPE_FP32",
            )
