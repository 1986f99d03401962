# SPDX-License-Identifier: Apache-2.0
"""The load generator: replays a schedule against a server from processes of its own and keeps a ledger.

Latency counts from the scheduled time, so a slow server cannot slow its own measurement down (no coordinated omission);
a generator that cannot keep the schedule shows in ``Ledger.lateness``.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priority_router.core.values import SECOND
from priority_router.errors import PriorityRouterError
from priority_router.interface import QUEUE_OUTPUT
from priority_router.ops.bench import wire
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.client import Patience, closed_loop, open_loop, raise_descriptor_limit
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.target import GRPC as GRPC
from priority_router.ops.bench.target import Target as Target
from priority_router.ops.bench.target import Variant as Variant
from priority_router.ops.bench.wire import Outcome

# Between the last process being ready and the first arrival: time for the parent to tell all of them.
_LEAD_NS = SECOND // 5
_READY_SECONDS = 60.0
_IDS_PER_PROCESS = 10**12


class LoadError(PriorityRouterError):
    """The load could not be generated; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """What one generator process is to do."""

    target: Target
    schedule: Schedule
    settle: tuple[str, ...] = ()
    grace: int = 0
    in_flight: int = 0
    queue_time: bool = False
    first_id: int = 0


class _Requests(Sequence[bytes]):
    """The requests of a schedule, each with its own id where there is a place for one.

    After the last one comes the first again, with an id of its own.
    """

    def __init__(self, job: _Job) -> None:
        target, schedule = job.target, job.schedule
        choices = [target.choices(name) for name in schedule.classes]
        encoded = [target.encoded(name, identified=job.queue_time) for name in schedule.classes]
        # A payload may hold what looks like the place of an id.
        self._parts = [
            [one.partition(wire.ID_PLACE) if job.queue_time else (one, b"", b"") for one in of_class]
            for of_class in encoded
        ]
        self._chosen: list[tuple[int, int]] = list(
            zip(schedule.class_index.tolist(), schedule.payload.tolist(), strict=True)
        )
        self._first = job.first_id
        self._patience = [[int(one.patience_s * SECOND) for one in of_class] for of_class in choices]
        self._answers = [[one.answer for one in of_class] for of_class in choices]

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, index: Any) -> Any:
        of_class, place = self._chosen[index % len(self._chosen)]
        head, mark, tail = self._parts[of_class][place]
        return head + self.id_of(index) + tail if mark else head

    def id_of(self, index: int) -> bytes:
        """The id of a request."""
        return b"%016d" % (self._first + index)

    @property
    def patience(self) -> Patience | None:
        """How long their callers wait; None where all do for ever."""
        return self._patience_of if any(map(any, self._patience)) else None

    def answer_to(self, index: int) -> bytes:
        """What a right answer to a request holds."""
        of_class, place = self._chosen[index % len(self._chosen)]
        return self._answers[of_class][place]

    def _patience_of(self, index: int) -> int:
        of_class, place = self._chosen[index % len(self._chosen)]
        return self._patience[of_class][place]


@dataclass(slots=True)
class _Record:
    """A ledger while it is being written, in lists because single items are written to them fastest."""

    target: Target
    queue_time: bool
    requests: _Requests
    sent: list[int] = field(default_factory=list)
    done: dict[int, int] = field(default_factory=dict)
    outcome: dict[int, Outcome] = field(default_factory=dict)
    queue_us: dict[int, int] = field(default_factory=dict)
    failures: Counter[tuple[int, str]] = field(default_factory=Counter)

    def end(self, index: int, now: int, reply: bytes, reason: str) -> None:
        """Writes down how a request ended."""
        status, text = 0, reason
        if reply:
            status = 200 if self.target.grpc else wire.status_of(reply)
            text = "" if status == 200 else wire.error_text(reply)
        outcome = wire.classify(status, text)
        if self.queue_time and outcome is Outcome.SUCCESS:
            request_id, waited = self.target.identified_int64(reply, QUEUE_OUTPUT)
            if request_id != self.requests.id_of(index).decode():
                outcome, text = Outcome.OTHER, "the reply carries the id of another request, or none"
            elif self.requests.answer_to(index) not in reply:
                outcome, text = Outcome.OTHER, "the reply holds a wrong answer"
            elif waited is not None:
                self.queue_us[index] = waited
        self.done[index] = now
        self.outcome[index] = outcome
        if outcome is Outcome.OTHER:
            self.failures[status, text] += 1


class Running:
    """A load under way.

    Attributes:
        start: monotonic ns of the schedule's zero, the same in all processes.
    """

    def __init__(self, workers: Sequence[tuple[BaseProcess, Connection]]) -> None:
        self._workers = workers
        for _, pipe in workers:
            if not pipe.poll(_READY_SECONDS):
                raise LoadError(
                    f"a generator process was not ready after {_READY_SECONDS:.0f} s; is this machine too busy?"
                )
            _receive(pipe)
        self.start = time.monotonic_ns() + _LEAD_NS
        for _, pipe in workers:
            pipe.send(self.start)

    def result(self) -> Ledger:
        """Waits for the end of the run.

        Raises:
            LoadError: a generator process failed.
        """
        return Ledger.merge([_receive(pipe) for _, pipe in self._workers])


def _receive(pipe: Connection) -> Any:
    try:
        message = pipe.recv()
    except EOFError:
        raise LoadError("a generator process ended before its time") from None
    if isinstance(message, str):
        raise LoadError(f"a generator process failed: {message}")
    return message


@contextmanager
def begin(
    target: Target,
    schedule: Schedule,
    *,
    settle: Sequence[str] | None = None,
    grace_s: float = 2.0,
    processes: int = 1,
    queue_time: bool = False,
) -> Iterator[Running]:
    """Starts an open-loop run; leaving the context ends its processes, whatever they are doing.

    Args:
        target: where to send.
        schedule: what to send when.
        settle: after the last arrival wait until all requests of these classes have a reply; None means all classes.
        grace_s: how many seconds to wait for that at most. What has no reply then is UNANSWERED.
        processes: generator processes that share the schedule.
        queue_time: also read the router's own queue time from the replies, each found by the id of its request.

    Raises:
        LoadError: a process did not start.
    """
    names = schedule.classes if settle is None else tuple(settle)
    jobs = [
        _Job(
            target,
            schedule.share(part, processes),
            names,
            int(grace_s * SECOND),
            queue_time=queue_time,
            first_id=part * _IDS_PER_PROCESS,
        )
        for part in range(processes)
    ]
    with _started(jobs) as running:
        yield running


@contextmanager
def begin_closed(
    target: Target, class_name: str, in_flight: int, duration_s: float, *, grace_s: float = 5.0
) -> Iterator[Running]:
    """Starts a closed-loop run of one process: every reply sends the next request, ``in_flight`` at a time.

    The requests' scheduled time is the time when they were sent.
    """
    count = len(target.choices(class_name))
    zeros = np.zeros(count, dtype=np.int64)
    turns = Schedule((class_name,), zeros, zeros, np.arange(count), int(duration_s * SECOND))
    with begin_turns([(target, turns, in_flight)], grace_s=grace_s) as running:
        yield running


@contextmanager
def begin_turns(
    loops: Sequence[tuple[Target, Schedule, int]], *, grace_s: float, queue_time: bool = False
) -> Iterator[Running]:
    """Starts several closed loops at once, each in a process of its own.

    Args:
        loops: of each where to send, whose turn it is when, and how many requests at a time. Of a schedule only the
            order counts; after the last request comes the first again.
        grace_s: see `begin`, as for the other one.
        queue_time: see there.
    """
    jobs = [
        _Job(target, turns, turns.classes, int(grace_s * SECOND), in_flight, queue_time, place * _IDS_PER_PROCESS)
        for place, (target, turns, in_flight) in enumerate(loops)
    ]
    with _started(jobs) as running:
        yield running


@contextmanager
def _started(jobs: Sequence[_Job]) -> Iterator[Running]:
    context = multiprocessing.get_context("spawn")
    workers: list[tuple[BaseProcess, Connection]] = []
    try:
        for job in jobs:
            ours, theirs = context.Pipe()
            process: BaseProcess = context.Process(target=_work, args=(job, theirs), daemon=True)
            with without_interrupts():
                process.start()
            theirs.close()
            workers.append((process, ours))
        yield Running(workers)
    finally:
        for process, pipe in workers:
            pipe.close()
            process.terminate()
            process.join()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """A process started inside never sees Ctrl-C: it is for the parent to end it, and to keep what is complete."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(job: _Job, pipe: Connection) -> None:
    """Body of a generator process: prepare, say so, take the start time, run, hand over the ledger."""
    try:
        raise_descriptor_limit()
        requests = _Requests(job)
        # The cycle collector's pauses would show as late sends; a run makes no cycles worth collecting.
        gc.collect()
        gc.freeze()
        gc.disable()
        pipe.send(None)
        start = pipe.recv()
        pipe.send(_closed(job, requests, start) if job.in_flight else _open(job, requests, start))
    except EOFError:
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        pipe.send(f"{type(error).__name__}: {error}")


def _open(job: _Job, requests: _Requests, start: int) -> Ledger:
    schedule = job.schedule
    record = _Record(job.target, job.queue_time, requests, sent=[-1] * len(schedule))
    watched = {schedule.classes.index(name) for name in job.settle}
    classes = schedule.class_index.tolist()
    open_count = sum(index in watched for index in classes)

    def on_end(index: int, now: int, reply: bytes, reason: str) -> None:
        nonlocal open_count
        record.end(index, now, reply, reason)
        if classes[index] in watched:
            open_count -= 1

    end = start + schedule.duration
    cpu_at_end: list[float] = []

    def settled(now: int) -> bool:
        if not cpu_at_end:
            cpu_at_end.append(time.process_time())
        return open_count == 0 or now >= end + job.grace

    client = job.target.client(record.sent, on_end, requests.patience)
    cpu = time.process_time()
    open_loop(client, (schedule.at + start).tolist(), requests, end, settled)
    client.close()
    return _ledger(job, record, start, cpu_at_end[0] - cpu, client.opened, schedule)


def _closed(job: _Job, requests: _Requests, start: int) -> Ledger:
    record = _Record(job.target, job.queue_time, requests)
    ended: list[int] = []

    def on_end(index: int, now: int, reply: bytes, reason: str) -> None:
        record.end(index, now, reply, reason)
        ended.append(index)

    client = job.target.client(record.sent, on_end, requests.patience)
    while (left := start - time.monotonic_ns()) > 0:
        time.sleep(left / SECOND)
    cpu = time.process_time()
    end = start + job.schedule.duration
    closed_loop(client, job.in_flight, requests.__getitem__, end, end + job.grace, ended)
    cpu = time.process_time() - cpu
    client.close()
    turns = np.arange(len(record.sent), dtype=np.int64) % len(requests)
    made = Schedule(
        job.schedule.classes,
        np.array(record.sent, dtype=np.int64) - start,
        job.schedule.class_index[turns],
        job.schedule.payload[turns],
        job.schedule.duration,
    )
    return _ledger(job, record, start, cpu, client.opened, made)


def _ledger(job: _Job, record: _Record, start: int, cpu: float, connections: int, schedule: Schedule) -> Ledger:
    count = len(schedule)
    sent = np.array(record.sent, dtype=np.int64)

    def column(values: Mapping[int, int], missing: int) -> NDArray[np.int64]:
        return np.array([values.get(index, missing) for index in range(count)], dtype=np.int64)

    done = column(record.done, -1)
    return Ledger(
        classes=schedule.classes,
        class_index=schedule.class_index,
        rows=job.target.rows(schedule),
        scheduled=schedule.at,
        sent=np.where(sent >= 0, sent - start, -1),
        done=np.where(done >= 0, done - start, -1),
        outcome=column(record.outcome, Outcome.UNANSWERED),
        queue_us=column(record.queue_us, -1),
        failures=record.failures,
        duration=schedule.duration,
        cpu_seconds=cpu,
        connections=connections,
    )
