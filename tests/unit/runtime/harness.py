# SPDX-License-Identifier: Apache-2.0
"""A driver with a clock that tests move and queues that they can look into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from priority_router.config import RouterPolicy, parse_policy
from priority_router.runtime import parameters
from priority_router.runtime.driver import Driver
from priority_router.runtime.intake import Intake
from priority_router.runtime.log import Log
from priority_router.runtime.work import Answer, Call, Job, Tensors
from support.fake_triton import Request, Sender, Triton, rows
from support.policy_texts import a_class, a_policy


def policy(*, size: int = 4, instances: int = 1, top: str = "", online: str = "", bulk: str = "") -> RouterPolicy:
    """Classes online (level 1) and bulk (level 2); the strings are further lines of each table."""
    classes = (a_class("online", 1, online), a_class("bulk", 2, bulk))
    return parse_policy(a_policy(*classes, top=top, instances=instances, size=size))


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_ms(self, milliseconds: float) -> None:
        self.now += int(milliseconds * 1e6)


@dataclass
class Bench:
    """A driver under test; ``calls`` and ``answers`` are what came out of it so far."""

    policy: RouterPolicy
    triton: Triton = field(default_factory=Triton)
    clock: Clock = field(default_factory=Clock)
    calls: list[Call] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = Log(self.triton.Logger, "router", lambda: self.clock() / 1e9)
        self.driver = Driver(self.policy.scheduling, self.clock, self.calls.append, self.answers.append, self.log)
        self.intake = Intake(self.policy)

    def job(self, class_name: str = "online", count: int = 1, value: float = 0.0, **options: Any) -> Job:
        request = Request({"X": rows(count, value)}, parameters=f'{{"class": "{class_name}"}}', **options)
        job = Job(request.sender, self.clock())
        self.intake.fill(job, request, parameters.text(request))
        return job

    def submit(self, *jobs: Job) -> None:
        self.driver.submit(jobs)

    def complete(self, call: Call, error: Any = None) -> None:
        """The executor answers: Y is what X was, times two. A call that follows at once joins the others."""
        outputs: list[Tensors] | None = None
        if error is None:
            outputs = []
            for job, part in zip(call.jobs, call.dispatch.parts, strict=True):
                array = job.inputs[0][1][part.first_row : part.first_row + part.rows]
                outputs.append([("Y", array * 2)])
        following = self.driver.completed(call, 1_000_000, outputs, error)
        if following is not None:
            self.calls.append(following)

    def sender(self, job: Job) -> Sender:
        sender: Sender = job.sender
        return sender
