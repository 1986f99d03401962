# SPDX-License-Identifier: Apache-2.0
"""Aims: what a scenario is expected to show, as data, and whether the rounds showed it.

Law: pure. An aim compares two arms within each round, where both had the same arrivals, and judges the median of the
rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from priority_router.ops.bench.stats import RoundSummary, Spread
from priority_router.ops.simulate.run import ORACLE as ORACLE

ALL: Final = "*"
"""In place of a class name: rows of all classes together."""

ROUTER_ARMS: Final = ("router", "router-plain")
"""The arms that aims judge; the first one decides, others are shown."""

_STEP: Final = " in flight"

Rounds = Sequence[Mapping[str, RoundSummary]]
"""For each round the summaries of the arms that finished it, by arm name; under ORACLE that of the oracle."""


def step_name(in_flight: int) -> str:
    """What a closed-loop step is called where a class name stands."""
    return f"{in_flight}{_STEP}"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a round's summary.

    Attributes:
        what: ``busy``, ``rows_per_s`` or a latency name such as ``p50_ms``.
        class_name: the class it is about; ALL for rows of all classes, ignored for ``busy``.
        arm: the arm it is read from; empty means the arm that is judged.
    """

    what: str
    class_name: str = ALL
    arm: str = ""

    @property
    def text(self) -> str:
        """What it is, in words; the arm left out."""
        if self.what == "busy":
            return "executor busy"
        number = self.what.replace("rows_per_s", "rows/s").removesuffix("_ms")
        if self.class_name == ALL:
            return number
        return f"{number} at {self.class_name}" if self.class_name.endswith(_STEP) else f"{self.class_name} {number}"

    def of(self, arms: Mapping[str, RoundSummary], judged: str) -> float | None:
        """The number in one round; None where it was not measured."""
        summary = arms.get(self.arm or judged)
        if summary is None:
            return None
        if self.what == "busy":
            return summary.busy
        if self.what == "rows_per_s":
            chosen = [one for name, one in summary.classes.items() if self.class_name in (ALL, name)]
            return sum(one.rows_per_s for one in chosen)
        one_class = summary.classes.get(self.class_name)
        return None if one_class is None else one_class.latency.get(self.what)


@dataclass(frozen=True, slots=True)
class Aim:
    """One expectation; made by `at_most` and `at_least`.

    Attributes:
        text: what is compared, in words.
        metric: the number that is judged.
        limit: what it is held against.
        at_most: True: the number must not be above ``limit``, False: not below.
        base: what the number is divided by (``ratio``) or what is taken off it (``difference``); a constant or another
            number; None takes it as it is.
        by: how ``base`` is applied.
        arms: the arms that are judged; the first one decides, others are shown.
    """

    text: str
    metric: Metric
    limit: float
    at_most: bool
    base: Metric | float | None = None
    by: Literal["ratio", "difference"] = "ratio"
    arms: tuple[str, ...] = ROUTER_ARMS

    def value(self, arms: Mapping[str, RoundSummary], judged: str) -> float | None:
        """The judged value in one round; None where a part of it was not measured."""
        value = self.metric.of(arms, judged)
        base = self.base.of(arms, judged) if isinstance(self.base, Metric) else self.base
        if value is None or (base is None and self.base is not None):
            return None
        if base is None:
            return value
        if self.by == "difference":
            return value - base
        return value / base if base else None


def at_most(
    limit: float, metric: Metric, *, of: str | None = None, above: str | None = None, of_floor_ms: float | None = None
) -> Aim:
    """An aim that a number is not above a limit.

    Args:
        limit: the limit.
        metric: the number, on the router's arms.
        of: the limit is a share of the same number on this arm, which itself is not judged, or of the oracle's.
        above: the limit is what may come on top of the same number on this arm.
        of_floor_ms: the limit is a multiple of this floor.
    """
    return _aim(limit, metric, True, of, above, of_floor_ms)


def at_least(limit: float, metric: Metric, *, of: str | None = None) -> Aim:
    """An aim that a number is not below a limit; see `at_most`."""
    return _aim(limit, metric, False, of, None, None)


def _aim(
    limit: float, metric: Metric, at_most: bool, of: str | None, above: str | None, of_floor_ms: float | None
) -> Aim:
    arms = tuple(arm for arm in ROUTER_ARMS if arm not in (of, above))
    if of_floor_ms is not None:
        text = f"{metric.text} / floor of {of_floor_ms:g} ms (half a batch + its own)"
        return Aim(text, metric, limit, at_most, of_floor_ms, arms=arms)
    if above is not None:
        text = f"{metric.text} - that of {above}, ms"
        return Aim(text, metric, limit, at_most, replace(metric, arm=above), "difference", arms)
    if of is not None:
        those = "those" if metric.what == "rows_per_s" else "that"
        named = "the oracle" if of == ORACLE else of
        return Aim(f"{metric.text} / {those} of {named}", metric, limit, at_most, replace(metric, arm=of), arms=arms)
    return Aim(metric.text, metric, limit, at_most, arms=arms)


def limit_text(at_most: bool, limit: float) -> str:
    """A limit and its direction in words."""
    return f"at {'most' if at_most else 'least'} {limit:g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an aim on one arm.

    Attributes:
        text: the aim's.
        arm: the arm judged.
        decisive: the aim stands or falls with this arm.
        at_most: see ``Aim``.
        limit: see ``Aim``.
        values: in each round that has one.
        reached: over the rounds; None without a round.
        met: whether the median keeps the limit; None without a round.
    """

    text: str
    arm: str
    decisive: bool
    at_most: bool
    limit: float
    values: tuple[float, ...]
    reached: Spread | None
    met: bool | None


def judge(aims: Sequence[Aim], rounds: Rounds) -> list[Verdict]:
    """Judges every aim on each of its arms that has at least one round or decides it."""
    verdicts = []
    for aim in aims:
        for position, arm in enumerate(aim.arms):
            found = [aim.value(arms, arm) for arms in rounds]
            values = tuple(value for value in found if value is not None)
            if not values and position > 0:
                continue
            reached = Spread.over(values) if values else None
            met = None
            if reached is not None:
                met = reached.median <= aim.limit if aim.at_most else reached.median >= aim.limit
            verdicts.append(Verdict(aim.text, arm, position == 0, aim.at_most, aim.limit, values, reached, met))
    return verdicts
