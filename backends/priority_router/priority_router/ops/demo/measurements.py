# SPDX-License-Identifier: Apache-2.0
"""What the demonstration measures. Law: values only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.ops.bench.requests import Requests
from priority_router.ops.bench.stats import RoundSummary
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


def ms_per_row(summary: RoundSummary) -> float | None:
    """Computing time per answered row; None where that is unknown."""
    rows_per_s = sum(one.rows_per_s for one in summary.classes.values())
    return summary.busy / rows_per_s * 1e3 if summary.busy is not None and rows_per_s else None
