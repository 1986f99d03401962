# SPDX-License-Identifier: Apache-2.0
"""Puts the runtime together: threads, queues, and what runs beside the requests.

Law: wiring. Threads: Triton's own calls ``execute``; ``executor_threads`` call the executor; ``REPLY_THREADS`` send
replies; one timer; one asks for cancels; one keeps house (metrics, drain order, hook watch); one watches the policy.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from priority_router.config import RouterPolicy
from priority_router.control import (
    CALLS_PER_INSTANCE,
    LATE_BOUND_CALLS_PER_INSTANCE,
    REPLY_THREADS,
    WRITTEN_OFF_LIMIT,
    RouterChannel,
)
from priority_router.errors import InternalFault, RequestError
from priority_router.hooks import HookCounters
from priority_router.runtime import liveness, metrics, parameters, threads
from priority_router.runtime.audit import Received
from priority_router.runtime.cancels import Cancels
from priority_router.runtime.driver import Driver
from priority_router.runtime.executor import Executor
from priority_router.runtime.export import Exporter
from priority_router.runtime.housekeeping import Housekeeping, Sources
from priority_router.runtime.intake import Intake
from priority_router.runtime.log import Log
from priority_router.runtime.policy_watch import PolicyFile, PolicyWatch
from priority_router.runtime.replies import Replies
from priority_router.runtime.translate import ErrorCodes
from priority_router.runtime.work import Alive, Answer, Call, Job

SWITCH_INTERVAL_SECONDS: Final = 0.0005
"""A 5 ms timer woke 5.3 ms late beside a busy thread at the default of 5 ms, 0.7 ms late with this."""

STOP_SECONDS: Final = 2.0
"""Per thread; only one that is stuck in a call takes longer, and it does not keep the process alive."""


@dataclass(frozen=True)
class Surroundings:
    """What a router is given besides its policy.

    Attributes:
        model: the router's own name.
        hooks: the hooks' counters; None where there are none to read.
        guard_active: clients cannot call the executor.
        channel: where ``serve`` gives the order to drain; None without ``serve``.
        server_restarts: by ``serve``, so far.
        policy_file: of the policy, to be watched for changes; None where it is not.
    """

    model: str
    hooks: HookCounters | None = None
    guard_active: bool = False
    channel: RouterChannel | None = None
    server_restarts: int = 0
    policy_file: PolicyFile | None = None


def executor_threads(policy: RouterPolicy) -> int:
    """Threads that call the executor: for what may be in flight, and for what may be lost in calls given up."""
    shared = policy.scheduling.shared_executor
    per_instance = CALLS_PER_INSTANCE if shared else LATE_BOUND_CALLS_PER_INSTANCE
    return per_instance * policy.scheduling.instances + WRITTEN_OFF_LIMIT


class Router:
    """One router model, from ``initialize`` to ``finalize``."""

    def __init__(
        self, pb: Any, policy: RouterPolicy, surroundings: Surroundings, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """Starts the threads.

        Args:
            pb: Triton's Python API.
            policy: checked.
            surroundings: see there.
            clock: monotonic ns.
        """
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
        self._clock = clock
        self._log = log = Log(pb.Logger, surroundings.model)
        self._guard_active = surroundings.guard_active
        self._server_restarts = surroundings.server_restarts
        self._received = Received()
        self._lateness = metrics.Lateness()
        self._calls: threads.Crew[Call] = threads.Crew("executor call", log)
        self._answers: threads.Crew[Answer | Alive] = threads.Crew("reply", log)

        codes = ErrorCodes(pb.TritonError)
        classes = [traffic_class.name for traffic_class in policy.scheduling.classes]
        self._tallies = tallies = [metrics.Tally(classes) for _ in range(REPLY_THREADS)]
        self._returned = metrics.Tally(classes)
        self._driver = Driver(policy.scheduling, clock, self._calls.put, self._answers.put, log)
        self._intake = Intake(policy)
        self._executor = Executor(pb, policy, self._driver, codes, clock, log)
        self._cancels = Cancels(self._driver, clock, log)
        self._driver.on_send = self._cancels.dispatched
        file = surroundings.policy_file
        self._policy_watch = None if file is None else PolicyWatch(file, policy, self._adopt, log)
        sources = Sources(
            [*tallies, self._returned],
            self._counters,
            self._received,
            lambda: self._executor.levels_sent,
            lambda: dict(self._intake.capped),
        )
        self._housekeeping = Housekeeping(
            self._driver,
            sources,
            Exporter(pb, surroundings.model),
            surroundings.hooks,
            policy.scheduling.levels,
            surroundings.channel,
            clock,
            log,
        )
        self._replies = replies = Replies(pb, codes, policy.scheduling.max_batch_size > 0, log)

        self._loops: list[threading.Thread] = []
        try:
            self._calls.start([self._executor.serve] * executor_threads(policy))
            self._answers.start([functools.partial(replies.send, tally=tally) for tally in tallies])
            loops = {"timer": self._run_timer, "cancels": self._cancels.run, "housekeeping": self._housekeeping.run}
            if self._policy_watch is not None:
                loops["policy"] = self._policy_watch.run
            for name, loop in loops.items():
                self._loops.append(threads.start(name, loop))
        except BaseException:
            self.close()
            raise

    def execute(self, requests: Sequence[Any]) -> list[Any] | None:
        """Takes in one call of Triton's; never blocks, never raises.

        Every request is answered once, by a reply thread later: those that cannot be read at once, the others when the
        driver finishes them. Only one without a sender cannot be left to them.

        Returns:
            None as a rule; otherwise one entry per request, with the response to each that has no sender.
        """
        now = self._clock()
        jobs = []
        returned: dict[int, Any] = {}
        for index, request in enumerate(requests):
            job, begun = None, False
            # Triton takes an exception for the answer to the whole call, also to what is in other threads' hands.
            try:
                job = Job(request.get_response_sender(), now)
                given = parameters.text(request)
                if liveness.asked(given):
                    self._answers.put(Alive(job.sender))
                    continue
                self._received.begun += 1
                begun = True
                self._intake.fill(job, request, given)
                jobs.append(job)
            except Exception as fault:  # noqa: BLE001 - its caller is answered, its neighbours are not disturbed
                error = self._intake_error(fault)
                self._received.begun += not begun
                if job is not None:
                    self._answers.put(Answer(job, error))
                else:
                    returned[index] = self._replies.without_sender(error, self._returned)
                self._received.turned_away += 1
        if jobs:
            # They are the driver's now, also when it fails on its way out: it gives up calls without an answer.
            with self._log.caught("submitting requests failed"):
                self._driver.submit(jobs)
        self._received.ended = self._received.begun
        return [returned.get(index) for index in range(len(requests))] if returned else None

    def close(self) -> None:
        """Stops every thread; Triton calls ``finalize`` only after every request was answered."""
        self._driver.alarm.stop()
        self._cancels.stop()
        self._housekeeping.stop()
        if self._policy_watch is not None:
            self._policy_watch.stop()
        for thread in self._loops:
            thread.join(STOP_SECONDS)
        called = self._calls.stop(STOP_SECONDS)
        answered = self._answers.stop(STOP_SECONDS) and not any(thread.is_alive() for thread in self._loops)
        if not (called and answered):
            self._log.warning("a thread is still in a call to Triton and is left behind")
        # A call of the executor may hang because of the executor; everything else asks the server itself.
        self._housekeeping.close(server_answers=answered)

    def _intake_error(self, fault: Exception) -> RequestError:
        if isinstance(fault, RequestError):
            return fault
        self._log.exception("intake", "reading a request failed", fault)
        return InternalFault("the request could not be read")

    def _adopt(self, policy: RouterPolicy) -> Mapping[str, int]:
        """Another policy takes effect: whatever counts or decides knows its classes before requests can name them."""
        names = [traffic_class.name for traffic_class in policy.scheduling.classes]
        for tally in reversed((*self._tallies, self._returned)):  # the labels of the first are those that are read
            tally.adopt(names)
        moved = self._driver.adopt(policy.scheduling, policy.default_class)
        self._intake.adopt(policy)
        return moved

    def _run_timer(self) -> None:
        while (late := self._driver.alarm.wait()) is not None:
            self._lateness.add(late, self._clock())
            with self._log.caught("acting on the timer failed"):
                self._driver.tick()

    def _counters(self) -> Mapping[metrics.Family, float]:
        return {
            metrics.UNKNOWN_CLASS: self._intake.unknown_classes,
            metrics.DISPATCHES: self._driver.sent,
            metrics.DISPATCHED_ROWS: self._driver.sent_rows,
            metrics.FAULTS: self._driver.faults,
            metrics.LATENESS_COUNT: self._lateness.count,
            metrics.LATENESS_SUM: self._lateness.total / 1e9,
            metrics.LATENESS_WORST: self._lateness.worst(self._clock()) / 1e9,
            metrics.CANCEL_CHECKS: self._cancels.checks,
            metrics.POLICY_RELOADS: self._policy_watch.reloads if self._policy_watch is not None else 0,
            metrics.POLICY_INVALID: self._policy_watch is not None and self._policy_watch.invalid,
            metrics.SERVER_RESTARTS: self._server_restarts,
            metrics.GUARD_ACTIVE: self._guard_active,
        }
