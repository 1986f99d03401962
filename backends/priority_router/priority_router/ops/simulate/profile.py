# SPDX-License-Identifier: Apache-2.0
"""An executor's profile: what was seen of it and of the ways around it, as a file, for the modelled executor.

Law: values only; text in, values out, and the other way round. The form is told in docs/simulate.md.
"""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from priority_router.core.values import MICROSECOND
from priority_router.errors import SetupError
from priority_router.ops.simulate.clock import Delay, Drawn, Way
from priority_router.ops.simulate.executor import ExecutorShape
from priority_router.ops.simulate.simulation import Delays

SCHEMA: Final = "priority-router-profile/1"
"""Changes with every change that a reader of the old form would stumble over."""

MOST_SAMPLES: Final = 500
"""Of each list in a file: more are thinned out to this many quantiles."""

WAYS: Final[Mapping[str, str]] = {
    "request": "caller to the router's queue",
    "hand_over": "decision to the executor call",
    "call": "executor call to Triton's queue",
    "reply": "end of the batch to its return from the executor call",
    "timer": "lateness of the router's timer",
    "answer": "return from the executor call to the caller",
}
"""Name in a file to what it is; each a list of microseconds."""


class ProfileError(SetupError):
    """A profile cannot be used; the text says what in it, and what to do."""


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Execution times by row count, drawn from samples.

    Between two row counts that were measured a time lies on a straight line between their quantiles; below the smallest
    it is that of the smallest, above the largest it grows with the rows.

    Attributes:
        samples: times by row count, at least one.
    """

    samples: Mapping[int, Drawn]
    _rows: tuple[int, ...] = ()
    _means: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", tuple(sorted(self.samples)))

    def draw(self, rows: int, now: int, rng: random.Random) -> int:  # noqa: ARG002 - others drift
        """Time in ns of a batch of ``rows`` rows."""
        return max(1, int(self._at(rows, rng.random())))

    def expected(self, rows: int, now: int) -> float:  # noqa: ARG002 - others drift
        """Mean of ``draw`` in ns."""
        mean = self._means.get(rows)
        if mean is None:
            below, above, share = self._between(rows)
            low, high = self.samples[below].mean, self.samples[above].mean
            mean = self._means[rows] = (low + share * (high - low)) * max(1.0, rows / self._rows[-1])
        return mean

    def _at(self, rows: int, quantile: float) -> float:
        samples = self.samples
        if rows in samples:
            return samples[rows].at(quantile)
        below, above, share = self._between(rows)
        low = samples[below].at(quantile)
        return (low + share * (samples[above].at(quantile) - low)) * max(1.0, rows / self._rows[-1])

    def _between(self, rows: int) -> tuple[int, int, float]:
        """The neighbours among the measured row counts, and how far it lies from the first to the second."""
        known = self._rows
        at = bisect_left(known, rows)
        if at == len(known):
            return known[-1], known[-1], 0.0
        if at == 0:
            return known[0], known[0], 0.0
        return known[at - 1], known[at], (rows - known[at - 1]) / (known[at] - known[at - 1])


@dataclass(frozen=True, slots=True)
class Profile:
    """What a file holds.

    Attributes:
        shape: the executor that was seen.
        times: its execution times.
        dispatch_overhead: ns from the end of a batch to the start of the next, where that waits.
        delays: the ways around it.
        recorded: how, in plain values of JSON; for people.
        largest_request: most rows that the router takes in one request; None where it is not known.
    """

    shape: ExecutorShape
    times: MeasuredTimes
    dispatch_overhead: int
    delays: Delays
    recorded: Mapping[str, Any] = field(default_factory=dict)
    largest_request: int | None = None


def thinned(values: Sequence[float]) -> list[float]:
    """At most ``MOST_SAMPLES`` of some values in ascending order, each for as many of all.

    The ends are not among them: drawn between its neighbours, one odd value of thousands would count for a hundredth.
    """
    ordered = sorted(values)
    if len(ordered) <= MOST_SAMPLES:
        return ordered
    return [ordered[int((place + 0.5) * len(ordered) / MOST_SAMPLES)] for place in range(MOST_SAMPLES)]


def as_json(
    shape: ExecutorShape,
    execution_us: Mapping[int, Sequence[float]],
    dispatch_overhead_us: float,
    delays_us: Mapping[str, Sequence[float]],
    recorded: Mapping[str, Any],
    router_max_batch_size: int,
) -> dict[str, Any]:
    """A profile as its file has it.

    Args:
        shape: the executor's.
        execution_us: samples by row count, microseconds.
        dispatch_overhead_us: microseconds.
        delays_us: samples by the names in ``WAYS``, microseconds; one that is not there takes no time.
        recorded: how they were come by.
        router_max_batch_size: of the router in front of it; 0: no batch axis.
    """
    return {
        "schema": SCHEMA,
        "recorded": dict(recorded),
        "executor": {"instances": shape.instances, "max_batch_size": shape.max_batch_size, "levels": shape.levels},
        "router": {"max_batch_size": router_max_batch_size},
        "execution_us": {str(rows): _rounded(execution_us[rows]) for rows in sorted(execution_us)},
        "dispatch_overhead_us": round(dispatch_overhead_us, 1),
        "delays_us": {name: _rounded(delays_us[name]) for name in WAYS if delays_us.get(name)},
    }


def parse(text: str, source: str) -> Profile:
    """Reads a profile.

    Args:
        text: of the file.
        source: its name, for errors.

    Raises:
        ProfileError: it is none, of another version, or a value cannot be used.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ProfileError(
            f"{source}: not JSON ({error}); name a file that `simulate --record-profile` wrote"
        ) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise ProfileError(f"{source}: schema is {found!r}, this version reads {SCHEMA!r}; record the profile anew")
    return _Reader(source).profile(document)


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 1) for value in thinned(values)]


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source

    def profile(self, document: Mapping[str, Any]) -> Profile:
        shape = self._table(document, "executor")
        execution = self._table(document, "execution_us")
        delays = self._table(document, "delays_us")
        if not execution:
            self._refuse("execution_us", execution, 'at least one row count with its times, such as "1": [5000]')
        if unknown := sorted(set(delays) - set(WAYS)):
            self._refuse(f"delays_us.{unknown[0]}", delays[unknown[0]], f"one of {', '.join(WAYS)}")
        ways: dict[str, Way] = {
            name: self._samples(f"delays_us.{name}", delays[name]) if name in delays else Delay() for name in WAYS
        }
        recorded = document.get("recorded")
        return Profile(
            ExecutorShape(
                self._count(shape, "executor", "instances", 1),
                self._count(shape, "executor", "max_batch_size", 0),
                self._levels(shape),
            ),
            MeasuredTimes({self._rows(key): self._samples(f"execution_us.{key}", execution[key]) for key in execution}),
            round(self._time("dispatch_overhead_us", document.get("dispatch_overhead_us")) * MICROSECOND),
            Delays(**ways),
            recorded if isinstance(recorded, dict) else {},
            max(1, self._count(self._table(document, "router"), "router", "max_batch_size", 0))
            if "router" in document
            else None,
        )

    def _table(self, document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = document.get(key)
        if not isinstance(value, dict):
            self._refuse(key, value, "an object")
        return value

    def _count(self, table: Mapping[str, Any], name: str, key: str, least: int) -> int:
        value = table.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self._refuse(f"{name}.{key}", value, f"a whole number of at least {least}")
        return value

    def _levels(self, table: Mapping[str, Any]) -> bool:
        value = table.get("levels", True)
        if not isinstance(value, bool):
            self._refuse("executor.levels", value, "true or false")
        return bool(value)

    def _rows(self, key: str) -> int:
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) >= 1):
            self._refuse(f"execution_us.{key}", key, "a row count of at least 1 as the key")
        return int(key)

    def _samples(self, path: str, values: object) -> Drawn:
        if not isinstance(values, list) or not values:
            self._refuse(path, values, "a list of at least one number of microseconds")
        return Drawn(tuple(sorted(round(self._time(path, value) * MICROSECOND) for value in values)))

    def _time(self, path: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            self._refuse(path, value, "microseconds, a number that is not negative")
        return float(value)

    def _refuse(self, path: str, value: object, remedy: str) -> NoReturn:
        shown = "missing" if value is None else f"= {repr(value)[:60]}"
        raise ProfileError(f"{self._source}: {path} {shown} cannot be used; write {remedy}")
