# SPDX-License-Identifier: Apache-2.0
"""What the client can send, known before a load is run: the rate of one process against an endpoint that does nothing.

It is measured in open loop, on the path of a run, on the machine of the run while no server is there. Beside a server
on the same cores a client has less.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from priority_router.core.values import SECOND
from priority_router.ops.bench import idle_endpoint, load
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.load import LoadError, Target
from priority_router.ops.bench.wire import Outcome, Route, Tensor

RATE_OF_A_PROCESS: Final = 4000.0
"""Requests per second that one client process sends without being late beside a server on two cores."""

RATE_OF_A_GRPC_PROCESS: Final = 1000.0
"""Likewise by gRPC, whose Python client has threads and takes a multiple of the CPU time for each request."""

MOST_CPU: Final = 0.8
"""Of a core, by a generator process in open loop: one that is busier has no time left for what comes at once."""

_REQUESTS: Final = 8000
_LEAST_REQUESTS: Final = 40
_BYTES: Final = 1 << 28
"""What is sent at most, so that large requests take no longer."""


@dataclass(frozen=True, slots=True)
class Top:
    """What one process did that had nothing to wait for.

    Attributes:
        rate: answered requests per second.
        cpu: cores that it used; much less than 1 and something else was the limit, so that it could do more.
    """

    rate: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Client:
    """The client of a run and what is asked of it.

    Attributes:
        grpc: requests go by gRPC, for which there is no endpoint that does nothing.
        top: of one process; None where it was not measured.
        processes: of the client.
        cores: that it may use.
        asked: requests per second of the load; None in a closed loop.
        peak: those of its busiest second.
    """

    grpc: bool
    top: Top | None
    processes: int
    cores: int
    asked: float | None = None
    peak: float | None = None

    @property
    def reach(self) -> float:
        """Requests per second that the client can send in time."""
        return of_a_process(self.top, self.grpc) * min(self.processes, self.cores)

    def too_much(self) -> str | None:
        """Says so when the load is more than the client can send."""
        if self.peak is None or self.peak <= self.reach:
            return None
        return (
            f"the load asks up to {self.peak:.0f} requests/s, more than the {self.reach:.0f} that a client of "
            f"{processes_text(self.processes)} can send on {self.cores} cores, so latencies may be the client's own"
        )

    def words(self) -> str:
        """What it can do and what is asked of it."""
        if self.top is not None:
            said = f"alone one process sends {self.top.rate:.0f} requests/s with {self.top.cpu:.0%} of a core"
        else:
            said = (
                f"one process is taken to send {of_a_process(None, self.grpc):.0f} requests/s, which was not measured"
            )
        if self.asked is None or self.peak is None:
            return said
        return f"{said}; this load asks {self.asked:.0f}, up to {self.peak:.0f} in a second"

    def as_json(self, used: float | None) -> dict[str, Any]:
        """Plain values; ``used``: cores that the client used on any arm at most."""
        return {
            "protocol": "grpc" if self.grpc else "http",
            "processes": self.processes,
            "cpu": used,
            "top_rate": self.top and round(self.top.rate, 1),
            "top_cpu": self.top and round(self.top.cpu, 3),
            "reach_rate": round(self.reach, 1),
            "asked_rate": self.asked and round(self.asked, 2),
            "peak_rate": self.peak,
        }


def processes_text(count: int) -> str:
    """A number of processes in words."""
    return f"{count} process{'' if count == 1 else 'es'}"


def of_a_process(top: Top | None, grpc: bool) -> float:
    """Requests per second that a process can send in time: the measured rate with some time left, or the usual one."""
    if top is None:
        return RATE_OF_A_GRPC_PROCESS if grpc else RATE_OF_A_PROCESS
    return MOST_CPU * top.rate


def planned(schedule: Schedule | None, top: Top | None, *, grpc: bool, processes: int = 0) -> Client:
    """The client for a load.

    Args:
        schedule: of a round; None for a closed loop, which has one process.
        top: what one process can do, where that was measured.
        grpc: requests go by gRPC.
        processes: that were asked for; 0 = as many as the load needs.
    """
    cores = len(os.sched_getaffinity(0))
    if schedule is None:
        return Client(grpc, top, 1, cores)
    asked = len(schedule) / (schedule.duration / SECOND)
    peak = float(np.bincount(schedule.at // SECOND, minlength=1).max())
    usual = RATE_OF_A_GRPC_PROCESS if grpc else RATE_OF_A_PROCESS
    needed = math.ceil(asked / min(usual, of_a_process(top, grpc)))
    return Client(grpc, top, processes or max(1, needed), cores, asked, max(peak, asked))


def measured(inputs: Mapping[str, Tensor]) -> Top:
    """Has one process send as fast as it can to an endpoint that does nothing.

    Args:
        inputs: of the requests.

    Raises:
        LoadError: the endpoint or the process failed.
    """
    size = sum(array.nbytes for array in inputs.values())
    count = max(_LEAST_REQUESTS, min(_REQUESTS, _BYTES // max(1, size)))
    at_once = np.zeros(count, np.int64)
    all_of_them = Schedule(("one",), at_once, at_once, at_once, SECOND // 1000)
    with idle_endpoint.serving() as address:
        target = Target(address, {"one": Route("idle", batched=False)}, [inputs])
        with load.begin(target, all_of_them, grace_s=30.0, queue_time=True) as running:
            ledger = running.result()
    return of_ledger(ledger)


def of_ledger(ledger: Ledger) -> Top:
    """What a process did whose requests were all due at once, the first quarter left out, which had to connect.

    Time counts from a request being sent to the last reply, so that what is sent first and answered later is no gain.

    Raises:
        LoadError: a request was not answered.
    """
    if (ledger.outcome != Outcome.SUCCESS).any():
        reason = next((text for _, text in ledger.failures), "not all requests were answered")
        raise LoadError(f"the client's own rate could not be measured: {reason}")
    first = len(ledger) // 4
    rate = (len(ledger) - first) / ((ledger.done.max() - np.sort(ledger.sent)[first]) / SECOND)
    return Top(float(rate), float(ledger.cpu_seconds / (ledger.sent.max() / SECOND)))
