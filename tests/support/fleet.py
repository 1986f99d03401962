# SPDX-License-Identifier: Apache-2.0
"""One server with several routers and executors, so that a test module starts one and not many."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from priority_router.core.values import SECOND
from priority_router.ops.server import Server
from priority_router.runtime.housekeeping import FLUSH_PERIOD

from support import clients, models
from support.server import running

MODES = ("levels", "plain")
FILLER = {"name": "filler", "level": 1}
"""A class, most urgent: it takes the place that the router may send ahead into Triton's queue."""
PATIENCE_SECONDS = 120.0
"""How long a test waits for something that normally takes milliseconds, or a second."""


@dataclass(frozen=True)
class Fleet:
    """A running server.

    Attributes:
        server: it.
        mode: of every router in it.
        records: what each executor ran, by its name.
        repository: its models.
        client: a gRPC client of it.
    """

    server: Server
    mode: str
    records: dict[str, models.Record]
    repository: Path
    client: clients.Client

    def metric(self, name: str, model: str = "router", **labels: str) -> float:
        """One sample of the metrics page."""
        return clients.router_metric(self.server.metrics, name, model, **labels)

    def held(self, model: str = "router") -> float:
        """See `clients.held_by_router`."""
        return clients.held_by_router(self.server.metrics, model)

    def rests(self, model: str = "router") -> None:
        """Waits until a router holds nothing by the page, which lags by half a second and may tell of another test."""
        eventually(lambda: self.held(model) == 0)

    def pending(self, executor: str = "executor") -> float:
        """See `clients.pending`."""
        return clients.pending(self.server.metrics, executor)

    def settled_outcomes(self, model: str = "router") -> dict[tuple[str, str], float]:
        """What `outcomes` says once the page, which lags, has caught up with what was answered before."""
        found = self.outcomes(model)
        while True:
            time.sleep(2.4 * FLUSH_PERIOD / SECOND)
            seen, found = found, self.outcomes(model)
            if found == seen:
                return found

    def outcomes(self, model: str = "router") -> dict[tuple[str, str], float]:
        """``(class, outcome)`` to count; what has not happened yet is 0."""
        found: dict[tuple[str, str], float] = defaultdict(float)
        for sample, value in clients.metrics(self.server.metrics).items():
            if sample.startswith("priority_router_requests_total{") and f'model="{model}"' in sample and value:
                labels = dict(pair.split("=") for pair in sample.partition("{")[2].rstrip("}").split(","))
                found[labels["class"].strip('"'), labels["outcome"].strip('"')] = value
        return found


@contextlib.contextmanager
def fleet(
    folder: Path,
    mode: str,
    routers: Sequence[tuple[models.Router, models.Executor]],
    *,
    more: Callable[[Path], object] | None = None,
    absent: Sequence[str] = (),
    faulty: Sequence[str] = (),
    **options: Any,
) -> Iterator[Fleet]:
    """Starts a server; at the end of the block no router in it may have failed, or lost a request.

    Args:
        folder: an empty folder.
        mode: for all routers; in plain mode executors get no levels, unless they bring their own batching block.
        routers: each with its executor; several may share one.
        more: adds further models to the repository.
        absent: executors that are not written.
        faulty: routers that may all the same.
        options: keyword arguments of `Server`.
    """
    repository = folder / "repository"
    repository.mkdir(parents=True)
    records: dict[str, models.Record] = {}
    for router, executor in routers:
        if mode == "plain" and executor.batching is None:
            executor = replace(executor, priority_levels=0)
        models.write_router(repository, replace(router, mode=mode), executor)
        if executor.name not in records and executor.name not in absent:
            records[executor.name] = models.write_executor(repository, executor)
    if more is not None:
        more(repository)
    with (
        running(repository, **{"hooks": mode == "levels", **options}) as server,
        clients.client(server.grpc, concurrency=128) as client,
    ):
        yield Fleet(server, mode, records, repository, client)
        assert _faults(server, faulty) == {}


def _faults(server: Server, faulty: Sequence[str]) -> dict[str, float]:
    """What the metrics page says of routers that may only be 0."""
    return {
        sample: value
        for sample, value in clients.metrics(server.metrics).items()
        if sample.startswith(("priority_router_unaccounted_requests{", "priority_router_scheduler_faults_total{"))
        and value
        and not any(f'model="{name}"' in sample for name in faulty)
    }


def eventually(what: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until something is true; fails where it does not become so in time."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)


@contextlib.contextmanager
def held_up(system: Fleet, router: str, executor: str) -> Iterator[list[Future[clients.Reply]]]:
    """While the block lasts the executor is busy, and what the router has sent ahead is not one of the test's.

    Args:
        system: where they are.
        router: with the class `FILLER`.
        executor: its executor, of one row.

    Yields:
        the calls that fill it.
    """
    record = system.records[executor]
    filler = clients.Call(tag=0, traffic_class="filler")
    for _ in range(models.LEARNED):  # so that it binds late: nothing more goes ahead
        assert system.client.infer(router, filler).ok
    system.rests(router)
    record.forget()
    with record.shut():
        futures = [system.client.send(router, filler)]
        eventually(lambda: record.held() == 1)
        futures.append(system.client.send(router, filler))
        eventually(lambda: system.metric("in_flight_rows", router) == 2)
        yield futures
