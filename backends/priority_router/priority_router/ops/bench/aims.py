# SPDX-License-Identifier: Apache-2.0
"""Aims: what a scenario is expected to show, as data, and whether the rounds showed it.

Law: pure. An aim compares two arms within each round, where both had the same arrivals, and judges the median of the
rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from priority_router.ops.bench.stats import RoundSummary, Spread

ALL = "*"
"""In place of a class name: rows of all classes together."""

Rounds = Sequence[Mapping[str, RoundSummary]]
"""For each round the summaries of the arms that finished it, by arm name."""


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
    """One expectation.

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
    arms: tuple[str, ...] = ("router", "router-plain")

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
