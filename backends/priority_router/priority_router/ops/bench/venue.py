# SPDX-License-Identifier: Apache-2.0
"""Where arms are run: a server of its own for each arm and round, with the executor that the scenario describes.

A server lives for one arm and round: an overloaded arm leaves a backlog behind that no later one should pay for, and
idle servers would share the cores with the one that is measured.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from priority_router.ops.bench import executor_stats
from priority_router.ops.bench.arms import ARMS, EXECUTOR, Arm, routes, write_repository
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.traffic import Payloads
from priority_router.ops.bench.wire import Route
from priority_router.ops.server import Server


@dataclass(frozen=True, slots=True)
class Stage:
    """A server that is ready for one arm.

    Attributes:
        address: ``host:port`` of the front end that requests go to.
        routes: how each class is sent.
        executor: the model whose statistics count.
        triton: the server's version.
        outputs: outputs to ask for; empty asks for all.
        grpc: the address is that of a gRPC front end.
    """

    address: str
    routes: Mapping[str, Route]
    executor: str
    triton: str
    outputs: tuple[str, ...] = ()
    grpc: bool = False


class Venue(Protocol):
    """Where arms are run."""

    @property
    def url(self) -> str:
        """Of a server that is there anyway; empty where each arm has one of its own."""

    @property
    def payloads(self) -> Payloads:
        """The inputs of requests."""

    def refused(self, arms: Collection[str]) -> dict[str, str]:
        """Of some arms those that cannot be run here, and why."""

    def stage(self, arm: Arm) -> contextlib.AbstractContextManager[Stage]:
        """A server for one arm and round."""


@dataclass(frozen=True, slots=True)
class Models:
    """Which models of one's own are measured, as the command line says it.

    Attributes:
        url: of a server that is there; empty: the models are copied to a server for each arm.
        router: the router's folder or, with a URL, name; empty: its usual name.
        executor: with a URL the executor's name.
        input_data: file with requests; None: random ones.
        classes: the router's classes, most urgent first; empty: those of its policy or of the scenario.
        capacity: rows per second of the executor; None: measured first.
        limits: the limits of the policy are kept.
        seed: of random inputs.
        say: is told what happens.
    """

    url: str
    router: str
    executor: str
    input_data: Path | None
    classes: tuple[str, ...]
    capacity: float | None
    limits: bool
    seed: int
    say: Callable[[str], None]


def ones(rows: int) -> list[dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
    """The input of the sleeping executor."""
    return [{"X": np.ones((rows, 4), dtype=np.float32)}]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A server for each arm and round, with a sleeping executor.

    Attributes:
        scenario: whose executor and classes it has.
    """

    scenario: Scenario
    url: str = ""
    payloads: Payloads = field(default=ones)

    def refused(self, arms: Collection[str]) -> dict[str, str]:
        """Arms that call the executor themselves, where its batches are smaller than a request."""
        return too_large(self.scenario, arms)

    @contextlib.contextmanager
    def stage(self, arm: Arm) -> Iterator[Stage]:
        """Starts a server and ends it."""
        scenario = self.scenario
        with tempfile.TemporaryDirectory(prefix="priority-router-bench-") as folder:
            repository = Path(folder) / "models"
            repository.mkdir()
            shared = bool(scenario.direct)
            write_repository(repository, arm, scenario.executor, scenario.levels, shared, scenario.class_keys)
            with Server(repository, hooks=arm.hooks, log=Path(folder) / "server.log") as server:
                triton = executor_stats.get_json(server.http, "/v2")["version"]
                yield Stage(server.http, routes(arm, scenario.levels, scenario.direct), EXECUTOR, triton)


def too_large(scenario: Scenario, arms: Collection[str]) -> dict[str, str]:
    """Arms that call the executor themselves, where its batches are smaller than a request."""
    most = max((load.rows for load in scenario.loads), default=1)
    if most <= scenario.executor.max_batch_size:
        return {}
    reason = f"requests of {most} rows do not fit the executor's batches of {scenario.executor.max_batch_size}"
    return {name: f"{reason}, and only a router splits them" for name in arms if ARMS[name].mode is None}
