# SPDX-License-Identifier: Apache-2.0
"""Checks by hand of early refusal: docs/policies.md.

The executor takes 50 ms for whatever it runs and has just begun, so who comes first starts in 50 ms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.checks import check
from priority_router.core.values import FairBy, Order, TimeoutAction, TrafficClass
from unit.core.build import MS, ONLINE, Bench

EARLY = TrafficClass("background", 2, reject_predicted_late=True)
LATE, IN_TIME = "predicted_late", None


def busy(*classes: TrafficClass, learned: int = 6, **keys: Any) -> Bench:
    """Every slot of an executor that has learned has begun to run a request of the last class."""
    bench = Bench(*classes, **{"max_batch_size": 1, **keys})
    name = classes[-1].name
    for rows in range(bench.scheduler._policy.max_batch_size, 0, -1):
        bench.learn(50, rows=rows, times=learned, class_name=name)
    instances = bench.scheduler._policy.instances
    for _ in range(instances):
        bench.submit(name)
        assert len(bench.advance()) == 1
    return bench


def queue(bench: Bench, name: str, requests: int, **keys: Any) -> None:
    """Let so many wait, one after the other."""
    for _ in range(requests):
        bench.submit(name, **keys)
        assert bench.advance() == []


def asks(bench: Bench, name: str, timeout_ms: float, **keys: Any) -> str | None:
    """How a request that comes now ends at once; None: it waits."""
    (number,) = bench.submit(name, timeout_ms=timeout_ms, **keys)
    assert bench.advance() == []
    return bench.outcomes.get(number)


# On arrival.


@check
def who_cannot_start_in_time_is_refused_at_once() -> None:
    bench = busy(ONLINE, EARLY)
    queue(bench, "background", 4)
    assert asks(bench, "background", 249) == LATE
    text = bench.errors[max(bench.errors)]
    assert "class 'background': predicted to wait 250 ms" in text
    assert "queue timeout of 249000 us" in text
    assert "can be served in 1 ms" in text
    assert asks(bench, "background", 250) == IN_TIME


@check
def what_runs_counts() -> None:
    bench = busy(ONLINE, EARLY)
    bench.now += 20 * MS
    assert asks(bench, "background", 29) == LATE
    assert asks(bench, "background", 31) == IN_TIME


@check
def what_was_sent_ahead_counts() -> None:
    bench = busy(ONLINE, EARLY)
    queue(bench, "background", 1)
    bench.now = bench.scheduler._executor.next_ahead() or 0
    assert len(bench.advance()) == 1
    assert asks(bench, "background", 45) == LATE
    assert asks(bench, "background", 55) == IN_TIME


@check
def nothing_is_refused_before_enough_is_learned() -> None:
    bench = busy(ONLINE, EARLY, learned=5)
    queue(bench, "background", 4)
    assert asks(bench, "background", 10) == IN_TIME


@check
def only_who_asks_for_it_is_refused_early() -> None:
    delayed = replace(EARLY, name="delayed", timeout_action=TimeoutAction.DELAY)
    plain = TrafficClass("plain", 2)
    bench = busy(ONLINE, delayed, plain, EARLY)
    queue(bench, "background", 4)
    assert [asks(bench, name, 10) for name in ("delayed", "plain")] == [IN_TIME, IN_TIME]
    assert asks(bench, "background", 0) == IN_TIME


@check
def more_urgent_work_counts_and_less_urgent_does_not() -> None:
    bench = busy(replace(EARLY, name="online", level=1), EARLY)
    queue(bench, "online", 3)
    queue(bench, "background", 3)
    assert asks(bench, "online", 201) == IN_TIME
    assert asks(bench, "online", 201) == LATE
    assert asks(bench, "background", 349) == LATE
    assert asks(bench, "background", 401) == IN_TIME


@check
def who_shares_a_dispatch_starts_with_it() -> None:
    bench = busy(EARLY, max_batch_size=4)
    queue(bench, "background", 3)
    assert asks(bench, "background", 51) == IN_TIME
    assert asks(bench, "background", 99) == LATE
    assert asks(bench, "background", 101) == IN_TIME


@check
def rows_of_another_signature_do_not_join() -> None:
    bench = busy(EARLY, max_batch_size=4)
    for signature in ("a", "b", "c"):
        queue(bench, "background", 2, signature=signature)
    assert asks(bench, "background", 199) == LATE
    assert asks(bench, "background", 99, signature="b") == LATE
    assert asks(bench, "background", 101, signature="b") == IN_TIME


@check
def all_instances_work_on_what_is_ahead() -> None:
    bench = busy(EARLY, instances=2)
    queue(bench, "background", 4)
    assert asks(bench, "background", 149) == LATE
    assert asks(bench, "background", 151) == IN_TIME


@check
def by_deadline_only_earlier_ones_are_ahead() -> None:
    bench = busy(ONLINE, replace(EARLY, order=Order.DEADLINE))
    for timeout in (900, 120, 800, 700):
        queue(bench, "background", 1, timeout_ms=timeout)
    assert asks(bench, "background", 99) == IN_TIME
    assert asks(bench, "background", 119) == IN_TIME
    assert asks(bench, "background", 125) == LATE


@check
def of_other_tenants_nothing_is_ahead_for_sure() -> None:
    bench = busy(ONLINE, replace(EARLY, fair_by=FairBy.TENANT))
    queue(bench, "background", 5, tenant="a")
    assert asks(bench, "background", 55, tenant="b") == IN_TIME
    assert asks(bench, "background", 95, tenant="b") == LATE
    assert asks(bench, "background", 105, tenant="b") == IN_TIME


@check
def a_share_makes_the_start_earlier() -> None:
    bench = busy(replace(EARLY, min_share=0.5), ONLINE)
    queue(bench, "online", 20)
    waiting = 0
    while asks(bench, "background", 500) == IN_TIME:
        waiting += 1
    assert 3 <= waiting <= 6, "half of 450 ms, 50 ms each"


@check
def an_age_bound_makes_the_start_earlier() -> None:
    bench = busy(ONLINE, TrafficClass("middle", 2), replace(EARLY, level=3, max_wait=200 * MS))
    queue(bench, "middle", 20)
    assert asks(bench, "background", 190) == LATE
    assert asks(bench, "background", 210) == IN_TIME


@check
def who_may_be_answered_at_its_timeout_is_not_ahead() -> None:
    bench = busy(TrafficClass("online", 1, default_timeout=90 * MS), EARLY)
    queue(bench, "online", 10)
    assert asks(bench, "background", 100) == IN_TIME


@check
def who_has_left_is_not_ahead() -> None:
    bench = busy(ONLINE, EARLY)
    first = bench.next_id
    queue(bench, "background", 4)
    assert asks(bench, "background", 220) == LATE
    bench.scheduler.cancel(first, bench.now)
    assert asks(bench, "background", 220) == IN_TIME


@check
def the_parts_of_a_request_that_were_sent_are_not_ahead() -> None:
    bench = busy(EARLY)
    (large,) = bench.submit("background", rows=4)
    assert bench.advance() == []
    assert asks(bench, "background", 249) == LATE
    bench.now += 50 * MS
    (part,) = bench.complete(bench.flying()[0])
    assert part.parts[0].request_id == large
    assert asks(bench, "background", 199) == LATE
    assert asks(bench, "background", 201) == IN_TIME


@check
def who_may_be_delayed_is_ahead_of_the_less_urgent_alone() -> None:
    delayed = TrafficClass("delayed", 1, default_timeout=10 * MS, timeout_action=TimeoutAction.DELAY)
    bench = busy(delayed, replace(EARLY, name="beside", level=1), EARLY)
    queue(bench, "delayed", 4)
    assert asks(bench, "beside", 51) == IN_TIME
    assert asks(bench, "background", 299) == LATE
    bench.now += 10 * MS
    bench.advance()
    assert asks(bench, "beside", 91) == IN_TIME
    assert asks(bench, "background", 339) == LATE


@check
def who_is_refused_early_takes_nobodys_place() -> None:
    bench = busy(ONLINE, replace(EARLY, max_queue_size=2))
    hopeless = bench.submit("background", "background", timeout_ms=10)
    bench.submit("background", "background")
    bench.advance()
    assert bench.outcomes.keys() & set(range(hopeless[0], bench.next_id)) == set(hopeless)


@check
def what_was_predicted_and_what_came_true_is_told() -> None:
    bench = busy(ONLINE, EARLY)
    queue(bench, "background", 3)
    for _ in range(4):
        bench.now += 50 * MS
        bench.complete(bench.flying()[0])
    (waits,) = bench.scheduler.predicted_waits.values()
    assert (waits.requests, waits.predicted, waits.actual) == (3, 300 * MS, 300 * MS)


# When it is about to be sent.


def _ahead_of_a_late_completion() -> tuple[Bench, int, int]:
    """Two wait, in time until more urgent work came; now the first can be sent ahead, to start 0.1 ms too late."""
    bench = busy(ONLINE, EARLY)
    (late,) = bench.submit("background", timeout_ms=99.9)
    (patient,) = bench.submit("background")
    bench.advance()
    assert late not in bench.outcomes
    bench.submit("online")
    bench.advance()
    bench.now += 50 * MS
    assert len(bench.complete(bench.flying()[0])) == 1
    bench.now = bench.scheduler._executor.next_ahead() or 0
    return bench, late, patient


@check
def who_would_be_sent_ahead_too_late_is_refused_instead() -> None:
    bench, late, patient = _ahead_of_a_late_completion()
    (ahead,) = bench.advance()
    assert bench.outcomes.get(late) == LATE
    assert "predicted to wait 100 ms" in bench.errors[late]
    assert [part.request_id for part in ahead.parts] == [patient]


@check
def who_is_refused_when_its_share_is_due_is_not_charged() -> None:
    """Its class is owed what the urgent dispatch took from it, and who comes after it gets that."""
    bench = busy(replace(EARLY, min_share=0.25), ONLINE)
    (late,) = bench.submit("background", timeout_ms=99.9)
    (patient,) = bench.submit("background")
    assert bench.advance() == []
    queue(bench, "online", 2)
    bench.now += 50 * MS
    assert len(bench.complete(bench.flying()[0])) == 1
    bench.now = bench.scheduler._executor.next_ahead() or 0
    (ahead,) = bench.advance()
    assert bench.outcomes.get(late) == LATE
    assert [part.request_id for part in ahead.parts] == [patient], "urgent work waits, and has had its part"
