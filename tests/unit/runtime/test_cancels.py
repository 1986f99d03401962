# SPDX-License-Identifier: Apache-2.0
"""Whom to ask whether they have given up, and when."""

from __future__ import annotations

import pytest
from priority_router.errors import Outcome
from priority_router.runtime.cancels import FULL_CLASS_SHARE, GROUP, SWEEP_SHARE, Cancels
from priority_router.runtime.work import Job

from .harness import Bench, policy


class Asking(Bench):
    """A bench where each question takes 80 us and every job counts the questions about it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cancels = Cancels(self.driver, self.clock, self.log)
        self.driver.on_send = self.cancels.dispatched
        self.asked: list[Job] = []

    def job(self, *args: object, **kwargs: object) -> Job:
        job = super().job(*args, **kwargs)  # type: ignore[arg-type]
        real = job.sender.is_cancelled

        def is_cancelled() -> bool:
            self.clock.pass_ms(0.08)
            self.asked.append(job)
            answer: bool = real()
            return answer

        job.sender.is_cancelled = is_cancelled
        return job

    def waiting(self, count: int, class_name: str = "bulk") -> list[Job]:
        """Fills the executor, then leaves this many waiting."""
        blockers = [self.job("online") for _ in range(8)]
        self.submit(*blockers)
        jobs = [self.job(class_name) for _ in range(count)]
        self.submit(*jobs)
        return jobs

    def look_for(self, milliseconds: float, period: float = 10) -> None:
        until = self.clock.now + milliseconds * 1e6
        while self.clock.now < until:
            self.clock.pass_ms(period)
            self.cancels.look()


@pytest.fixture
def asking() -> Asking:
    return Asking(policy(size=1, bulk="max_queue_size = 100000"))


def cancelled(asking: Asking) -> list[Job]:
    return [job for job, error in asking.answers if error is not None and error.outcome is Outcome.CANCELLED]


def test_nobody_is_asked_before_20_ms(asking: Asking) -> None:
    asking.waiting(10)
    asking.look_for(19, period=1)
    assert asking.asked == []
    asking.look_for(15)
    assert asking.asked


def test_a_cancelled_request_is_found_and_ends(asking: Asking) -> None:
    jobs = asking.waiting(10)
    jobs[4].sender.cancelled = True
    asking.look_for(200)
    assert cancelled(asking) == [jobs[4]]


def test_the_next_dispatch_is_asked_before_its_turn(asking: Asking) -> None:
    """However long the queue is, and although the sweep is far from them."""
    jobs = asking.waiting(2000)
    asking.clock.pass_ms(100)
    while not any(call.jobs[0] is jobs[0] for call in asking.calls):
        asking.complete(asking.calls[-1])
        asking.cancels.look()
    following = jobs[1]
    following.sender.cancelled = True
    asking.asked.clear()
    asking.cancels.dispatched(following.arrived)
    asking.clock.pass_ms(21)
    asking.cancels.look()
    assert following in asking.asked
    assert following in cancelled(asking)


def test_the_sweep_keeps_to_its_share_of_a_core(asking: Asking) -> None:
    asking.waiting(5000)
    asking.clock.pass_ms(50)
    asking.cancels.look()
    asking.asked.clear()
    began = asking.clock.now
    asking.look_for(10_000)
    spent = len(asking.asked) * 0.08e6
    assert spent / (asking.clock.now - began) <= SWEEP_SHARE * 1.1
    assert spent / (asking.clock.now - began) >= SWEEP_SHARE * 0.5, "a budget that is not used finds nobody"


def test_the_stated_bound_holds(asking: Asking) -> None:
    """N requests: about N x 8 ms plus 30 ms, whichever of them it is."""
    jobs = asking.waiting(100)
    asking.look_for(500)
    for position in (0, 50, 99):
        jobs[position].sender.cancelled = True
        began = asking.clock.now
        while jobs[position] not in cancelled(asking):
            asking.look_for(1)
        assert asking.clock.now - began <= (100 * 8 + 30) * 1e6 * 1.1


def test_a_full_class_is_searched_at_once() -> None:
    asking = Asking(policy(size=1, bulk="max_queue_size = 40"))
    jobs = asking.waiting(40)
    asking.clock.pass_ms(5)
    jobs[-1].sender.cancelled = True
    asking.submit(asking.job("bulk"))
    assert asking.answers[-1].error is not None
    assert asking.answers[-1].error.outcome is Outcome.QUEUE_FULL
    asking.cancels.look()
    assert cancelled(asking) == [jobs[-1]]
    asking.submit(asking.job("bulk"))
    assert cancelled(asking) == [jobs[-1]]
    assert sum(error.outcome is Outcome.QUEUE_FULL for _, error in asking.answers if error is not None) == 1


def test_a_full_class_is_searched_to_its_end() -> None:
    """Each is asked once per round, so the last of 1000 is found in the time that 1000 questions may take."""
    asking = Asking(policy(size=1, bulk="max_queue_size = 1000"))
    jobs = asking.waiting(1000)
    jobs[-1].sender.cancelled = True
    began = asking.clock.now
    while jobs[-1] not in cancelled(asking):
        asking.submit(asking.job("bulk"))
        asking.look_for(10)
        assert asking.clock.now - began <= 1000 * 0.08e6 / FULL_CLASS_SHARE, "the sweep alone needs five times as long"


def test_the_search_of_a_full_class_goes_on_after_its_refusal() -> None:
    asking = Asking(policy(size=1, bulk="max_queue_size = 500"))
    jobs = asking.waiting(500)
    jobs[-1].sender.cancelled = True
    asking.submit(asking.job("bulk"))
    asking.look_for(500 * 0.08 / FULL_CLASS_SHARE)
    assert jobs[-1] in cancelled(asking)


def test_full_classes_are_searched_by_turns_and_together_within_their_share() -> None:
    asking = Asking(policy(size=1, online="max_queue_size = 300", bulk="max_queue_size = 300"))
    asking.waiting(300)
    asking.submit(*[asking.job("online") for _ in range(300)])
    asking.look_for(100)  # what was saved up is spent
    asking.asked.clear()
    began = asking.clock.now
    for _ in range(1000):
        asking.submit(asking.job("bulk"), asking.job("online"))
        asking.look_for(5, period=5)
    share = len(asking.asked) * 0.08e6 / (asking.clock.now - began)
    assert 0.9 * FULL_CLASS_SHARE < share < 1.1 * (FULL_CLASS_SHARE + SWEEP_SHARE)
    urgent = sum(job.class_name == "online" for job in asking.asked)
    assert 0.4 < urgent / len(asking.asked) < 0.6


def test_a_question_that_fails_gives_the_jobs_back(asking: Asking) -> None:
    jobs = asking.waiting(GROUP)

    def broken() -> bool:
        raise RuntimeError("no connection")

    jobs[0].sender.is_cancelled = broken
    asking.clock.pass_ms(30)
    with pytest.raises(RuntimeError):
        asking.cancels.look()
    assert not any(job.polling for job in jobs)


def test_a_question_that_fails_does_not_end_the_search_of_a_full_class() -> None:
    asking = Asking(policy(size=1, bulk="max_queue_size = 30"))
    jobs = asking.waiting(30)

    def broken() -> bool:
        raise RuntimeError("no connection")

    jobs[0].sender.is_cancelled = broken
    jobs[-1].sender.cancelled = True
    asking.submit(asking.job("bulk"))
    with pytest.raises(RuntimeError):
        asking.cancels.look()
    asking.cancels.look()
    assert cancelled(asking) == [jobs[-1]]
