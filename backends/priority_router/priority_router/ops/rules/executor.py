# SPDX-License-Identifier: Apache-2.0
"""Rules about a model that a router calls, and about ONNX files."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from priority_router.config import RouterPolicy
from priority_router.ops.rules import instances, levels, queues
from priority_router.ops.rules.backends import ONNX_BACKEND
from priority_router.ops.rules.catalogue import executor as rules
from priority_router.ops.rules.configs import (
    at,
    backend,
    batching,
    config_file,
    joined,
    listed,
    number,
    policy_file,
    section,
    tensors,
)
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model
from priority_router.ops.rules.tensors import variable_dims


def check(executor: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """All rules about an executor that do not compare it with its router.

    Args:
        executor: the model, no ensemble.
        policy: of a router that calls it.
    """
    file = config_file(executor)
    yield from queues.delay(executor)
    yield from levels.without_policy(executor, policy)
    yield from instances.open_count(executor, policy)
    yield from instances.every_gpu(executor)
    yield from variable_dims(executor)
    if batching(executor).get("preserve_ordering") and not queues.order_conflicts(executor):
        yield Finding(
            rules.KEPT_ORDER,
            at(executor, "dynamic_batching", "preserve_ordering"),
            f"{file} has preserve_ordering: true: an answer waits for all that were asked for before it",
            f"remove preserve_ordering: true from {file}",
        )
    yield from cache(executor)
    if section(executor.config, "model_transaction_policy").get("decoupled"):
        yield Finding(
            rules.UNUSABLE_EXECUTOR,
            at(executor, "model_transaction_policy", "decoupled"),
            f"{file} is decoupled, and the router needs one answer for each call: all requests fail",
            f"remove model_transaction_policy from {file}, and let the model answer once",
        )


def cache(model: Model) -> Iterator[Finding]:
    """The response cache, of a router or of an executor."""
    if section(model.config, "response_cache").get("enable"):
        passed_by = "requests pass the router by" if model.is_router else "the router learns wrong times from it"
        yield Finding(
            rules.RESPONSE_CACHE,
            at(model, "response_cache"),
            f"{config_file(model)} has response_cache {{ enable: true }}: {passed_by}",
            f"remove response_cache from {config_file(model)}",
        )


def fixed_batch_axis(model: Model, routers: Sequence[Model]) -> Iterator[Finding]:
    """An ONNX model whose first dimension has one length.

    Args:
        model: any.
        routers: those that call it.
    """
    size = number(model.config, "max_batch_size")
    if model.onnx is None or backend(model) not in ("", ONNX_BACKEND) or not size:
        return
    shapes = {**model.onnx.inputs, **model.onnx.outputs}
    fixed = {name: shape for name, shape in shapes.items() if not shape or shape[0] is not None}
    if not fixed:
        return
    file = config_file(model)
    name, shape = next(iter(fixed.items()))
    written = [*tensors(model, "input"), *tensors(model, "output")]
    dims = [
        f"dims: {listed(-1 if length is None else length for length in shapes[name])} for {name!r}"
        for name in written
        if name in shapes
    ]
    lines = [f"max_batch_size: 0 in {joined([file, *map(config_file, routers)])}"]
    lines += [f"max_batch_size = 0 in {policy_file(router)}" for router in routers]
    lines += [f"{' and '.join(dims)} there"] if dims else []
    yield Finding(
        rules.FIXED_BATCH_AXIS,
        at(model, "max_batch_size"),
        f"{file} has max_batch_size: {size}, and {name!r} of its model.onnx has the shape "
        f"{[length if length is not None else -1 for length in shape]}, without a free batch axis: the server refuses "
        "to load it",
        f"export the model with a free first dimension, or write {joined(lines)}",
    )


def misfits(model: Model) -> Iterator[Finding]:
    """Tensors of an ONNX model that its file does not have, or has with another type."""
    if model.onnx is None or backend(model) not in ("", ONNX_BACKEND):
        return
    file = config_file(model)
    for kind, types in model.onnx.types.items():
        written = tensors(model, kind)
        free = [name for name in types if name not in written]
        for name, tensor in written.items():
            if name not in types:
                close = (difflib.get_close_matches(name, free, n=1) or free)[:1]
                yield Finding(
                    rules.ONNX_DIFFERS,
                    at(model, kind, tensor.index, "name"),
                    f"{kind} {name!r} of {file} is none of its model.onnx (it has {', '.join(types) or 'none'}): the "
                    "server refuses to load it",
                    f'write name: "{close[0]}" in {file}' if close else f"remove {tensor.entry()} from {file}",
                )
            elif types[name] and not tensor.untyped and tensor.data_type != types[name]:
                yield Finding(
                    rules.ONNX_DIFFERS,
                    at(model, kind, tensor.index, "data_type"),
                    f"{kind} {name!r} is {tensor.data_type} in {file} and {types[name]} in its model.onnx: the server "
                    "refuses to load it",
                    f"write data_type: {types[name]} in {file}",
                )
