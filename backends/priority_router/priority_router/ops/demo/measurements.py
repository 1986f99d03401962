# SPDX-License-Identifier: Apache-2.0
"""What the demonstration measures, and what became of each request. Law: values, and pure arithmetic on ledgers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.stats import RoundSummary
from priority_router.ops.bench.wire import Outcome
from priority_router.ops.loads import BACKGROUND, ONLINE, ClassLoad

ONLINE_SHARE: Final = 0.2
BACKGROUND_SHARE: Final = 1.2
"""Of the measured capacity: 1.4 in all, so that background work piles up and online work has something to pass."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the executor can do on this machine when it never waits.

    Attributes:
        rows_per_s: rows answered per second, all through.
        busy: share of the time in which it computed.
        mean_batch: rows per execution.
    """

    rows_per_s: float
    busy: float
    mean_batch: float

    @property
    def ms_per_row(self) -> float:
        """Computing time per row."""
        return self.busy / self.rows_per_s * 1e3

    @property
    def offered(self) -> tuple[ClassLoad, ...]:
        """What each class asks for, in requests of one row."""
        return (
            ClassLoad(ONLINE, ONLINE_SHARE * self.rows_per_s),
            ClassLoad(BACKGROUND, BACKGROUND_SHARE * self.rows_per_s),
        )


@dataclass(frozen=True, slots=True)
class Classified:
    """One file's answer through the router, class online.

    Attributes:
        path: the file.
        label: the model's most likely type.
        score: its score, 0 to 1.
        queue_us: microseconds in the router.
        executor_us: microseconds in the executor.
    """

    path: Path
    label: str
    score: float
    queue_us: int
    executor_us: int


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """One class on one arm, the warm-up left out, in the order of time.

    Attributes:
        at_s: [n] when each was due, seconds from the end of the warm-up.
        latency_ms: [n] from then to its answer; infinite for what was refused, failed or had no answer in the end.
        answered_s: [m] when rows were answered while arrivals lasted, whenever they were due, seconds from the end of
            the warm-up; one entry per row, ascending.
        window_s: seconds for which arrivals counted.
    """

    at_s: NDArray[np.float64]
    latency_ms: NDArray[np.float64]
    answered_s: NDArray[np.float64]
    window_s: float

    @property
    def answered(self) -> NDArray[np.float64]:
        """The latencies of answered requests in ascending order, ms."""
        return np.sort(self.latency_ms[np.isfinite(self.latency_ms)])


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured.

    Attributes:
        capacity: the executor alone.
        arms: what the benchmark sums up, by the names of the arms in the order in which they ran.
        requests: every counted request, by arm and class.
        classified: files that were sent one by one.
    """

    capacity: Capacity
    arms: dict[str, RoundSummary]
    requests: dict[str, dict[str, Requests]]
    classified: list[Classified]


def by_class(ledger: Ledger, warmup_s: float) -> dict[str, Requests]:
    """The counted requests of a run, by class; they count as in `stats.summarise`.

    Args:
        ledger: of the whole run.
        warmup_s: seconds at the start to leave out.
    """
    begin = int(warmup_s * SECOND)
    success = ledger.outcome == Outcome.SUCCESS
    latency = np.where(success, (ledger.done - ledger.scheduled) / 1e6, np.inf)
    in_window = success & (ledger.done >= begin) & (ledger.done < ledger.duration)
    found = {}
    for index, name in enumerate(ledger.classes):
        own = ledger.class_index == index
        counted = own & (ledger.scheduled >= begin)
        ended = np.repeat(ledger.done[own & in_window], ledger.rows[own & in_window])
        found[name] = Requests(
            at_s=(ledger.scheduled[counted] - begin) / SECOND,
            latency_ms=latency[counted],
            answered_s=np.sort(ended - begin) / SECOND,
            window_s=(ledger.duration - begin) / SECOND,
        )
    return found


def ms_per_row(summary: RoundSummary) -> float | None:
    """Computing time per answered row; None where that is unknown."""
    rows_per_s = sum(one.rows_per_s for one in summary.classes.values())
    return summary.busy / rows_per_s * 1e3 if summary.busy is not None and rows_per_s else None
