# SPDX-License-Identifier: Apache-2.0
"""A server that is there: what it offers, and its stage for each arm.

Such a server has one executor, so the arms that it offers are those of that executor's kind; the others are said to be
missing. Between two arms it is left alone until it has done what is still queued.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from priority_router.errors import SetupError
from priority_router.ops.bench import executor_stats, load, own_model
from priority_router.ops.bench.arms import ARMS, Arm
from priority_router.ops.bench.arrivals import recorded
from priority_router.ops.bench.load import GRPC, LoadError, Target
from priority_router.ops.bench.own_model import Facts
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.traffic import Payloads
from priority_router.ops.bench.venue import Stage
from priority_router.ops.bench.wire import Outcome, Route

SETTLE_SECONDS: Final = 300.0
"""For what an arm left queued, at most."""

_STILL_SECONDS: Final = 1.0

PayloadsOf = Callable[[Facts], Payloads]

ROUTED: Final[dict[bool, tuple[str, ...]]] = {True: ("router", "router-one-class"), False: ("router-plain",)}
"""The router's arms, by whether its executor has levels."""


def address(url: str) -> str:
    """The address of a URL, as `load.Target` takes it.

    Raises:
        SetupError: it is not one of HTTP or gRPC, or has more than host and port.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "grpc") or not parts.hostname or port is None or parts.path.strip("/"):
        raise SetupError(f"--url {url}: write http://HOST:PORT or grpc://HOST:PORT")
    return f"{GRPC if parts.scheme == 'grpc' else ''}{parts.netloc}"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server was found to have.

    Attributes:
        known: router and executor.
        triton: the server's version.
        refusal: what it says to a direct call of the executor; empty where it answers.
    """

    known: Facts
    triton: str
    refusal: str

    def arms(self) -> tuple[str, ...]:
        """The arms that it offers."""
        found: tuple[str, ...] = ()
        if not self.refusal:
            if not self.known.levels:
                found = ("flat",)
            elif self.known.router:
                # A router in levels mode does not load without the hooks.
                found = ("levels+hooks",)
            else:
                found = ("flat-levels", "levels")
        return (*found, *(ROUTED[bool(self.known.levels)] if self.known.router else ()))

    def missing(self, arm: str) -> str:
        """Why it has not an arm."""
        if ARMS[arm].mode is None and self.refusal:
            return f"the executor {self.known.executor} is closed to direct calls ({self.refusal})"
        if ARMS[arm].mode is not None and not self.known.router:
            return "the server has no router"
        kind = f"{self.known.levels} priority levels" if self.known.levels else "no priority levels"
        front = " and a router" if self.known.router else " and no router"
        return f"the server has an executor with {kind}{front}, which offers {', '.join(self.arms()) or 'none'}"


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that is there.

    Attributes:
        url: as the user wrote it.
        offer: what it has.
        scenario: whose classes are sent.
        payloads: the inputs of requests.
    """

    url: str
    offer: Offer
    scenario: Scenario
    payloads: Payloads = field(repr=False)

    def refused(self, arms: Collection[str]) -> dict[str, str]:
        """Arms that the server does not offer."""
        offered = self.offer.arms()
        return {name: self.offer.missing(name) for name in arms if name not in offered}

    @contextlib.contextmanager
    def stage(self, arm: Arm) -> Iterator[Stage]:
        """Waits until the server has done what is still queued."""
        known, to = self.offer.known, address(self.url)
        wait_until_still(to, known.executor, 2 * self.scenario.executor.full_batch_us / 1e6)
        yield Stage(to, routes(known, arm, self.scenario), known.executor, self.offer.triton)


def routes(known: Facts, arm: Arm, scenario: Scenario) -> dict[str, Route]:
    """How each class is sent on an arm."""
    lowest = max(scenario.levels, key=lambda name: scenario.levels[name])
    last = scenario.levels[lowest]
    made = {}
    for name, level in scenario.levels.items():
        if arm.mode is not None and name not in scenario.direct:
            made[name] = Route(known.router, class_name=lowest if arm.alike else name, batched=known.batched)
        else:
            marked = arm.executor_levels and not arm.alike and level < last
            made[name] = Route(known.executor, {"priority": level} if marked else None, batched=known.batched)
    return made


def look(url: str, router: str, executor: str, payloads_of: PayloadsOf) -> tuple[Offer, Payloads]:
    """Finds out what a server has.

    Args:
        url: of it.
        router: name of the router's model, which need not be there.
        executor: name of the executor's.
        payloads_of: makes the inputs of requests.

    Raises:
        SetupError: there is no such server, or no such executor.
    """
    to = address(url)
    try:
        triton = str(executor_stats.about(to, "ServerMetadata")["version"])
        config = executor_stats.about(to, "ModelConfig", executor)
    except LoadError as error:
        raise SetupError(f"{error}; name the server with --url and its executor with --executor") from error
    try:
        executor_stats.about(to, "ModelConfig", router)
    except LoadError:
        router = ""
    known = own_model.facts(router, executor, config)
    payloads = payloads_of(known)
    return Offer(known, triton, _refusal(to, known, payloads)), payloads


def _refusal(to: str, known: Facts, payloads: Payloads) -> str:
    """What the executor says to one direct request."""
    name = "x"
    target = Target(to, {name: Route(known.executor, batched=known.batched)}, payloads(1)[:1])
    schedule = recorded([name], [np.zeros(1)], [np.zeros(1, dtype=np.int64)], 0.01)
    with load.begin(target, schedule, grace_s=30.0) as running:
        ledger = running.result()
    if ledger.outcome[0] == Outcome.SUCCESS:
        return ""
    return next((text for _, text in ledger.failures), "no answer to it")


def wait_until_still(to: str, executor: str, batch_s: float) -> None:
    """Waits until an executor has nothing more to do: until none has ended for ``batch_s``, and a second at least.

    Raises:
        LoadError: it goes on for SETTLE_SECONDS.
    """
    give_up = time.monotonic() + SETTLE_SECONDS
    before = executor_stats.read(to, executor)
    while time.monotonic() < give_up:
        time.sleep(max(_STILL_SECONDS, batch_s))
        after = executor_stats.read(to, executor)
        if after.executions == before.executions:
            return
        before = after
    raise LoadError(f"{executor} on {to} is still at work after {SETTLE_SECONDS:g} s; is somebody else calling it?")
