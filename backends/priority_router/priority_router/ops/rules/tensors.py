# SPDX-License-Identifier: Apache-2.0
"""Rules about the inputs and outputs of a router, which are its executor's and a few of its own."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from priority_router.interface import CLASS_TENSOR, TIMING_OUTPUTS
from priority_router.ops.rules.catalogue import executor as executor_rules
from priority_router.ops.rules.catalogue import router as rules
from priority_router.ops.rules.configs import Tensor, at, batch_limit, config_file, listed, tensors
from priority_router.ops.rules.finding import Finding, Rule
from priority_router.ops.rules.models import Model

_UNKNOWN: Final[Mapping[str, Rule]] = {"input": rules.INPUTS, "output": rules.OUTPUTS}
_DIFFERENT: Final[Mapping[str, Rule]] = {"input": rules.INPUTS, "output": rules.DIFFERENT_OUTPUT}
_LENGTH: Final = 128
"""One to show where the right one is the owner's to know."""


def check(router: Model, executor: Model) -> Iterator[Finding]:
    """Router against executor; where the executor's are left for its backend to find there is nothing to compare."""
    if executor.config.get("input"):
        yield from _inputs(router, executor)
    if executor.config.get("output"):
        routed, called = tensors(router, "output"), tensors(executor, "output")
        ours = {name: tensor for name, tensor in routed.items() if name not in TIMING_OUTPUTS}
        missing = [name for name in called if name not in routed]
        for name, tensor in ours.items():
            if name in called:
                yield from _different("output", tensor, called[name], router, executor)
            else:
                yield _unknown("output", tensor, called, missing, router, executor)


def _inputs(router: Model, executor: Model) -> Iterator[Finding]:
    routed, called = tensors(router, "input"), tensors(executor, "input")
    routed.pop(CLASS_TENSOR, None)
    missing = [name for name, tensor in called.items() if name not in routed and not tensor.optional]
    for name, tensor in routed.items():
        if name not in called:
            yield _unknown("input", tensor, called, missing, router, executor)
            continue
        yield from _different("input", tensor, called[name], router, executor)
        if tensor.optional and not called[name].optional:
            yield Finding(
                rules.INPUTS,
                at(router, "input", tensor.index, "optional"),
                f"input {name!r} is optional in {config_file(router)} and not in {config_file(executor)}: requests "
                "without it fail",
                f"remove optional: true for {name!r} from {config_file(router)}",
            )
    for name in missing:
        if not called[name].comparable:
            continue
        fix = f"write {called[name].entry()} among the inputs in {config_file(router)}"
        if name == CLASS_TENSOR:
            fix = (
                f"give the input another name in {config_file(executor)} and in the model: this one is the router's own"
            )
        yield Finding(
            rules.INPUTS,
            at(router, "input"),
            f"executor {executor.name!r} needs the input {name!r}, which router {router.name!r} does not pass on: "
            "every request fails",
            fix,
        )


def _unknown(
    kind: str, tensor: Tensor, known: Mapping[str, Tensor], missing: Sequence[str], router: Model, executor: Model
) -> Finding:
    close = difflib.get_close_matches(tensor.name, missing, n=1)
    fix = f'write name: "{close[0]}"' if close else f"remove {tensor.entry()}"
    return Finding(
        _UNKNOWN[kind],
        at(router, kind, tensor.index, "name"),
        f"{kind} {tensor.name!r} in {config_file(router)} is none of executor {executor.name!r} (it has "
        f"{', '.join(known)}): requests with it fail",
        f"{fix} {'in' if close else 'from'} {config_file(router)}",
    )


def _different(kind: str, ours: Tensor, theirs: Tensor, router: Model, executor: Model) -> Iterator[Finding]:
    """What the router's backend has against what the executor takes and gives."""
    if not (ours.comparable and theirs.comparable):
        return
    if ours.data_type == theirs.data_type and _fit(ours.inner, theirs.dims):
        return
    wanted = [
        *([f"data_type: {theirs.data_type}"] if ours.data_type != theirs.data_type else []),
        *([f"dims: {listed(theirs.dims)}"] if not _fit(ours.inner, theirs.dims) else []),
    ]
    fix = f"write {' and '.join(wanted)} for it in {config_file(router)}"
    if ours.inner != ours.dims:
        fix += ", without reshape"
    if theirs.data_type == "TYPE_BF16":
        fix = f"let {executor.name!r} have it as {ours.data_type}, since no router can pass TYPE_BF16 on"
    yield Finding(
        _DIFFERENT[kind],
        at(router, kind, ours.index),
        f"{kind} {ours.name!r} is {ours.data_type} {list(ours.inner)} in {config_file(router)} and {theirs.data_type} "
        f"{list(theirs.dims)} in {config_file(executor)}: "
        + ("requests fail" if kind == "input" else "answers come as the executor makes them"),
        fix,
    )


def _fit(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Some shape fits both; -1 is any length."""
    return len(ours) == len(theirs) and all(a == b or -1 in (a, b) for a, b in zip(ours, theirs, strict=True))


def variable_dims(executor: Model) -> Iterator[Finding]:
    """Inputs of an executor whose length each request chooses."""
    if not batch_limit(executor):
        return
    for tensor in tensors(executor, "input").values():
        if -1 in tensor.dims:
            one = listed(_LENGTH if length == -1 else length for length in tensor.dims)
            yield Finding(
                executor_rules.VARIABLE_DIMS,
                at(executor, "input", tensor.index, "dims"),
                f"input {tensor.name!r} of {config_file(executor)} has dims: {listed(tensor.dims)}: only requests of "
                "equal lengths share a batch",
                f"where all have one length, write it in {config_file(executor)}, such as dims: {one}; else let "
                "clients pad to a few lengths",
            )
