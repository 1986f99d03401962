# SPDX-License-Identifier: Apache-2.0
"""Checks of the longest waits (``core/worst_case.py``): worlds made so that a request waits as long as it can."""

from __future__ import annotations

from conformance.checks import check
from conformance.worlds import MS
from conformance.worst import LONGEST, compare, worst_played
from priority_router.core.values import SECOND, Order, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.ops.simulate.arrivals import Stream, own_signatures
from unit.core.build import BACKGROUND, ONLINE, Bench, ids

FULL = SECOND / LONGEST
"""Dispatches per second of one instance."""


def _reached(
    policy: SchedulingPolicy, streams: list[Stream], largest: int = 1, kind: str = "longest"
) -> dict[str, float]:
    return compare(policy, largest, worst_played(policy, streams, kind, 400, 3))


def _policy(*classes: TrafficClass, **keys: object) -> SchedulingPolicy:
    return SchedulingPolicy(classes, **{"max_execution": LONGEST, **keys})  # type: ignore[arg-type]


@check
def a_full_queue_and_what_is_in_flight_bound_the_wait() -> None:
    for instances in (1, 2):
        policy = _policy(TrafficClass("online", 1, max_queue_size=3), instances=instances)
        reached = _reached(policy, [Stream("online", 4 * instances * FULL, burst=20)])
        assert reached["online"] == 1, "of the very start, when nothing is learned and everything is sent ahead"


@check
def the_bound_counts_the_parts_of_requests_that_are_split() -> None:
    policy = _policy(TrafficClass("online", 1, max_queue_size=3), max_batch_size=2)
    reached = _reached(policy, [Stream("online", 4 * FULL, lambda _: 6, own_signatures())], largest=6)
    assert reached["online"] > 0.8


@check
def the_bound_counts_requests_that_have_waited_for_their_class_s_limit() -> None:
    background = TrafficClass("background", 2, max_queue_size=12, max_wait=1)
    policy = _policy(TrafficClass("online", 1, max_queue_size=1), background)
    streams = [Stream("background", 4 * FULL, burst=20), Stream("online", 0.2 * FULL)]
    assert _reached(policy, streams)["online"] > 0.8


@check
def the_bound_of_a_less_urgent_class_counts_the_age_and_what_came_before() -> None:
    for max_wait in (1, 500 * MS, 2 * SECOND):
        background = TrafficClass("background", 2, max_queue_size=2, max_wait=max_wait)
        policy = _policy(TrafficClass("online", 1, max_queue_size=12), background)
        streams = [Stream("online", 4 * FULL, burst=15), Stream("background", FULL)]
        assert _reached(policy, streams)["background"] > 0.8


@check
def the_bound_counts_what_others_claim_for_their_share() -> None:
    background = TrafficClass("background", 2, max_queue_size=50, min_share=0.5)
    policy = _policy(TrafficClass("online", 1, max_queue_size=20), background)
    streams = [Stream("online", 4 * FULL, burst=20), Stream("background", 4 * FULL)]
    assert _reached(policy, streams)["online"] > 0.7


@check
def a_share_bounds_the_wait_where_nobody_joins() -> None:
    background = TrafficClass("background", 2, max_queue_size=3, min_share=0.2)
    policy = _policy(ONLINE, background)
    assert _reached(policy, [Stream("online", FULL), Stream("background", FULL)])["background"] > 0.1


@check
def a_timeout_bounds_the_wait_for_a_start() -> None:
    """What is sent just before its timeout waits inside Triton for another execution."""
    background = TrafficClass("background", 2, default_timeout=LONGEST + 1)
    assert _reached(_policy(ONLINE, background), [Stream("background", FULL, burst=20)])["background"] > 0.99


@check
def deadlines_give_no_bound_where_later_requests_pass() -> None:
    online = TrafficClass("online", 1, max_queue_size=3, order=Order.DEADLINE)
    streams = [Stream("online", 0.1 * FULL), Stream("online", 1.5 * FULL, timeout=200 * MS)]
    assert not _reached(_policy(online), streams)


@check
def what_may_be_delayed_has_no_bound() -> None:
    online = TrafficClass("online", 1, max_queue_size=3, default_timeout=60 * MS, timeout_action=TimeoutAction.DELAY)
    other = TrafficClass("other", 1, max_queue_size=3)
    reached = _reached(_policy(online, other), [Stream("online", FULL), Stream("other", 1.2 * FULL)])
    assert set(reached) == {"other"}


@check
def inside_a_shared_executor_only_the_most_urgent_have_a_bound() -> None:
    background = TrafficClass("background", 2, max_queue_size=3, max_wait=10 * MS)
    policy = _policy(TrafficClass("online", 1, max_queue_size=3), background, shared_executor=True)
    streams = [Stream("online", 2 * FULL), Stream("background", FULL)]
    assert set(_reached(policy, streams)) == {"online"}


# What the bounds rest on.


def _waits_inside_triton(*classes: TrafficClass) -> tuple[Bench, int]:
    """Two instances, busy; a less urgent dispatch waits inside Triton and was passed by one that runs now."""
    bench = Bench(*classes, instances=2, max_batch_size=1)
    for _ in range(3):
        bench.submit("background")
        bench.advance()
    bench.submit("online")
    bench.advance()
    bench.now += 50 * MS
    bench.complete(bench.sent[0])
    return bench, ids(bench.sent[2])[0]


@check
def what_waits_inside_triton_is_passed_once_where_a_wait_is_promised() -> None:
    for promise in (TrafficClass("background", 2, max_wait=SECOND), TrafficClass("background", 2, min_share=0.1)):
        bench, waiting = _waits_inside_triton(ONLINE, promise)
        (second,) = bench.submit("online")
        assert not bench.advance(), "it would be the second to pass"
        bench.now += 10 * MS
        assert [ids(each) for each in bench.complete(bench.sent[1])] == [[second]]
        assert bench.scheduler._executor.flights[bench.sent[2].id].started == bench.now, waiting


@check
def without_a_promise_it_is_passed_as_before() -> None:
    bench, _ = _waits_inside_triton(ONLINE, BACKGROUND)
    bench.submit("online")
    assert len(bench.advance()) == 1


@check
def a_class_of_single_rows_claims_no_more_than_twice_its_share() -> None:
    reports = TrafficClass("reports", 2, min_share=0.2)
    bench = Bench(ONLINE, reports, TrafficClass("batch", 3), max_batch_size=8)
    for rows in (8, 4, 2, 1):
        bench.learn(50, rows=rows, class_name="online", times=6)
    (running,) = bench.submit("online") and bench.advance()
    heads: list[str] = []
    for _ in range(100):
        for name, least in (("online", 30), ("batch", 30), ("reports", 1)):
            bench.submit(*[name] * (least - bench.scheduler.waiting[name]))
        bench.now += 50 * MS
        following = bench.complete(running)
        (running,) = following or bench.flying()[:1]
        heads.append(bench.names[ids(running)[0]])
    assert heads.count("reports") < 45
