# SPDX-License-Identifier: Apache-2.0
"""Every request is somewhere: 0 at every step of its way and under load, and not 0 once one is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from priority_router.core.scheduler import Scheduler
from priority_router.errors import ExecutorFailed, Outcome
from priority_router.runtime.audit import Audit, Received
from priority_router.runtime.driver import Observed
from priority_router.runtime.log import Log
from priority_router.runtime.metrics import Tally
from priority_router.runtime.replies import Replies
from priority_router.runtime.router import Router, Surroundings
from priority_router.runtime.translate import ErrorCodes
from priority_router.runtime.work import Answer, Job
from support.fake_triton import Request, Triton, TritonError, doubled, rows

from .harness import Bench, policy


class Books(Bench):
    """A bench whose counters are written as the router writes them, one step at a time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.received = Received()
        self.tally = Tally(["online", "bulk"])
        self.replies = Replies(self.triton, ErrorCodes(TritonError), True, self.log)
        self.audit = Audit(self.received, [self.tally], self.log)
        self.sent = 0

    def take(self, *jobs: Job) -> None:
        """As ``execute`` does."""
        self.received.begun += len(jobs)
        self.submit(*jobs)
        self.received.ended += len(jobs)

    def reply(self) -> None:
        """Sends what has been decided."""
        while self.sent < len(self.answers):
            self.sent += 1
            self.replies.send(self.answers[self.sent - 1], self.tally)

    def balance(self) -> int:
        self.audit.look(self.driver.observe)
        return self.audit.unaccounted


def test_one_that_is_served_is_somewhere_at_every_step() -> None:
    books = Books(policy(size=2))
    steps: list[Callable[[], object]] = [
        lambda: books.take(*[books.job("bulk", count) for count in (1, 5, 2, 1)], books.job("online", 3)),
        lambda: books.complete(books.calls[0]),
        books.reply,
    ]
    for step in steps:
        step()
        assert books.balance() == 0
    done = 1
    while done < len(books.calls):
        books.complete(books.calls[done])
        done += 1
        assert books.balance() == 0
        books.reply()
        assert books.balance() == 0
    assert books.tally.answered == books.received.ended == 5


def ends(books: Books, how: str) -> None:
    """Requests end in one way that is not an answer."""
    if how == "refused":
        books.take(*[books.job("bulk") for _ in range(9)])
    elif how == "expired":
        books.take(*[books.job("online") for _ in range(9)])
        books.clock.pass_ms(20)
        books.driver.tick()
    elif how == "given up":
        books.take(*[books.job("bulk", 6) for _ in range(2)])
        books.clock.pass_ms(60)
        books.driver.tick()
        books.complete(books.calls[0])
    elif how == "executor failed":
        books.take(books.job("bulk", 6))
        books.complete(books.calls[0], ExecutorFailed("no"))
    elif how == "cancelled":
        jobs = [books.job("bulk") for _ in range(4)]
        books.take(*jobs)
        borrowed = books.driver.borrow([job.request.id for job in jobs if job.request], books.clock())
        books.driver.give_back(borrowed, borrowed[1:])
    elif how == "cancelled while it is looked at":
        books.take(*[books.job("online") for _ in range(4)])
        borrowed = books.driver.borrow(books.driver.waiting_ids(), books.clock())
        books.clock.pass_ms(20)
        books.driver.tick()
        assert books.balance() == 0, "their answers are held up"
        books.driver.give_back(borrowed, borrowed)
    elif how == "policy changed":
        books.take(*[books.job("bulk") for _ in range(4)])
        books.driver.adopt(policy(size=1, top='default_class = "online"').scheduling, "online")


@pytest.mark.parametrize(
    "how",
    [
        "refused",
        "expired",
        "given up",
        "executor failed",
        "cancelled",
        "cancelled while it is looked at",
        "policy changed",
    ],
)
def test_however_one_ends(how: str) -> None:
    given = policy(
        size=1,
        top="executor_timeout_microseconds = 50000",
        online="default_timeout_microseconds = 10000",
        bulk="max_queue_size = 4",
    )
    books = Books(given)
    ends(books, how)
    assert books.balance() == 0
    books.reply()
    assert books.balance() == 0
    done = 0
    while done < len(books.calls):
        books.complete(books.calls[done])
        done += 1
        books.reply()
        assert books.balance() == 0
    assert books.tally.answered == books.received.ended


def test_a_scheduler_that_fails_loses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    books = Books(policy(size=1))
    books.take(*[books.job("bulk") for _ in range(3)])
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "advance", lambda *_: 1 / 0)
        books.take(books.job("online"))
    assert books.balance() == 0
    books.reply()
    books.complete(books.calls[0])
    assert (books.balance(), books.tally.answered) == (0, 4)


def test_a_request_that_the_scheduler_forgets_is_missed() -> None:
    books = Books(policy(size=1))
    books.take(*[books.job("bulk") for _ in range(4)])
    scheduler = books.driver._scheduler
    request_id = next(iter(scheduler._entries))  # in flight
    del scheduler._entries[request_id]
    assert books.balance() == 1
    (line,) = [text for _, text in books.triton.Logger.lines]
    assert "1 requests are unaccounted for: 4 received, 2 wait, 0 answered" in line
    entry = scheduler._entries[max(scheduler._entries)]  # waits
    scheduler._lanes.remove(entry)
    assert books.balance() == 2


def test_a_request_that_never_reached_the_scheduler_is_missed() -> None:
    books = Books(policy())
    books.received.begun += 1
    assert books.balance() == 0, "it may be on its way"
    books.received.ended += 1
    assert books.balance() == 1


def test_a_reply_that_is_dropped_is_missed_and_comes_back_into_the_books(monkeypatch: pytest.MonkeyPatch) -> None:
    books = Books(policy())
    books.take(books.job())
    books.complete(books.calls[0])
    assert books.balance() == 0
    with monkeypatch.context() as patch:
        patch.setattr(Replies, "_answer", dropped)
        with pytest.raises(RuntimeError):
            books.reply()
    assert books.balance() == 1
    books.replies._answer(books.answers[0], books.tally)
    assert books.balance() == 0


def dropped(*_: Any) -> None:
    raise RuntimeError("a bug")


def test_an_outcome_that_is_counted_twice_is_seen() -> None:
    books = Books(policy())
    books.take(books.job())
    books.complete(books.calls[0])
    books.reply()
    books.tally.count("online", Outcome.SUCCESS, None, None)
    assert books.balance() == -1


def test_what_moves_while_it_looks_does_not_show() -> None:
    books = Books(policy(size=1))

    def moving() -> Observed:
        """Between the first number and the last one request comes, is served and is answered, and one more begins."""
        books.take(books.job("online"))
        observed = books.driver.observe()
        books.complete(books.calls[-1])
        books.reply()
        books.received.begun += 1
        books.tally.begun += 1
        return observed

    for _ in range(3):
        books.audit.look(moving)
        assert books.audit.unaccounted == 0


def test_one_that_was_lost_stays_lost_while_others_move() -> None:
    books = Books(policy(size=1))
    books.received.begun += 1
    books.received.ended += 1
    assert books.balance() == 1

    def moving() -> Observed:
        books.take(books.job("online"))
        return books.driver.observe()

    books.audit.look(moving)
    assert books.audit.unaccounted == 1


def test_under_load_it_reads_zero_at_every_look_and_one_after_a_reply_was_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All threads of a router at work, with requests of every fate."""
    triton = Triton()

    def moody(call: Any) -> Any:
        if 7.0 in call.inputs["X"]:
            raise RuntimeError("seven")
        return doubled(call)

    triton.answer = moody
    router = Router(triton, policy(bulk="max_queue_size = 8"), Surroundings("router"))
    stop = threading.Event()
    requests: list[Request] = []

    def load() -> None:
        while not stop.is_set():
            group = []
            for index in range(8):
                name = ("online", "bulk", "gold")[index % 3]
                group.append(Request({"X": rows(1 + index, float(index))}, parameters=f'{{"class": "{name}"}}'))
            requests.extend(group)
            router.execute(group)
            if len(requests) % 64 == 0:
                requests[-1].sender.done.wait(10)

    audit = Audit(router._received, [*router._tallies, router._returned], Log(triton.Logger, "audit"))
    loader = threading.Thread(target=load)
    loader.start()
    try:
        seen = set()
        looks = 0
        while len(requests) < 1500 and looks < 100_000:
            audit.look(router._driver.observe)
            seen.add(audit.unaccounted)
            looks += 1
    finally:
        stop.set()
        loader.join()
    assert (seen, looks > 100) == ({0}, True)
    for request in requests:
        assert request.sender.done.wait(10)

    send = Replies._answer

    def forgetful(self: Replies, answer: Answer, tally: Tally) -> None:
        if answer.job.rows == 3:
            raise RuntimeError("a bug")
        send(self, answer, tally)

    monkeypatch.setattr(Replies, "_answer", forgetful)
    last = [Request({"X": rows(count)}, parameters='{"class": "online"}') for count in (1, 3, 2)]
    router.execute(last)
    for request in (last[0], last[2]):
        assert request.sender.reply
    router.close()
    audit.look(router._driver.observe)
    assert audit.unaccounted == 1
    assert not last[1].sender.done.is_set()
    assert triton.page.read('priority_router_unaccounted_requests{model="router"}') == 0, "a gauge ends with its router"
