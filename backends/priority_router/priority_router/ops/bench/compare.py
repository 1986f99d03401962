# SPDX-License-Identifier: Apache-2.0
"""What changed from one result of the benchmark to another, and whether that can be said at all.

Law: pure; two results in, values out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from priority_router.ops.bench import doubts, paired
from priority_router.ops.bench.compare_file import (
    DEFINING,
    DURATIONS,
    LATENCIES,
    ArmRound,
    ClassRound,
    Result,
    ResultError,
)
from priority_router.ops.bench.details import ends, rounded
from priority_router.ops.bench.paired import Comparison, Finding, Interval
from priority_router.ops.bench.wire import Outcome

SCHEMA: Final = "priority-router-bench-compare/1"
"""Of the file; see `document.SCHEMA`."""

WORSE_IF: Final[Mapping[str, Finding | None]] = {
    **dict.fromkeys(LATENCIES, Finding.HIGHER),
    "rows_per_s": Finding.LOWER,
    "in_time": Finding.LOWER,
    "busy": None,
}
"""By number, which way is the worse one; None: neither."""

NEAR: Final = 0.05
"""As far as two measured capacities may lie apart, as a share, for the loads made of them to be taken for the same."""

_MODEL: Final = ("--model", "--executor", "--input-data")
_CHANCE: Final = 1 - paired.JUDGED_CONFIDENCE


@dataclass(frozen=True, slots=True)
class Change:
    """One number on one arm in both results.

    Attributes:
        arm: the arm.
        class_name: the class; empty for ``busy``.
        what: a key of WORSE_IF.
        numbers: means over the rounds, and the interval of their difference.
        ratio: later by earlier, with its interval; NaN where the earlier one is 0.
        judged: whether it counts as better or worse.
    """

    arm: str
    class_name: str
    what: str
    numbers: Comparison
    ratio: Interval
    judged: bool

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``changed``, ``no difference`` or ``unknown``."""
        finding = self.numbers.finding
        if finding in (Finding.SAME, Finding.UNKNOWN):
            return str(finding.value)
        bad = WORSE_IF[self.what]
        if bad is None or not self.judged:
            return "changed"
        return "worse" if finding is bad else "better"

    @property
    def factor(self) -> float:
        """By how much it is worse, if it is: 1.2 for a latency of 1.2 times and for a rate of 1 / 1.2 times."""
        before, after = self.numbers.before, self.numbers.after
        up = WORSE_IF[self.what] is Finding.HIGHER
        over, under = (after, before) if up else (before, after)
        return over / under if under else math.inf

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "arm": self.arm,
            "class": self.class_name or None,
            "what": self.what,
            "before": rounded(self.numbers.before),
            "after": rounded(self.numbers.after),
            "ratio": rounded(self.ratio.value),
            "ratio_interval": ends(self.ratio),
            "finding": self.numbers.finding.value,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class Ended:
    """How many requests of a class ended in one way, on one arm in both results.

    Attributes:
        arm: the arm.
        class_name: the class.
        outcome: its label.
        before: so many, of ``of_before``.
        after: so many, of ``of_after``.
        of_before: requests of the class in the earlier result.
        of_after: in the later one.
    """

    arm: str
    class_name: str
    outcome: str
    before: int
    after: int
    of_before: int
    of_after: int

    @property
    def worse(self) -> bool:
        """More failures than chance explains; other outcomes depend on each other and are told, not judged."""
        if self.outcome != Outcome.OTHER.label or not self.after:
            return False
        return _tail(self.after, self.before + self.after, self.of_after / (self.of_before + self.of_after)) < _CHANCE

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "arm": self.arm,
            "class": self.class_name,
            "outcome": self.outcome,
            "before": self.before,
            "after": self.after,
            "before_share": rounded(self.before / self.of_before) if self.of_before else None,
            "after_share": rounded(self.after / self.of_after) if self.of_after else None,
            "verdict": "worse" if self.worse else "told",
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """Two results beside each other.

    Attributes:
        warnings: what a reader must know before believing the rest.
        changes: every number that both have.
        outcomes: every way in which requests ended in either.
    """

    warnings: Sequence[str]
    changes: Sequence[Change]
    outcomes: Sequence[Ended]

    def fails(self, above: float) -> bool:
        """Whether anything became worse by more than this factor, or failed more often than chance explains."""
        worse = [one for one in self.changes if one.verdict == "worse" and one.factor > above]
        return bool(worse) or any(one.worse for one in self.outcomes)


def compare(before: Result, after: Result, only: Collection[str] = ()) -> Compared:
    """What changed from the earlier result to the later one.

    Args:
        before: the earlier result.
        after: the later one.
        only: arms that are compared; empty: all that both have.

    Raises:
        ResultError: they cannot be compared.
    """
    if reasons := list(_other(before, after)):
        raise ResultError(f"{before.name} and {after.name} cannot be compared: {'; '.join(reasons)}")
    missing = [name for name in only if name not in before.arms or name not in after.arms]
    arms = [name for name in before.arms if name in after.arms and (not only or name in only)]
    if missing or not arms:
        raise ResultError(
            f"{before.name} and {after.name} have not both {', '.join(missing) or 'the same arm'}: "
            f"{before.name} has {_listed(before.arms)}, {after.name} {_listed(after.arms)}"
        )
    warnings = list(_differences(before, after))
    changes: list[Change] = []
    outcomes: list[Ended] = []
    for name in arms:
        earlier, later = _of_arm(before, name), _of_arm(after, name)
        alike = before.seed == after.seed
        if alike:
            common = sorted(set(earlier) & set(later))
            if not common:
                warnings.append(f"{name}: no round of one seed is complete in both, so it is left out")
                continue
            earlier, later = ({at: one[at] for at in common} for one in (earlier, later))
        late = list(_late(name, before, earlier)) + list(_late(name, after, later))
        warnings += late
        both = list(earlier.values()), list(later.values())
        changes += _changes(name, *both, alike, judged=not late)
        outcomes += _outcomes(name, *both)
    return Compared(warnings, changes, outcomes)


def _of_arm(result: Result, name: str) -> dict[int, ArmRound]:
    return {number: finished[name] for number, finished in enumerate(result.rounds) if name in finished}


def _other(before: Result, after: Result) -> Iterator[str]:
    """Why two results cannot be compared."""
    own = before.option("--model") or before.server["url"]
    for key in DEFINING:
        one, other = before.scenario[key], after.scenario[key]
        if one != other and not (own and key in ("executor", "loads") and _near(one, other)):
            remedy = "; measure both with the same --capacity" if own and key in ("executor", "loads") else ""
            said = f" ({one} and {other})" if isinstance(one, str) and isinstance(other, str) else ""
            yield f"they have another {'scenario' if key == 'name' else key}{said}{remedy}"
    if before.server["kind"] != after.server["kind"]:
        yield f"the servers are of another kind ({before.server['kind']} and {after.server['kind']})"
    for option in _MODEL:
        if before.option(option) != after.option(option):
            yield f"they were measured with another {option} ({before.option(option)} and {after.option(option)})"
    for key in DURATIONS[:2]:
        one, other = before.scenario[key], after.scenario[key]
        if one != other and not before.scenario["in_flight"]:
            yield f"{key} is {one:g} and {other:g}, and what waits in a backlog waits longer the longer it lasts"


def _near(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same but for numbers that lie near each other."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_near, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= NEAR * max(abs(one), abs(other))
    return bool(one == other)


def _differences(before: Result, after: Result) -> Iterator[str]:
    """What may stand behind a change besides what was to be compared."""
    if before.seed != after.seed:
        yield f"the seeds differ ({before.seed} and {after.seed}): the arrivals are others, so intervals are wider"
    for key in ("executor", "loads"):
        if before.scenario[key] != after.scenario[key]:
            yield f"the {key} differ a little, as the capacity was measured anew; --capacity keeps them the same"
    for key in DURATIONS:
        one, other = before.scenario[key], after.scenario[key]
        if one != other:
            yield f"{key} is {one:g} and {other:g}"
    if before.cores != after.cores:
        yield f"the machines differ: {before.cores} and {after.cores} cores"
    if before.server["url"] != after.server["url"]:
        yield f"the servers differ: {before.server['url']} and {after.server['url']}"
    for key in sorted(before.versions.keys() | after.versions.keys()):
        one, other = (of.versions.get(key) or "unknown" for of in (before, after))
        if one != other:
            yield f"versions: {key} {one} and {other}"
    for result, arms in ((before, after.arms), (after, before.arms)):
        if alone := [name for name in result.arms if name not in arms]:
            yield f"only {result.name} has {_listed(alone)}"
        if result.interrupted:
            yield f"{result.name} was interrupted"
    one, other = (sum(map(bool, of.rounds)) for of in (before, after))
    if one != other:
        counted = "the first of them count" if before.seed == after.seed else "all of them count"
        yield f"{before.name} has {one} rounds and {after.name} {other}; {counted}"
    if min(one, other) == 1:
        yield "one round alone does not show how rounds differ, so small changes may be claimed that are none"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _late(name: str, result: Result, rounds: Mapping[int, ArmRound]) -> Iterator[str]:
    """Says so where the client was the bottleneck."""
    late = max(one.late_p99_ms for one in rounds.values())
    if late > doubts.late_limit_ms(result.executor):
        yield f"{name}: in {result.name} the client sent up to {late:.1f} ms late (p99), so nothing of it is judged"


def _changes(
    arm: str, before: Sequence[ArmRound], after: Sequence[ArmRound], alike: bool, judged: bool
) -> Iterator[Change]:
    for name in before[0].classes:
        both = [[one.classes[name] for one in rounds if name in one.classes] for rounds in (before, after)]
        if not all(both):
            continue
        for what in WORSE_IF:
            if what == "busy" or (what == "p99_ms" and _fewest(both) < doubts.MIN_SAMPLES_FOR_P99):
                continue
            earlier, later = ([one.numbers[what] for one in rounds] for rounds in both)
            if what in LATENCIES and not all(math.isfinite(one.value) for one in (*earlier, *later)):
                earlier, later = ([_answered(one) for one in rounds] for rounds in (earlier, later))
            yield Change(arm, name, what, *paired.compare_rounds(earlier, later, alike=alike), judged)
    busy = [[one.busy for one in rounds if one.busy is not None] for rounds in (before, after)]
    if all(busy):
        shares = [[_share(value, len(values)) for value in values] for values in busy]
        alike = alike and len(shares[0]) == len(shares[1])
        yield Change(arm, "", "busy", *paired.compare_rounds(*shares, alike=alike), judged)


def _answered(one: Interval) -> Interval:
    """Without an answer nothing is known of the number either."""
    return one if math.isfinite(one.value) else Interval(math.inf, -math.inf, math.inf)


def _share(value: float, rounds: int) -> Interval:
    """A number that comes without an interval; of one round alone nothing is known of how it varies."""
    return Interval(value, value, value) if rounds > 1 else Interval(value, -math.inf, math.inf)


def _fewest(both: Sequence[Sequence[ClassRound]]) -> int:
    return min(sum(one.outcomes[Outcome.SUCCESS.label] for one in rounds) for rounds in both)


def _outcomes(arm: str, before: Sequence[ArmRound], after: Sequence[ArmRound]) -> Iterator[Ended]:
    for name in before[0].classes:
        both = [[one.classes[name].outcomes for one in rounds if name in one.classes] for rounds in (before, after)]
        of_before, of_after = (sum(sum(one.values()) for one in rounds) for rounds in both)
        for outcome in Outcome:
            was, now = (sum(one[outcome.label] for one in rounds) for rounds in both)
            if was or now:
                yield Ended(arm, name, outcome.label, was, now, of_before, of_after)


def _tail(least: int, of: int, share: float) -> float:
    """Probability of at least so many of some independent trials that each succeed with a probability."""
    if share >= 1:
        return 1.0
    logs = (math.log(share), math.log1p(-share))
    terms = (
        math.exp(math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1) + k * logs[0] + (of - k) * logs[1])
        for k in range(least, of + 1)
    )
    return min(1.0, sum(terms))
