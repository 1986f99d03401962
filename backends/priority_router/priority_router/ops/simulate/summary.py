# SPDX-License-Identifier: Apache-2.0
"""What each class experienced, as percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from priority_router.core.values import MILLISECOND


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """Latencies of the answered requests of one class that arrived inside the window, arrival to answer, in ms.

    Attributes:
        count: answered requests.
        p50: median.
        p95: 95th percentile.
        p99: 99th percentile.
        worst: longest.
    """

    count: int
    p50: float
    p95: float
    p99: float
    worst: float


def percentile(ordered: Sequence[int], share: float) -> int:
    """Nearest-rank percentile of values in ascending order."""
    rank = max(1, -(-len(ordered) * round(share * 1000) // 1000))
    return ordered[rank - 1]


def summarize(
    arrived: Sequence[int], answered: Sequence[int], class_names: Sequence[str], window: tuple[int, int]
) -> dict[str, ClassSummary]:
    """Per class, the latencies of requests that arrived inside ``window`` (ns, end excluded) and were answered."""
    latencies: dict[str, list[int]] = {}
    for begin, end, name in zip(arrived, answered, class_names, strict=True):
        if end >= 0 and window[0] <= begin < window[1]:
            latencies.setdefault(name, []).append(end - begin)
    summaries = {}
    for name, values in latencies.items():
        values.sort()
        p50, p95, p99 = (percentile(values, share) / MILLISECOND for share in (0.50, 0.95, 0.99))
        summaries[name] = ClassSummary(len(values), p50, p95, p99, values[-1] / MILLISECOND)
    return summaries
