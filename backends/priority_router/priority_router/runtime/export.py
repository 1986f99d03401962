# SPDX-License-Identifier: Apache-2.0
"""Numbers to Triton's metrics page.

Law: the only user of ``pb_utils.MetricFamily``; called by one thread, at most twice a second.

One call into the server costs 40 to 70 us, so only what changed is sent. For the same reason histograms are
exported as the counters that a histogram consists of (``_bucket`` with ``le``, ``_sum``, ``_count``): Triton's own kind
takes one call per observation, which at a thousand requests per second would cost a tenth of a core or force sampling.
To Prometheus both are the same: ``histogram_quantile(0.99, rate(priority_router_queue_seconds_bucket[5m]))`` works, and
is exact at any rate; only the ``# TYPE`` lines say counter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from priority_router.runtime.metrics import Family, Sample

_Key = tuple[str, tuple[tuple[str, str], ...]]


class Exporter:
    """Holds the metrics of one router."""

    def __init__(self, pb: Any, model: str) -> None:
        self._pb = pb
        self._model = model
        self._families: dict[str, Any] = {}
        self._metrics: dict[_Key, Any] = {}
        self._exported: dict[_Key, float] = {}
        self._gauges: set[_Key] = set()

    def flush(self, samples: Iterable[Sample]) -> None:
        """Sends what changed since the last flush; a metric appears with its first sample, at 0 if need be.

        A gauge without a sample goes back to 0: its class is gone.

        Raises:
            Exception: Triton's, when it does not take a number; the next flush sends that one and those after it.
        """
        ended = set(self._gauges)
        for family, labels, value in samples:
            key = (family.name, labels)
            ended.discard(key)
            metric = self._metrics.get(key)
            if metric is None:
                metric = self._metrics[key] = self._create(family, labels)
                self._exported[key] = 0
                if not family.counter:
                    self._gauges.add(key)
            change = value - self._exported[key]
            # Gauges, too, are moved by increments: `set` keeps the interpreter's lock for its whole round trip, and a
            # router that is being replaced shares its gauges with its successor, where both together are the truth.
            if change > 0 or (change < 0 and not family.counter):
                metric.increment(change)
                self._exported[key] = value
        for key in ended:
            if self._exported[key]:
                self._metrics[key].increment(-self._exported[key])
                self._exported[key] = 0

    def close(self) -> None:
        """Takes the gauges back to 0, and keeps the metrics for a successor.

        A router that is reloaded begins before its predecessor ends. Triton gives both the same counter behind equal
        names and labels, but counts its holders per family object: what one of them deletes the other goes on writing
        to, and the server's heap breaks. What was ever exported is therefore never deleted, a few KB per reload.

        Raises:
            Exception: Triton's, when it does not take a number; the rest is done all the same.
        """
        failure = None
        for key in self._gauges:
            try:
                if self._exported[key]:
                    self._metrics[key].increment(-self._exported[key])
            except Exception as error:  # noqa: BLE001 - raised below
                failure = error
        for family in self._families.values():
            # For good: the interpreter's end must not delete them either. A family holds its metrics.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(family))
        for held in (self._gauges, self._metrics, self._families):
            held.clear()
        if failure is not None:
            raise failure

    def _create(self, family: Family, labels: tuple[tuple[str, str], ...]) -> Any:
        made = self._families.get(family.name)
        if made is None:
            kind = self._pb.MetricFamily.COUNTER if family.counter else self._pb.MetricFamily.GAUGE
            made = self._families[family.name] = self._pb.MetricFamily(
                name=family.name, description=family.help, kind=kind
            )
        return made.Metric(labels={"model": self._model, **dict(labels)})
