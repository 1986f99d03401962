# SPDX-License-Identifier: Apache-2.0
"""Arrivals: when which class sends which request, drawn once from a seed and replayed on every arm.

Law: a schedule is data. Nothing here knows servers or the clock; times are nanoseconds from the start of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    """Draws independent Poisson arrivals for each class, whatever their ``arrivals`` say; see `drawn`.

    Args:
        loads: the classes, names unique.
        duration_s: seconds during which requests arrive.
        seed: anything numpy's SeedSequence takes; the same seed gives the same arrays.
        payloads: how many prepared inputs to choose from, evenly.

    Raises:
        ValueError: no class, a name twice, a negative rate, or no duration.
    """
    return drawn([replace(load, arrivals="poisson") for load in loads], duration_s, seed, [payloads] * len(loads))


def drawn(
    loads: Sequence[ClassLoad],
    duration_s: float,
    seed: int | Sequence[int],
    payloads: Sequence[int],
    warmup_s: float = 0.0,
) -> Schedule:
    """Draws the arrivals of each class.

    A class's arrivals depend on the seed, its place in ``loads`` and its own load only, so that changing one class
    leaves the others as they were.

    Args:
        loads: the classes, names unique.
        duration_s: seconds during which requests arrive, the warm-up among them.
        seed: anything numpy's SeedSequence takes; the same seed gives the same arrays.
        payloads: of each class, how many prepared inputs to choose from, evenly.
        warmup_s: the part of the duration before the first burst may come.

    Raises:
        ValueError: no class, a name twice, a negative rate, no duration, or no payload.
    """
    names = tuple(load.name for load in loads)
    if not names or len(set(names)) != len(names):
        raise ValueError(f"a load needs at least one class and every name once, got {names}")
    if duration_s <= 0 or any(count < 1 for count in payloads) or any(load.rate < 0 for load in loads):
        raise ValueError(
            f"duration {duration_s} s and payloads {payloads} must be above zero and no rate below: {loads}"
        )
    times, classes, chosen = [], [], []
    children = np.random.SeedSequence(seed).spawn(len(loads))
    for index, (load, count, child) in enumerate(zip(loads, payloads, children, strict=True)):
        random = np.random.default_rng(child)
        seconds = _seconds(load, duration_s, warmup_s, random)
        times.append((seconds * SECOND).astype(np.int64))
        classes.append(np.full(len(seconds), index, dtype=np.int64))
        chosen.append(random.integers(count, size=len(seconds), dtype=np.int64))
    return _merged(names, times, classes, chosen, int(duration_s * SECOND))


def recorded(
    names: Sequence[str],
    times: Sequence[NDArray[np.float64]],
    payloads: Sequence[NDArray[np.int64]],
    duration_s: float,
) -> Schedule:
    """A schedule from times that were recorded; those from ``duration_s`` on are left out.

    Args:
        names: of the classes.
        times: of each class, [n] seconds from the start, ascending.
        payloads: of each class, [n] which prepared input each request carries.
        duration_s: seconds during which requests arrive.
    """
    kept = [own < duration_s for own in times]
    return _merged(
        tuple(names),
        [(own[keep] * SECOND).astype(np.int64) for own, keep in zip(times, kept, strict=True)],
        [np.full(int(keep.sum()), index, dtype=np.int64) for index, keep in enumerate(kept)],
        [own[keep] for own, keep in zip(payloads, kept, strict=True)],
        int(duration_s * SECOND),
    )


def _merged(
    names: tuple[str, ...],
    times: Sequence[NDArray[np.int64]],
    classes: Sequence[NDArray[np.int64]],
    chosen: Sequence[NDArray[np.int64]],
    duration: int,
) -> Schedule:
    at = np.concatenate(times)
    order = np.argsort(at, kind="stable")
    return Schedule(names, at[order], np.concatenate(classes)[order], np.concatenate(chosen)[order], duration)


def _seconds(load: ClassLoad, duration_s: float, warmup_s: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Ascending times of a class's requests."""
    if load.arrivals == "burst":
        first = warmup_s + load.burst_start_s
        starts = np.arange(first, duration_s, load.burst_size / load.rate) if load.rate else np.empty(0)
        return np.repeat(starts, load.burst_size)
    if load.arrivals == "constant":
        # Classes of one rate do not come at one time.
        phase = random.random()
        return np.arange(phase, load.rate * duration_s) / load.rate if load.rate else np.empty(0)
    # Given their number, the points of a Poisson process are independent and uniform.
    count = int(random.poisson(load.rate * duration_s))
    return np.sort(random.random(count)) * duration_s
