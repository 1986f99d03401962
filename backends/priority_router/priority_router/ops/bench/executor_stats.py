# SPDX-License-Identifier: Apache-2.0
"""What Triton counted about a model: how long it computed, in how many executions, on how many rows."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from priority_router.core.values import MILLISECOND, SECOND
from priority_router.ops import http_json
from priority_router.ops.bench.load import GRPC, LoadError
from priority_router.ops.simulate.counted import Counters

_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    """Counters of one model at one moment.

    Attributes:
        at: monotonic ns when they were read.
        compute_ns: sum over executions; Triton's per-request sum counts a batch once for each of its requests.
        executions: batches run.
        rows: rows run.
        batches: executions by their rows.
        executed_ns: sum over executions by their rows, tensors in and out included.
    """

    at: int
    compute_ns: int
    executions: int
    rows: int
    batches: Mapping[int, int] = field(default_factory=dict)
    executed_ns: Mapping[int, int] = field(default_factory=dict)

    def busy_since(self, earlier: ExecutorStats, instances: int) -> float:
        """Share of the time between two readings in which the model computed, averaged over its instances."""
        return (self.compute_ns - earlier.compute_ns) / ((self.at - earlier.at) * instances)

    def mean_batch_since(self, earlier: ExecutorStats) -> float | None:
        """Rows per execution between two readings; None without an execution."""
        executions = self.executions - earlier.executions
        return (self.rows - earlier.rows) / executions if executions else None

    def batches_since(self, earlier: ExecutorStats) -> dict[str, int]:
        """Executions between two readings by their rows, fewest rows first; the rows as text, as JSON has keys."""
        counts = {rows: count - earlier.batches.get(rows, 0) for rows, count in sorted(self.batches.items())}
        return {str(rows): count for rows, count in counts.items() if count}

    def execution_ms_since(self, earlier: ExecutorStats) -> dict[str, float]:
        """Mean time of an execution between two readings by its rows, ms; the keys are those of `batches_since`."""
        return {
            rows: (self.executed_ns[int(rows)] - earlier.executed_ns.get(int(rows), 0)) / count / MILLISECOND
            for rows, count in self.batches_since(earlier).items()
        }


def read(address: str, model: str) -> ExecutorStats:
    """Asks a server for a model's statistics.

    Raises:
        LoadError: the server does not give them.
    """
    entry = about(address, "ModelStatistics", model)["model_stats"][0]
    batches = entry.get("batch_stats", [])
    counters = Counters.of(entry)
    return ExecutorStats(
        at=time.monotonic_ns(),
        compute_ns=sum(int(batch["compute_infer"].get("ns", 0)) for batch in batches),
        executions=int(entry.get("execution_count", 0)),
        rows=int(entry.get("inference_count", 0)),
        batches=counters.executions,
        executed_ns=counters.computed,
    )


_PATHS: Final = {
    "ServerMetadata": "/v2",
    "ModelConfig": "/v2/models/{}/config",
    "ModelStatistics": "/v2/models/{}/stats",
}


def about(address: str, what: str, model: str = "") -> Any:
    """What a server says of itself or of a model, by HTTP or, from a ``grpc://`` address, by gRPC.

    Args:
        address: see `load.Target`.
        what: ``ServerMetadata``, ``ModelConfig`` or ``ModelStatistics``.
        model: of the last two.

    Raises:
        LoadError: no answer, or an error.
    """
    if not address.startswith(GRPC):
        return get_json(address, _PATHS[what].format(model))
    import grpc

    from priority_router.ops.bench import grpc_wire

    try:
        answer = grpc_wire.ask(address.removeprefix(GRPC), what, model)
    except grpc.RpcError as error:
        said = f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
        raise LoadError(f"{address} {what} {model}: {said}") from error
    return answer["config"] if what == "ModelConfig" else answer


def get_json(address: str, path: str) -> Any:
    """A JSON document of the server's HTTP front end.

    Raises:
        LoadError: no answer, another status than 200, or no JSON.
    """
    with contextlib.closing(http.client.HTTPConnection(address, timeout=_TIMEOUT_SECONDS)) as connection:
        return http_json.get(connection, path, LoadError)


def over(address: str, model: str, begin: int, end: int) -> tuple[ExecutorStats, ExecutorStats]:
    """Waits for two monotonic times in ns and reads a model's statistics at each.

    Raises:
        LoadError: see `read`.
    """
    sleep_until(begin)
    before = read(address, model)
    sleep_until(end)
    return before, read(address, model)


def sleep_until(at: int) -> None:
    """Waits for a monotonic time in ns."""
    left = at - time.monotonic_ns()
    if left > 0:
        time.sleep(left / SECOND)
