# SPDX-License-Identifier: Apache-2.0
"""What Triton counted about the steps of an ensemble: how long requests waited for each, and how long each computed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from priority_router.ops.bench.executor_stats import get_json

_COMPUTE = ("compute_input", "compute_infer", "compute_output")


@dataclass(frozen=True, slots=True)
class StepUse:
    """One model between two readings.

    Attributes:
        requests: answered.
        queue_ms: mean time of a request in Triton's queue in front of the model.
        compute_ms: mean time of the execution that a request was in, tensors in and out included.
        rows_per_execution: mean.
        busy: share of the time in which the model executed, one instance assumed.
    """

    requests: int
    queue_ms: float
    compute_ms: float
    rows_per_execution: float
    busy: float


@dataclass(frozen=True, slots=True)
class StepStats:
    """Counters of one model at one moment; `at` is monotonic ns, the sums are ns."""

    at: int
    requests: int
    rows: int
    executions: int
    queue: int
    compute: int
    executing: int

    def since(self, earlier: StepStats) -> StepUse | None:
        """What happened between two readings; None where nothing was answered."""
        requests, executions = self.requests - earlier.requests, self.executions - earlier.executions
        if not requests or not executions:
            return None
        return StepUse(
            requests,
            (self.queue - earlier.queue) / requests / 1e6,
            (self.compute - earlier.compute) / requests / 1e6,
            (self.rows - earlier.rows) / executions,
            (self.executing - earlier.executing) / (self.at - earlier.at),
        )


def read(address: str, model: str) -> StepStats:
    """Asks a server for a model's statistics.

    Raises:
        LoadError: the server does not give them.
    """
    entry = get_json(address, f"/v2/models/{model}/stats")["model_stats"][0]
    at = time.monotonic_ns()
    requests = entry["inference_stats"]
    return StepStats(
        at=at,
        requests=int(requests["success"]["count"]),
        rows=int(entry["inference_count"]),
        executions=int(entry["execution_count"]),
        queue=int(requests["queue"]["ns"]),
        compute=sum(int(requests[part]["ns"]) for part in _COMPUTE),
        executing=sum(int(batch[part]["ns"]) for batch in entry.get("batch_stats", ()) for part in _COMPUTE),
    )
