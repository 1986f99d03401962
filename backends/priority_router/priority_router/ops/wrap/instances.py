# SPDX-License-Identifier: Apache-2.0
"""How many instances an executor has, as far as its configuration tells: `rules.instances` in words for its owner.

Law: pure. What is left open by a configuration is decided by Triton on each machine, and is said to the user, never
guessed in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops.rules import backends
from priority_router.ops.rules.configs import backend, groups, number
from priority_router.ops.rules.instances import assumed, counted, on_each_device
from priority_router.ops.rules.models import Model

_NUMBERS: Final = {None: "one (its backend may ask for more)", 1: "one", 2: "two"}


@dataclass(frozen=True, slots=True)
class Instances:
    """What ``executor_shape.instances`` is to say.

    Attributes:
        count: over all devices.
        open: what the configuration leaves to the machine, in a sentence without a full stop; empty where nothing.
        stated: the count was given on the command line.
    """

    count: int
    open: str = ""
    stated: bool = False


def of(model: Model, stated: int | None, where: str) -> Instances:
    """Counts.

    Args:
        model: as its owner wrote it.
        stated: by the user; None where nothing was.
        where: file and place of ``instance_group``, for errors.

    Raises:
        SetupError: the user states what the configuration contradicts.
    """
    left_open = "; ".join(_open(model))
    if stated is None:
        return Instances(assumed(model), left_open)
    found = counted(model)
    if found is not None and not found.fits(stated):
        raise SetupError(
            f"--instances {stated}: {where} says otherwise; write {found.near(stated)}, or correct instance_group, or "
            "leave the option out"
        )
    return Instances(stated, left_open, stated=True)


def _open(model: Model) -> Iterator[str]:
    """Per group what is left to the machine, or to a backend that nobody here knows."""
    on_cpu, on_gpu = (_NUMBERS[backends.default_count(backend(model), on_cpu=on_cpu)] for on_cpu in (True, False))
    default = f"{on_cpu} on a machine without GPUs, otherwise {on_gpu} for each GPU"
    found = groups(model)
    if not found:
        yield f"it has no instance_group, and Triton starts {default}"
    for _, group in found:
        kind, count = group.get("kind", "KIND_AUTO"), on_each_device(group, backend(model))
        if group.get("gpus") or kind in ("KIND_CPU", "KIND_MODEL"):
            if count is None:
                number_of = {"KIND_AUTO": default, "KIND_CPU": on_cpu, "KIND_GPU": f"{on_gpu} for each GPU in gpus"}
                yield f"a group of {kind} has no count, and Triton starts {number_of.get(kind, on_gpu)}"
        elif kind == "KIND_GPU":
            yield f"a group of KIND_GPU lists no gpus, and Triton starts {count or on_gpu} for each GPU of the machine"
        elif number(group, "count"):
            yield (
                f"a group has no kind, and Triton starts {count} on a machine without GPUs, otherwise {count} for each "
                "GPU"
            )
        else:
            yield f"a group has neither kind nor count, and Triton starts {default}"
