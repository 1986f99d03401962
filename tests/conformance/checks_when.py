# SPDX-License-Identifier: Apache-2.0
"""Checks by hand: the moment of a dispatch, what is learned, overtaking, a shared executor, lost dispatches."""

from __future__ import annotations

from conformance.checks import check
from priority_router.core.scheduler import MAX_WRITTEN_OFF, Scheduler
from priority_router.core.values import Request, SchedulingPolicy, Send
from priority_router.errors import ExecutorFailed
from unit.core.build import BACKGROUND, MS, ONLINE, Bench, ids

# When.


@check
def arrivals_of_one_call_are_all_known_before_the_decision() -> None:
    bench = Bench(max_batch_size=1)
    _, urgent = bench.submit("background", "online")
    first, _ = bench.advance()
    assert ids(first) == [urgent]


@check
def the_second_sent_ahead_waits_for_the_second_completion() -> None:
    bench = Bench(max_batch_size=1, instances=2)
    bench.learn(50, times=6)
    start = bench.now
    bench.submit("background")
    bench.advance()
    bench.now = start + 30 * MS
    bench.submit(*["background"] * 4)
    bench.advance()
    bench.now = start + 50 * MS - 1
    bench.advance()
    assert bench.scheduler.dispatches_in_flight == 3
    bench.now = start + 80 * MS - 1
    bench.advance()
    assert bench.scheduler.dispatches_in_flight == 4


@check
def nothing_learned_sends_ahead_at_once() -> None:
    bench = Bench(max_batch_size=1)
    bench.submit("background", "background", "background")
    assert len(bench.advance()) == 2


@check
def nothing_goes_ahead_that_triton_would_merge() -> None:
    bench = Bench(instances=2)
    for _ in range(2):
        bench.submit(*["background"] * 4)
        bench.advance()
    for _ in range(2):
        bench.submit("background")
        bench.advance()
    assert [dispatch.rows for dispatch in bench.sent] == [4, 4, 1]


# What is learned.


def _estimate(bench: Bench, rows: int = 1, signature: str = "s") -> float:
    estimate = bench.scheduler._executor.times.estimate(signature, rows)
    assert estimate is not None, "nothing was learned"
    return estimate / MS


@check
def a_dispatch_sent_ahead_counts_from_the_completion_before_it() -> None:
    bench = Bench(max_batch_size=1)
    bench.submit(*["background"] * 4)
    first, second = bench.advance()
    bench.at(50).complete(first)
    bench.at(100).complete(second)
    assert _estimate(bench) == 50


@check
def warm_up_is_not_learned() -> None:
    bench = Bench(max_batch_size=1)
    bench.learn(9000, times=1)
    bench.learn(50, times=1)
    assert _estimate(bench) == 50


@check
def one_slow_execution_does_not_move_the_estimate() -> None:
    bench = Bench(max_batch_size=1)
    bench.learn(50, times=9)
    bench.learn(5000, times=1)
    assert _estimate(bench) == 50


@check
def the_estimate_follows_a_change_within_fifteen() -> None:
    bench = Bench(max_batch_size=1)
    bench.learn(50, times=200)
    bench.learn(80, times=10)
    assert _estimate(bench) == 80


@check
def failures_teach_nothing() -> None:
    bench = Bench(max_batch_size=1)
    bench.learn(50, times=4)
    for _ in range(9):
        bench.submit("background")
        (dispatch,) = bench.advance()
        bench.now += 1 * MS
        bench.complete(dispatch, ExecutorFailed("no"))
    assert _estimate(bench) == 50


@check
def what_triton_may_have_merged_teaches_nothing() -> None:
    bench = Bench(shared_executor=True)
    bench.learn(50, times=6)
    for _ in range(3):
        sent = []
        for _ in range(3):
            bench.submit("online")
            sent += bench.advance()
        bench.now += 50 * MS
        bench.complete(sent[0])
        bench.now += 90 * MS  # the two that waited ran together
        bench.complete(sent[1])
        bench.complete(sent[2])
    assert set(bench.scheduler._executor.times.spread("s", 1)) == {50 * MS}


@check
def an_unknown_signature_is_judged_by_its_row_count() -> None:
    bench = Bench()
    bench.learn(50, rows=4, class_name="online")
    bench.learn(20, rows=1, class_name="online")
    assert _estimate(bench, 4, "never seen") == 50
    assert _estimate(bench, 1, "never seen") == 20


@check
def memory_of_signatures_is_bounded() -> None:
    bench = Bench(max_batch_size=1)
    for number in range(600):
        bench.learn(1, signature=f"s{number}", times=1)
    assert len(bench.scheduler._executor.times._by_signature) <= 256


# Overtaking, a shared executor, lost dispatches.


@check
def an_overtaker_is_sent_at_once() -> None:
    bench = Bench(max_batch_size=1, overtaking=True)
    bench.learn(50)
    bench.submit("background")
    (running,) = bench.advance()
    bench.submit("background")
    bench.now += 49 * MS
    (waiting,) = bench.advance()
    (urgent,) = bench.submit("online")
    assert [running.level, waiting.level] == [2, 2]
    assert [ids(sent) for sent in bench.advance()] == [[urgent]]


@check
def a_dispatch_is_passed_once() -> None:
    bench = Bench(max_batch_size=1, overtaking=True)
    bench.learn(50)
    bench.submit("background", "background")
    (running,) = bench.advance()
    bench.now += 49 * MS
    bench.advance()
    bench.submit("online")
    bench.advance()
    bench.now += 1 * MS
    bench.complete(running)
    bench.submit("online")
    assert bench.advance() == []


@check
def the_most_urgent_go_to_a_shared_executor_at_once() -> None:
    bench = Bench(max_batch_size=1, shared_executor=True)
    bench.learn(50)
    bench.submit(*["background"] * 3)
    bench.advance()
    bench.submit("online")
    assert [dispatch.level for dispatch in bench.advance()] == [1]
    assert bench.scheduler.dispatches_in_flight == 2


@check
def the_less_urgent_stay_late_bound_on_a_shared_executor() -> None:
    bench = Bench(max_batch_size=1, shared_executor=True)
    bench.learn(50)
    bench.submit(*["background"] * 9)
    assert len(bench.advance()) == 1


def _lose(policy: SchedulingPolicy, count: int) -> tuple[Scheduler, dict[int, str], list[int]]:
    """Let ``count`` dispatches go without an answer."""
    scheduler = Scheduler(policy)
    ended, sent = {}, []
    for number in range(count):
        now = number * 2 * policy.executor_timeout
        scheduler.submit([Request(number, "online", 1, "s")], now)
        for moment in (now, now + policy.executor_timeout):
            for action in scheduler.advance(moment):
                if isinstance(action, Send):
                    sent.append(action.dispatch.id)
                else:
                    ended[action.request_id] = action.outcome.value
    return scheduler, ended, sent


@check
def a_dispatch_without_an_answer_is_written_off() -> None:
    scheduler, ended, _ = _lose(SchedulingPolicy((ONLINE, BACKGROUND)), 2)
    assert ended == {0: "unavailable", 1: "unavailable"}
    assert scheduler.dispatches_in_flight == 0


@check
def an_executor_that_is_gone_gets_no_more_work() -> None:
    scheduler, ended, _ = _lose(SchedulingPolicy((ONLINE, BACKGROUND)), MAX_WRITTEN_OFF + 1)
    assert scheduler.written_off == MAX_WRITTEN_OFF
    assert ended[MAX_WRITTEN_OFF] == "unavailable"


@check
def a_late_answer_gives_its_thread_back() -> None:
    scheduler, _, sent = _lose(SchedulingPolicy((ONLINE, BACKGROUND)), MAX_WRITTEN_OFF)
    scheduler.completed(sent[0], 10**15)
    scheduler.submit([Request(99, "online", 1, "s")], 10**15)
    assert [type(action) for action in scheduler.advance(10**15)] == [Send]
    assert scheduler.late_answers == 1
