# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run: what the most urgent class gained by the router and what the others paid, or why nobody knows.

Law: results in, findings and text out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from priority_router.ops.bench import doubts, paired, words
from priority_router.ops.bench.details import rounded
from priority_router.ops.bench.experiment import Results
from priority_router.ops.bench.paired import BLOCK_SECONDS, LEAST_BLOCKS, Comparison, block_count

JUDGED: Final = ("router", "router-plain")
"""Arms that are judged."""

AGAINST: Final = ("flat", "levels+hooks", "levels", "flat-levels")
"""What they are held against: the first one that was run is what most have today..."""

MOST_AGAINST: Final = 2
"""...and the next is the best that there is without a router."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One number of one class on two arms.

    Attributes:
        arm: the judged arm.
        against: the arm that it is held against.
        class_name: the class.
        what: ``p50_ms``, ``p95_ms``, ``p99_ms``, ``rows_per_s`` or ``in_time``.
        numbers: the values and the interval of their difference.
    """

    arm: str
    against: str
    class_name: str
    what: str
    numbers: Comparison

    def as_json(self) -> dict[str, Any]:
        """Plain values; null where requests had no answer."""
        numbers = self.numbers
        return {
            "arm": self.arm,
            "against": self.against,
            "class": self.class_name,
            "what": self.what,
            "before": rounded(numbers.before),
            "after": rounded(numbers.after),
            "difference": {"low": rounded(numbers.low), "high": rounded(numbers.high)},
            "finding": numbers.finding.value,
        }


@dataclass(frozen=True, slots=True)
class Findings:
    """What a run says.

    Attributes:
        sentences: for people, at least one.
        compared: the numbers behind them; empty without a verdict.
    """

    sentences: tuple[str, ...]
    compared: tuple[Compared, ...] = ()


def judge(results: Results) -> Findings:
    """Holds each router arm against the arms without one."""
    scenario = results.scenario
    arms = results.arms()
    pairs = [
        (arm, other)
        for arm in JUDGED
        if arm in arms
        for other in [other for other in AGAINST if other in arms][:MOST_AGAINST]
    ]
    if reason := _incomparable(results, pairs):
        return Findings((f"No verdict: {reason}.",))
    sentences, compared = [], []
    for arm, other in pairs:
        classes = {name: _both(results, name, arm, other) for name in _by_urgency(results)}
        urgent, *rest = classes
        found = [
            Compared(arm, other, name, *one) for name, both in classes.items() for one in _compare(results, name, *both)
        ]
        compared += found
        by = {(one.class_name, one.what): one.numbers for one in found}
        quantiles = {name: by[urgent, f"{name}_ms"] for name in paired.QUANTILES if (urgent, f"{name}_ms") in by}
        parts = [
            f"{words.latencies(urgent, quantiles)}; {words.in_time(by[urgent, 'in_time'], scenario.targets[urgent])}"
        ]
        for name in rest:
            target = scenario.targets[name]
            in_time = "" if target is None else f", {words.in_time(by[name, 'in_time'], target)}"
            parts.append(f"{name} {words.rows(by[name, 'rows_per_s'])}{in_time}")
        sentences.append(f"Against {other}, {arm} {'; '.join(parts)}.")
    if not doubts.queued(results):
        sentences.append("No queue built up on any arm, so there was nothing that priority could have changed.")
    return Findings(tuple(sentences), tuple(compared))


def _by_urgency(results: Results) -> list[str]:
    """The loads that sent anything, the most urgent one first."""
    levels = results.scenario.levels
    sending = [load for load in results.scenario.loads if load.rate > 0]
    return [load.name for load in sorted(sending, key=lambda load: levels[load.of])]


def _both(results: Results, name: str, arm: str, other: str) -> tuple[paired.Rounds, paired.Rounds]:
    """A class's requests on two arms, in the rounds that both finished: those of ``other`` first."""
    rounds = [one for one in results.requests if arm in one and other in one]
    return [one[other][name] for one in rounds], [one[arm][name] for one in rounds]


def _compare(results: Results, name: str, before: paired.Rounds, after: paired.Rounds) -> list[tuple[str, Comparison]]:
    found = [(f"{key}_ms", one) for key, one in paired.compare_latency(before, after).items()]
    if sum(len(one.at_s) for one in after) < doubts.MIN_SAMPLES_FOR_P99:
        found = [(what, one) for what, one in found if what != "p99_ms"]
    found.append(("rows_per_s", paired.compare_rows(before, after)))
    found.append(("in_time", paired.compare_in_time(before, after, results.scenario.targets[name])))
    return found


def _incomparable(results: Results, pairs: Sequence[tuple[str, str]]) -> str | None:
    """Why there can be no verdict, or None."""
    if results.scenario.in_flight:
        return "closed loops have no latency that a load decides; what the way costs is in the table"
    if not pairs:
        return f"it takes a router's arm ({', '.join(JUDGED)}) and one without ({', '.join(AGAINST)})"
    for arm, other in pairs:
        both: Mapping[str, paired.Rounds] = dict(
            zip((other, arm), _both(results, _by_urgency(results)[0], arm, other), strict=True)
        )
        if not both[arm]:
            return f"no round has both {arm} and {other}"
        seconds = sum(block_count(one) for one in both[arm]) * BLOCK_SECONDS
        if seconds < LEAST_BLOCKS * BLOCK_SECONDS:
            return f"{seconds:g} s per arm are too short for one; it takes {LEAST_BLOCKS * BLOCK_SECONDS:g} s"
        for name, rounds in both.items():
            if late := doubts.too_late(results, name):
                return late
            if not sum(len(one.at_s) for one in rounds):
                return f"no request of class {_by_urgency(results)[0]} was sent"
    return None
