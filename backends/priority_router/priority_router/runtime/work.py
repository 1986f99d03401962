# SPDX-License-Identifier: Apache-2.0
"""What travels between the runtime's threads: one caller's request, one call of the executor, one answer.

Law: plain holders. A job belongs to the driver's lock until its answer is handed to a reply thread, which then owns it
alone; ``driver`` says at each hand-over who answers the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import Dispatch, Request
from priority_router.errors import RequestError

Array = NDArray[Any]
Tensors = Sequence[tuple[str, Array]]
"""Named arrays of one request or dispatch, ordered by name; the first axis is the batch where the model has one."""


class Wanted(NamedTuple):
    """The outputs one caller gets.

    Attributes:
        outputs: of the executor, as a set for look-up.
        queue: ROUTER_QUEUE_US, too.
        executor: ROUTER_EXECUTOR_US, too.
    """

    outputs: frozenset[str]
    queue: bool
    executor: bool


class Job:
    """One caller's request, from ``execute`` to its reply.

    Attributes:
        sender: Triton's response sender: takes exactly one response.
        class_name: as classified; None where classification failed.
        waits_in: class that it waits in: the same, unless the policy has changed and has it no longer.
        request: what the core was given; None for a request that never reached it.
        inputs: the caller's tensors, not CLASS; private copies.
        wanted: what the reply holds.
        arrived: when ``execute`` got it, ns.
        first_exec: when its first part went to the executor, ns; None until then.
        executor_ns: time its parts spent between exec and return, summed.
        pieces: the executor's outputs, one entry per part, in row order once complete.
        rows_sent: rows already sent to the executor.
        answered: the driver has decided how it ends; later results are dropped.
        polling: a cancel check is under way, until which no reply may leave.
        held_answer: the answer that a cancel check holds up.
        last_poll: when it was last asked whether it was cancelled, ns.
    """

    __slots__ = (
        "answered",
        "arrived",
        "class_name",
        "executor_ns",
        "first_exec",
        "held_answer",
        "inputs",
        "last_poll",
        "pieces",
        "polling",
        "request",
        "rows_sent",
        "sender",
        "waits_in",
        "wanted",
    )

    def __init__(self, sender: Any, arrived: int) -> None:
        self.sender = sender
        self.arrived = arrived
        self.class_name: str | None = None
        self.waits_in = ""
        self.request: Request | None = None
        self.inputs: Tensors = ()
        self.wanted = Wanted(frozenset(), queue=False, executor=False)
        self.first_exec: int | None = None
        self.executor_ns = 0
        self.pieces: list[tuple[int, Tensors]] = []
        self.rows_sent = 0
        self.answered = False
        self.polling = False
        self.held_answer: Answer | None = None
        self.last_poll = arrived

    @property
    def rows(self) -> int:
        """Length of the batch axis; 1 where there is none."""
        return self.request.rows if self.request is not None else 1


class Call(NamedTuple):
    """One call of the executor: a dispatch and, part by part, whose rows it holds.

    ``epoch`` tells the driver whether the scheduler that decided it still decides, ``decided`` when that was, ns.
    """

    dispatch: Dispatch
    jobs: Sequence[Job]
    epoch: int
    decided: int


class Answer(NamedTuple):
    """How one job ends; ``error`` is None when ``job.pieces`` holds every row."""

    job: Job
    error: RequestError | None


class Alive(NamedTuple):
    """The answer to whoever only asked whether the router lives (``liveness``)."""

    sender: Any


def timing(nanoseconds: int, rows: int, batched: bool) -> Array:
    """A timing output: microseconds, int64, one value per row: ``[rows, 1]``, or ``[1]`` without a batch axis."""
    values = [nanoseconds // 1000] * rows
    return np.array([[value] for value in values] if batched else values, dtype=np.int64)
