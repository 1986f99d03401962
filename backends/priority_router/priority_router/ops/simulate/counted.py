# SPDX-License-Identifier: Apache-2.0
"""What a server counts of an executor and its router: Triton's statistics, and the router's page of metrics.

Law: pure; what the server sent in, differences out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from priority_router.core.values import MICROSECOND

FEWEST: Final = 3
"""Occurrences from which their mean is believed."""

SPREAD: Final = 100
"""Samples that stand for a distribution."""

_METRIC: Final = re.compile(r"^priority_router_(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Counters:
    """What Triton has counted of the executor; sums in ns.

    Attributes:
        requests: answered by it, each a dispatch of a router or somebody else's.
        queue: that they waited in Triton's queue.
        executions: by rows of a batch.
        computed: time of these, by rows.
    """

    requests: int
    queue: int
    executions: Mapping[int, int]
    computed: Mapping[int, int]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Counters:
        """Reads an entry of ``model_stats``."""
        batches = {int(batch.get("batch_size", 1)): batch for batch in entry.get("batch_stats", ())}
        success = entry.get("inference_stats", {})

        def ns(of: Mapping[str, Any], what: str) -> int:
            return int(of.get(what, {}).get("ns", 0))

        return cls(
            int(success.get("success", {}).get("count", 0)),
            ns(success, "queue"),
            {rows: int(batch.get("compute_infer", {}).get("count", 0)) for rows, batch in batches.items()},
            {
                rows: sum(ns(batch, part) for part in ("compute_input", "compute_infer", "compute_output"))
                for rows, batch in batches.items()
            },
        )

    def since(self, earlier: Counters) -> Counters:
        """What happened between two readings."""
        executions = {rows: count - earlier.executions.get(rows, 0) for rows, count in self.executions.items()}
        return Counters(
            self.requests - earlier.requests,
            self.queue - earlier.queue,
            {rows: count for rows, count in executions.items() if count},
            {rows: self.computed[rows] - earlier.computed.get(rows, 0) for rows, count in executions.items() if count},
        )

    @property
    def means(self) -> dict[int, float]:
        """Mean time of an execution in microseconds, by rows."""
        return {rows: self.computed[rows] / count / MICROSECOND for rows, count in self.executions.items()}


@dataclass(frozen=True, slots=True)
class Page:
    """What a router's metrics say of its own ways.

    Attributes:
        hand_over: decisions that became an executor call within a bound in microseconds, by that bound.
        wake_ups: of the router's timer.
        lateness: of all of those together, in microseconds.
    """

    hand_over: Mapping[float, float]
    wake_ups: float
    lateness: float

    @classmethod
    def of(cls, text: str, model: str) -> Page:
        """Reads a page of metrics; what is not there is empty."""
        found: dict[tuple[str, str], float] = {}
        for name, labels, value in _METRIC.findall(text):
            held = dict(_LABEL.findall(labels))
            if held.get("model") == model:
                found[name, held.get("le", "")] = float(value)
        bounds = {le: value for (name, le), value in found.items() if name == "hand_over_seconds_bucket"}
        return cls(
            {1e6 * float(le.replace("+Inf", "inf")): value for le, value in bounds.items()},
            found.get(("timer_lateness_seconds_count", ""), 0.0),
            1e6 * found.get(("timer_lateness_seconds_sum", ""), 0.0),
        )

    def since(self, earlier: Page) -> Page:
        """What happened between two readings."""
        return Page(
            {bound: value - earlier.hand_over.get(bound, 0.0) for bound, value in self.hand_over.items()},
            self.wake_ups - earlier.wake_ups,
            self.lateness - earlier.lateness,
        )

    def plus(self, other: Page | None) -> Page:
        """Both together."""
        if other is None:
            return self
        bounds = {bound: value + other.hand_over.get(bound, 0.0) for bound, value in self.hand_over.items()}
        return Page(bounds, self.wake_ups + other.wake_ups, self.lateness + other.lateness)

    def hand_over_us(self) -> list[float]:
        """A hundred times from a decision to its call, evenly spread over those counted; none where none was."""
        bounds = sorted(self.hand_over)
        if not bounds or self.hand_over[bounds[-1]] < FEWEST:
            return []
        total = self.hand_over[bounds[-1]]
        found = []
        for place in range(SPREAD):
            wanted = (place + 0.5) / SPREAD * total
            at = next(index for index, bound in enumerate(bounds) if self.hand_over[bound] >= wanted)
            low, low_count = (bounds[at - 1], self.hand_over[bounds[at - 1]]) if at else (0.0, 0.0)
            high = bounds[at] if math.isfinite(bounds[at]) else low
            found.append(low + (high - low) * (wanted - low_count) / (self.hand_over[bounds[at]] - low_count))
        return found
