# SPDX-License-Identifier: Apache-2.0
"""Arrivals: when which class sends which request, drawn once from a seed and replayed on every arm.

Law: a schedule is data. Nothing here knows servers or the clock; times are nanoseconds from the start of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND
from priority_router.ops.loads import ClassLoad


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Arrivals of all classes in the order of time.

    Attributes:
        classes: names; ``class_index`` points into them.
        at: [n] ns from the start, ascending, all below ``duration``.
        class_index: [n] the request's class.
        payload: [n] which of the target's prepared inputs the request carries.
        duration: ns during which requests arrive.
    """

    classes: tuple[str, ...]
    at: NDArray[np.int64]
    class_index: NDArray[np.int64]
    payload: NDArray[np.int64]
    duration: int

    def __len__(self) -> int:
        return len(self.at)

    def share(self, part: int, parts: int) -> Schedule:
        """Every ``parts``-th arrival from ``part`` on: what one of several generator processes sends."""
        pick = slice(part, None, parts)
        return Schedule(self.classes, self.at[pick], self.class_index[pick], self.payload[pick], self.duration)


def poisson(loads: Sequence[ClassLoad], duration_s: float, seed: int | Sequence[int], payloads: int = 1) -> Schedule:
    """Draws independent Poisson arrivals for each class.

    A class's arrivals depend on the seed, its place in ``loads`` and its own rate only, so that changing one class
    leaves the others as they were.

    Args:
        loads: the classes, names unique.
        duration_s: seconds during which requests arrive.
        seed: anything numpy's SeedSequence takes; the same seed gives the same arrays.
        payloads: how many prepared inputs to choose from, evenly.

    Raises:
        ValueError: no class, a name twice, a negative rate, or no duration.
    """
    names = tuple(load.name for load in loads)
    if not names or len(set(names)) != len(names):
        raise ValueError(f"a load needs at least one class and every name once, got {names}")
    if duration_s <= 0 or payloads < 1 or any(load.rate < 0 for load in loads):
        raise ValueError(
            f"duration {duration_s} s and payloads {payloads} must be above zero and no rate below: {loads}"
        )
    times, classes, chosen = [], [], []
    for index, (load, child) in enumerate(zip(loads, np.random.SeedSequence(seed).spawn(len(loads)), strict=True)):
        random = np.random.default_rng(child)
        # Given their number, the points of a Poisson process are independent and uniform.
        count = int(random.poisson(load.rate * duration_s))
        times.append((np.sort(random.random(count)) * duration_s * SECOND).astype(np.int64))
        classes.append(np.full(count, index, dtype=np.int64))
        chosen.append(random.integers(payloads, size=count, dtype=np.int64))
    at = np.concatenate(times)
    order = np.argsort(at, kind="stable")
    return Schedule(
        names, at[order], np.concatenate(classes)[order], np.concatenate(chosen)[order], int(duration_s * SECOND)
    )
