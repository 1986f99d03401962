# SPDX-License-Identifier: Apache-2.0
"""The ledger of a run: what became of every request.

Law: values only; written by ``load``, read by ``stats``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND

_COLUMNS = ("class_index", "rows", "scheduled", "sent", "done", "outcome", "queue_us")


@dataclass(slots=True, eq=False)
class Ledger:
    """What became of every request. Times are ns from the start of the run; -1 where something never happened.

    Attributes:
        classes: class names; ``class_index`` points into them.
        class_index: [n] the request's class.
        rows: [n] rows in the request.
        scheduled: [n] when it was due.
        sent: [n] when its last byte was handed to the kernel.
        done: [n] when its reply was there.
        outcome: [n] codes of ``Outcome``.
        queue_us: [n] what the router said the request waited, in microseconds.
        failures: texts of what ended as OTHER, with their HTTP status (0: no reply), counted.
        duration: ns during which requests arrived.
        cpu_seconds: CPU time of the generator's processes while arrivals lasted.
        connections: connections opened.
        processes: generator processes.
    """

    classes: tuple[str, ...]
    class_index: NDArray[np.int64]
    rows: NDArray[np.int64]
    scheduled: NDArray[np.int64]
    sent: NDArray[np.int64]
    done: NDArray[np.int64]
    outcome: NDArray[np.int64]
    queue_us: NDArray[np.int64]
    failures: Counter[tuple[int, str]]
    duration: int
    cpu_seconds: float
    connections: int
    processes: int = 1

    def __len__(self) -> int:
        return len(self.scheduled)

    def lateness(self, quantile: float = 0.99) -> float:
        """Seconds by which requests were sent after they were due, at a quantile; 0 without requests."""
        late = (self.sent - self.scheduled)[self.sent >= 0]
        return float(np.quantile(late, quantile)) / SECOND if len(late) else 0.0

    @classmethod
    def merge(cls, parts: Sequence[Ledger]) -> Ledger:
        """One ledger from those of several processes, in scheduled order."""
        order = np.argsort(np.concatenate([part.scheduled for part in parts]), kind="stable")

        def column(name: str) -> NDArray[np.int64]:
            joined: NDArray[np.int64] = np.concatenate([getattr(part, name) for part in parts])[order]
            return joined

        return cls(
            classes=parts[0].classes,
            **{name: column(name) for name in _COLUMNS},
            failures=sum((part.failures for part in parts), Counter()),
            duration=parts[0].duration,
            cpu_seconds=sum(part.cpu_seconds for part in parts),
            connections=sum(part.connections for part in parts),
            processes=sum(part.processes for part in parts),
        )
