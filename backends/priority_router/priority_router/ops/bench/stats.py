# SPDX-License-Identifier: Apache-2.0
"""From ledgers to numbers: per class and round, then over rounds.

Law: pure arithmetic on ledgers. A quantile is a latency that was seen (nearest rank), never one between two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.wire import Outcome

QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """One class in one round on one arm, the warm-up left out.

    Attributes:
        outcomes: requests scheduled in the window, by how they ended.
        latency: of successes, ms from the scheduled time, by the names in ``QUANTILES``; empty without successes.
        rows_per_s: rows answered while arrivals lasted, per second.
        queue_ms: the router's own queue time of successes, by the same names; empty where it was not read.
    """

    outcomes: dict[str, int]
    latency: dict[str, float]
    rows_per_s: float
    queue_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """One round on one arm.

    Attributes:
        window_s: seconds of arrivals that count, the warm-up left out.
        classes: by class name.
        busy: share of the window in which the executor computed, averaged over its instances; None if unknown.
        mean_batch: rows per execution of the executor in the window; None if unknown.
        late_p99_ms: how late the generator sent, 99th percentile.
        client_cpu: generator's CPU time over the run in cores.
        connections: connections the generator opened.
        failures: error texts of outcome ``other``, most frequent first, with HTTP status and count.
        batches: executions of the executor in the window by their rows; empty if unknown.
        late_max_ms: how late the generator sent at worst.
        processes: generator processes.
        execution_ms: mean time of an execution by its rows, tensors in and out included; keys as in ``batches``.
    """

    window_s: float
    classes: dict[str, ClassSummary]
    busy: float | None
    mean_batch: float | None
    late_p99_ms: float
    client_cpu: float
    connections: int
    failures: list[dict[str, int | str]]
    batches: dict[str, int] = field(default_factory=dict)
    late_max_ms: float = 0.0
    processes: int = 1
    execution_ms: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The summary as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Spread:
    """A value over rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Spread:
        """Median, smallest and largest of at least one value."""
        return cls(float(np.median(values)), float(min(values)), float(max(values)))


def errors_among(outcomes: Mapping[str, int]) -> int:
    """Requests that were answered, but with an error, among outcomes by label."""
    return sum(outcomes.values()) - outcomes[Outcome.SUCCESS.label] - outcomes[Outcome.UNANSWERED.label]


def summarise(
    ledger: Ledger,
    warmup_s: float = 0.0,
    busy: float | None = None,
    mean_batch: float | None = None,
    batches: Mapping[str, int] | None = None,
    execution_ms: Mapping[str, float] | None = None,
) -> RoundSummary:
    """Sums a round up.

    A request counts where it was scheduled: those of the warm-up are left out even if they end later. Rows count where
    they end: those answered between the end of the warm-up and the end of arrivals.

    Args:
        ledger: of the whole run.
        warmup_s: seconds at the start to leave out.
        busy: executor busy share in the window, where measured.
        mean_batch: rows per execution in the window, where measured.
        batches: executions in the window by their rows, where measured.
        execution_ms: their mean times, likewise.
    """
    begin = int(warmup_s * SECOND)
    window_s = (ledger.duration - begin) / SECOND
    counted = ledger.scheduled >= begin
    success = ledger.outcome == Outcome.SUCCESS
    answered = success & (ledger.done >= begin) & (ledger.done < ledger.duration)
    latency_ms = (ledger.done - ledger.scheduled) / 1e6
    classes = {}
    for index, name in enumerate(ledger.classes):
        own = ledger.class_index == index
        of_class = counted & own
        waited = ledger.queue_us[of_class & success & (ledger.queue_us >= 0)]
        classes[name] = ClassSummary(
            outcomes={outcome.label: int(np.count_nonzero(ledger.outcome[of_class] == outcome)) for outcome in Outcome},
            latency=_quantiles(latency_ms[of_class & success]),
            rows_per_s=float(ledger.rows[answered & own].sum()) / window_s,
            queue_ms=_quantiles(waited / 1e3),
        )
    return RoundSummary(
        window_s=window_s,
        classes=classes,
        busy=busy,
        mean_batch=mean_batch,
        late_p99_ms=ledger.lateness() * 1e3,
        client_cpu=ledger.cpu_seconds / (ledger.duration / SECOND),
        connections=ledger.connections,
        failures=[
            {"status": status, "text": text, "count": count}
            for (status, text), count in ledger.failures.most_common(20)
        ],
        batches=dict(batches or {}),
        late_max_ms=ledger.lateness(1.0) * 1e3,
        processes=ledger.processes,
        execution_ms=dict(execution_ms or {}),
    )


def _quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    if not len(values):
        return {}
    found = np.quantile(values, list(QUANTILES.values()), method="inverted_cdf")
    return {name: float(value) for name, value in zip(QUANTILES, found, strict=True)}
