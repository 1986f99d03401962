# SPDX-License-Identifier: Apache-2.0
"""The driver: facts in, decisions handed on, every job answered once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import Part
from priority_router.errors import ExecutorFailed, InternalFault, Outcome, QueueFull, Unavailable

from .harness import Bench, policy


def outcomes(bench: Bench) -> list[Outcome]:
    return [Outcome.SUCCESS if error is None else error.outcome for _, error in bench.answers]


def test_requests_of_one_call_are_joined_and_answered() -> None:
    bench = Bench(policy())
    jobs = [bench.job(), bench.job("bulk", 2)]
    bench.submit(*jobs)
    (call,) = bench.calls
    assert [part.rows for part in call.dispatch.parts] == [1, 2]
    assert list(call.jobs) == jobs
    bench.complete(call)
    assert [answer.job for answer in bench.answers] == jobs
    assert outcomes(bench) == [Outcome.SUCCESS] * 2
    assert bench.driver.idle


def test_the_next_dispatch_leaves_before_the_replies() -> None:
    """The call that follows is in the hands of the very thread that came back; answers only reach a queue."""
    bench = Bench(policy(size=1))
    bench.submit(*[bench.job() for _ in range(4)])
    before = len(bench.calls)
    following = bench.driver.completed(bench.calls[0], 1_000_000, [[("Y", np.zeros((1, 2)))]], None)
    assert following is not None
    assert following.jobs[0] is not bench.calls[0].jobs[0]
    assert len(bench.calls) == before, "it must not be handed to another thread as well"
    assert len(bench.answers) == 1


def test_further_calls_go_to_other_threads() -> None:
    bench = Bench(policy(size=1, instances=2))
    bench.submit(*[bench.job() for _ in range(8)])
    for call in bench.calls[:3]:
        bench.driver.called(call, bench.clock())
    sent, queued = bench.driver.sent, len(bench.calls)
    following = bench.driver.completed(bench.calls[0], 1_000_000, [[("Y", np.zeros((1, 2)))]], None)
    assert bench.driver.sent - sent == (following is not None) + len(bench.calls) - queued


def test_times_are_kept_from_execute_to_exec_and_back() -> None:
    bench = Bench(policy())
    job = bench.job()
    bench.submit(job)
    bench.clock.pass_ms(3)
    bench.driver.called(bench.calls[0], bench.clock())
    bench.complete(bench.calls[0])
    assert job.first_exec is not None
    assert job.first_exec - job.arrived == 3_000_000
    assert job.executor_ns == 1_000_000


def test_hand_overs_are_counted_from_the_decision() -> None:
    bench = Bench(policy())
    bench.submit(bench.job())
    bench.clock.pass_ms(3)
    bench.driver.called(bench.calls[0], bench.clock())
    counted = bench.driver.observe().hand_over
    assert (sum(counted.counts), counted.total_ns) == (1, 3_000_000)


def test_an_oversized_request_goes_out_in_parts_and_is_answered_once() -> None:
    bench = Bench(policy(size=4))
    job = bench.job(count=10)
    bench.submit(job)
    done = 0
    while done < len(bench.calls):
        call = bench.calls[done]
        bench.clock.pass_ms(50)
        bench.driver.called(call, bench.clock())
        bench.complete(call)
        done += 1
    assert [part for call in bench.calls for part in call.dispatch.parts] == [
        Part(1, 0, 4),
        Part(1, 4, 4),
        Part(1, 8, 2),
    ]
    assert outcomes(bench) == [Outcome.SUCCESS]
    assert sorted(first for first, _ in job.pieces) == [0, 4, 8]
    assert job.executor_ns == 3_000_000


def test_an_error_of_the_executor_reaches_everyone_in_the_dispatch_and_nobody_else() -> None:
    bench = Bench(policy(size=2))
    bench.submit(bench.job(), bench.job(), bench.job())
    bench.complete(bench.calls[0], ExecutorFailed("broken"))
    bench.complete(bench.calls[1])
    assert outcomes(bench) == [Outcome.EXECUTOR_ERROR, Outcome.EXECUTOR_ERROR, Outcome.SUCCESS]


def test_a_full_class_refuses_and_is_remembered() -> None:
    bench = Bench(policy(size=1, bulk="max_queue_size = 1"))
    bench.submit(*[bench.job("bulk") for _ in range(5)])
    refused = [error for _, error in bench.answers]
    assert refused
    assert all(isinstance(error, QueueFull) for error in refused)
    assert bench.driver.full_classes() == {"bulk"}
    assert bench.driver.full_classes() == set()


def test_a_class_that_refuses_early_is_searched_for_cancelled_requests_like_a_full_one() -> None:
    bench = Bench(policy(size=1, bulk="default_timeout_microseconds = 20000\nreject_predicted_late = true"))
    for _ in range(8):
        bench.submit(bench.job("bulk"))
        bench.clock.pass_ms(50)
        bench.complete(bench.calls[-1])
    bench.submit(bench.job("bulk"))
    bench.submit(bench.job("bulk"))
    assert outcomes(bench) == [Outcome.SUCCESS] * 8 + [Outcome.PREDICTED_LATE]
    assert bench.driver.full_classes() == {"bulk"}
    (waits,) = bench.driver.observe().predicted_waits.values()
    assert waits.requests == 0


def test_a_lost_dispatch_is_answered_and_its_late_answer_dropped() -> None:
    bench = Bench(policy(top="executor_timeout_microseconds = 1000000"))
    job = bench.job()
    bench.submit(job)
    bench.clock.pass_ms(1001)
    bench.driver.tick()
    assert outcomes(bench) == [Outcome.UNAVAILABLE]
    bench.complete(bench.calls[0])
    assert len(bench.answers) == 1
    assert job.pieces == []
    assert bench.driver.observe().late_answers == 1


def test_draining_refuses_the_new_and_serves_the_waiting() -> None:
    bench = Bench(policy(size=1))
    bench.submit(bench.job(), bench.job("bulk"), bench.job("bulk"))
    bench.driver.drain()
    bench.submit(bench.job())
    assert outcomes(bench) == [Outcome.UNAVAILABLE]
    for call in bench.calls:
        bench.complete(call)
    assert bench.driver.idle
    assert outcomes(bench).count(Outcome.SUCCESS) == 3


class TestCancelCheck:
    """Jobs are lent for a check; a reply waits until they are back."""

    def test_a_cancelled_job_ends_when_it_comes_back(self) -> None:
        bench = Bench(policy(size=1))
        jobs = [bench.job("bulk") for _ in range(4)]
        bench.submit(*jobs)
        waiting = bench.driver.waiting_ids()
        lent = bench.driver.borrow(waiting, bench.clock())
        assert lent
        bench.driver.give_back(lent, [lent[-1]])
        assert outcomes(bench) == [Outcome.CANCELLED]
        assert bench.answers[0].job is lent[-1]
        assert len(bench.driver.waiting_ids()) == len(waiting) - 1

    def test_a_reply_waits_for_the_check(self) -> None:
        bench = Bench(policy(size=1, bulk="default_timeout_microseconds = 1000"))
        bench.submit(*[bench.job("bulk") for _ in range(3)])
        lent = bench.driver.borrow(bench.driver.waiting_ids(), bench.clock())
        bench.clock.pass_ms(5)
        bench.driver.tick()
        held = [job for job in lent if job.answered]
        assert held
        assert not {id(answer.job) for answer in bench.answers} & {id(job) for job in held}
        bench.driver.give_back(lent, lent)
        assert {id(answer.job) for answer in bench.answers} == {id(job) for job in held}
        assert outcomes(bench) == [Outcome.TIMEOUT] * len(held)

    def test_what_was_sent_is_not_lent_and_cannot_be_cancelled(self) -> None:
        bench = Bench(policy())
        job = bench.job()
        bench.submit(job)
        assert bench.driver.borrow([1], bench.clock()) == []
        bench.driver.give_back([], [job])
        assert bench.answers == []

    def test_a_job_sent_during_its_check_is_served(self) -> None:
        bench = Bench(policy(size=1))
        bench.submit(*[bench.job("bulk") for _ in range(3)])
        last = bench.driver.borrow(bench.driver.waiting_ids(), bench.clock())[-1]
        done = 0
        while done < len(bench.calls):
            bench.complete(bench.calls[done])
            done += 1
        assert last.answered
        assert all(answer.job is not last for answer in bench.answers)
        bench.driver.give_back([last], [last])
        assert outcomes(bench).count(Outcome.CANCELLED) == 0
        assert [answer.job for answer in bench.answers].count(last) == 1

    def test_only_those_not_asked_lately(self) -> None:
        bench = Bench(policy(size=1))
        bench.submit(*[bench.job("bulk") for _ in range(4)])
        ids = bench.driver.waiting_ids()
        assert bench.driver.borrow(ids, bench.clock() - 1) == []
        assert len(bench.driver.borrow(ids, bench.clock())) == len(ids)

    def test_the_waiting_of_a_class_are_found_without_a_look_at_the_others(self) -> None:
        bench = Bench(policy(size=1))
        jobs = [bench.job(name) for name in ("online", "online", "bulk", "online", "bulk", "online")]
        bench.submit(*jobs)
        sent = {job.request.id for call in bench.calls for job in call.jobs if job.request is not None}
        for name in ("online", "bulk"):
            of_class = [job.request.id for job in jobs if job.class_name == name and job.request is not None]
            assert bench.driver.waiting_ids(name) == [number for number in of_class if number not in sent]
        assert sorted(bench.driver.waiting_ids()) == [number for number in range(1, 7) if number not in sent]


def test_the_oldest_of_all_classes_is_named_with_a_dispatch() -> None:
    bench = Bench(policy(size=1))
    named: list[int] = []
    bench.driver.on_send = named.append
    arrivals = []
    for name in ("bulk", "bulk", "bulk", "online", "bulk"):
        arrivals.append(bench.clock())
        bench.submit(bench.job(name))
        bench.clock.pass_ms(1)
    bench.complete(bench.calls[0])
    assert named[-1] == arrivals[2], "the first two are with the executor, and so is the urgent one"


class TestFault:
    """An exception of the scheduler answers what it held and does not stop the router."""

    @pytest.mark.parametrize("method", ["submit", "advance", "completed", "next_wakeup"])
    def test_everything_held_is_answered_and_the_router_goes_on(
        self, method: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench = Bench(policy(size=1))
        first = [bench.job("bulk") for _ in range(4)]
        bench.submit(*first)
        real = getattr(Scheduler, method)

        def broken(*args: Any, **kwargs: Any) -> Any:
            monkeypatch.setattr(Scheduler, method, real)
            raise RuntimeError("a bug")

        monkeypatch.setattr(Scheduler, method, broken)
        if method == "completed":
            bench.complete(bench.calls[0])
        else:
            bench.submit(bench.job())
        assert bench.driver.idle
        assert all(isinstance(error, InternalFault) for _, error in bench.answers)
        assert len(bench.answers) == len({id(answer.job) for answer in bench.answers}) >= 4
        assert bench.driver.faults == 1
        assert "a bug" in bench.triton.Logger.lines[-1][1]

        old_calls = list(bench.calls)
        bench.calls.clear()
        later = bench.job()
        bench.submit(later)
        for call in old_calls:
            bench.complete(call)
        assert not later.answered, "the answer of an old call must not count for a new one with its number"
        bench.complete(bench.calls[0])
        assert bench.answers[-1] == (later, None)

    def test_a_router_that_drains_goes_on_draining(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bench = Bench(policy())
        bench.driver.drain()
        bench.driver._start_over(RuntimeError("a bug"))
        bench.submit(bench.job())
        assert isinstance(bench.answers[-1].error, Unavailable)


def test_the_alarm_is_set_for_the_next_timeout() -> None:
    bench = Bench(policy(size=1, bulk="default_timeout_microseconds = 5000"))
    bench.submit(*[bench.job("bulk") for _ in range(4)])
    assert bench.driver.alarm._moment is not None
    assert bench.driver.alarm._moment <= bench.clock() + 5_000_000
    bench.clock.pass_ms(6)
    bench.driver.tick()
    assert Outcome.TIMEOUT in outcomes(bench)
