# SPDX-License-Identifier: Apache-2.0
"""What became of each request, by class: what intervals and verdicts are made of. Law: pure arithmetic on ledgers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.wire import Outcome


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

    def successes(self) -> Requests:
        """Those that were answered."""
        kept = np.isfinite(self.latency_ms)
        return replace(self, at_s=self.at_s[kept], latency_ms=self.latency_ms[kept])


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
