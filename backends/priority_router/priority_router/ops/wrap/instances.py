# SPDX-License-Identifier: Apache-2.0
"""How many instances an executor has, as far as its configuration tells.

Law: pure. What is left open by a configuration is decided by Triton on each machine (``NormalizeInstanceGroup``), and
is said to the user, never guessed in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from priority_router.errors import SetupError

_TWO_ON_CPU: Final = ("onnxruntime", "tensorflow")
"""Backends of which Triton starts two instances on a CPU where no count is written."""


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


def of(config: Any, backend: str, stated: int | None, where: str) -> Instances:
    """Counts.

    Args:
        config: a ``ModelConfig``.
        backend: of the model; empty where nobody knows it.
        stated: by the user; None where nothing was.
        where: file and place of ``instance_group``, for errors.

    Raises:
        SetupError: the user states what the configuration contradicts.
    """
    groups = [group for group in config.instance_group if not group.passive]
    least = max(1, sum(max(1, group.count) * max(1, len(group.gpus)) for group in groups))
    left_open = "; ".join(_open(groups, "two" if backend in _TWO_ON_CPU else "one"))
    if stated is None:
        return Instances(least, left_open)
    if left_open:
        fixed = len(groups) != 1 or not groups[0].count or stated % groups[0].count == 0
        wanted = f"a multiple of its count, {groups[0].count}" if groups else ""
    else:
        fixed, wanted = stated == least, str(least)
    if not fixed:
        raise SetupError(
            f"--instances {stated}: {where} says otherwise; write {wanted}, or correct instance_group, or leave the "
            "option out"
        )
    return Instances(stated, left_open, stated=True)


def _open(groups: list[Any], cpu_default: str) -> Iterator[str]:
    """Per group what is left to the machine."""
    default = f"{cpu_default} on a machine without GPUs, otherwise one for each GPU"
    if not groups:
        yield f"it has no instance_group, and Triton starts {default}"
    for group in groups:
        kind = group.Kind.Name(group.kind)
        if kind in ("KIND_CPU", "KIND_MODEL"):
            if not group.count:
                started = cpu_default if kind == "KIND_CPU" else "one"
                yield f"a group of {kind} has no count, and Triton starts {started}"
        elif group.gpus:
            if not group.count:
                yield "a group has no count, and Triton starts one for each GPU that it lists"
        elif kind == "KIND_GPU":
            count = max(1, group.count)
            yield f"a group of KIND_GPU lists no gpus, and Triton starts {count} for each GPU of the machine"
        elif group.count:
            yield (
                f"a group has no kind, and Triton starts {group.count} on a machine without GPUs, otherwise "
                f"{group.count} for each GPU"
            )
        else:
            yield f"a group has neither kind nor count, and Triton starts {default}"
