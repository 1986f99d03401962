# SPDX-License-Identifier: Apache-2.0
"""Rules about the steps of an ensemble: Triton loads it only where each model is there and has the tensors mapped."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from priority_router.ops.rules.catalogue import executor as rules
from priority_router.ops.rules.configs import at, config_file, joined, section, tensors
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Config, Model

_MAPS: Final = (("input_map", "input"), ("output_map", "output"))


def check(ensemble: Model, models: Mapping[str, Model], unreadable: Collection[str]) -> Iterator[Finding]:
    """All rules about steps; nothing of models that cannot be read, or leave their tensors to Triton.

    Args:
        ensemble: with its steps.
        models: all that can be read.
        unreadable: names of the others that are there.
    """
    for index, step in enumerate(section(ensemble.config, "ensemble_scheduling").get("step") or ()):
        name = str(step.get("model_name", ""))
        if name in models:
            yield from _tensors(ensemble, index, step, models[name])
        elif name not in unreadable:
            yield _missing(ensemble, index, name, sorted({*models, *unreadable} - {ensemble.name}))


def _missing(ensemble: Model, index: int, name: str, others: list[str]) -> Finding:
    file = config_file(ensemble)
    close = difflib.get_close_matches(name, others, n=1)
    fix = (
        f'write model_name: "{close[0]}" in {file}, if that is meant' if close else f"add that model, or correct {file}"
    )
    return Finding(
        rules.STEP_MISSING,
        at(ensemble, "ensemble_scheduling", "step", index, "model_name"),
        f"step {index + 1} of {file} calls model {name!r}, which is not there: Triton does not load the ensemble",
        fix if close else f"{fix} (there is {', '.join(others) or 'no other model'}); or remove the ensemble",
    )


def _tensors(ensemble: Model, index: int, step: Config, called: Model) -> Iterator[Finding]:
    file = config_file(ensemble)
    for written, kind in _MAPS:
        known = list(tensors(called, kind))
        for name in step.get(written) or {}:
            if not known or name in known:
                continue
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.4) or known
            choices = joined([f'key: "{choice}"' for choice in close], "or")
            yield Finding(
                rules.STEP_TENSOR,
                at(ensemble, "ensemble_scheduling", "step", index, written, name),
                f"{written} of step {index + 1} in {file} has key {name!r}, and model {called.name!r} has no such "
                f"{kind}: Triton does not load the ensemble",
                f'write {choices} in place of key: "{name}" in {file}',
            )
