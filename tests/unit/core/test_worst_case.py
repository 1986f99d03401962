# SPDX-License-Identifier: Apache-2.0
"""Longest waits by hand, of an executor that takes at most 50 ms."""

from __future__ import annotations

from dataclasses import replace

import pytest
from priority_router.core.values import SECOND, FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass
from priority_router.core.worst_case import WorstWait, worst_waits
from unit.core.build import MS

ONLINE = TrafficClass("online", 1, max_queue_size=4)
BACKGROUND = TrafficClass("background", 2, max_queue_size=10, max_wait=300 * MS)


def policy(*classes: TrafficClass, **keys: object) -> SchedulingPolicy:
    return SchedulingPolicy(classes, **{"max_execution": 50 * MS, **keys})  # type: ignore[arg-type]


def ms(*classes: TrafficClass, largest: int | None = 1, **keys: object) -> dict[str, tuple[float, float]]:
    """Start and answer by class, in ms; every class must have both."""
    waits = {}
    for wait in worst_waits(policy(*classes, **keys), largest):
        assert wait.start is not None, wait
        assert wait.answer is not None, wait
        assert not wait.missing
        waits[wait.class_name] = (wait.start / MS, wait.answer / MS)
    return waits


def missing(name: str, *classes: TrafficClass, largest: int | None = 1, **keys: object) -> list[tuple[str, str | None]]:
    """Keys that the class lacks, with the class that they belong to."""
    (wait,) = (each for each in worst_waits(policy(*classes, **keys), largest) if each.class_name == name)
    return [(each.key, each.class_name) for each in wait.missing]


def test_two_in_flight_and_three_that_wait_before_it() -> None:
    assert ms(ONLINE) == {"online": (5 * 50, 6 * 50)}


def test_two_instances_start_two_each_time() -> None:
    assert ms(ONLINE, instances=2)["online"] == (3 * 50, 4 * 50), "2 run, 2 were sent ahead, 3 wait"


@pytest.mark.parametrize(("key", "ahead"), [("overtaking", 1), ("shared_executor", 2)])
def test_as_many_more_may_be_in_flight(key: str, ahead: int) -> None:
    assert ms(ONLINE, **{key: True})["online"][0] == (5 + ahead) * 50


def test_requests_of_several_parts_count_by_part() -> None:
    assert ms(ONLINE, largest=12, max_batch_size=4)["online"] == ((2 + 3 * 3) * 50, (2 + 3 * 3 + 2 + 1) * 50)
    assert ms(ONLINE, largest=4, max_batch_size=4) == ms(ONLINE)
    assert ms(ONLINE, largest=None, max_batch_size=0) == ms(ONLINE), "without a batch axis nothing is split"


def test_a_blocking_bound_may_leave_one_row_to_a_part() -> None:
    bounding = replace(ONLINE, max_blocking=10 * MS)
    waits = ms(bounding, BACKGROUND, largest=4, max_batch_size=4)
    assert waits["online"][0] == (2 + 3 + 10 * 4) * 50


def test_those_that_age_stand_before_the_most_urgent_by_their_arrival() -> None:
    assert ms(ONLINE, BACKGROUND)["online"][0] == (2 + 3 + 10) * 50


def test_age_then_what_came_before() -> None:
    assert ms(ONLINE, BACKGROUND)["background"][0] == max((2 + 4 + 9) * 50, 300 + (2 + 9) * 50)
    soon = replace(BACKGROUND, max_wait=1 * MS)
    assert ms(ONLINE, soon)["background"][0] == (2 + 4 + 9) * 50


def test_one_pass_inside_triton_where_several_wait_there() -> None:
    keys = {"instances": 2}
    assert ms(ONLINE, BACKGROUND, **keys)["background"][0] == 300 + 50 * ((2 + 9 + 1 + 1) / 2 + 0.5)
    assert ms(ONLINE, BACKGROUND, levels=False, **keys)["background"][0] == 300 + 50 * (2 + 9 + 1) / 2


def test_a_share_of_others_lengthens_the_wait() -> None:
    sharing = TrafficClass("sharing", 2, min_share=0.2)
    owed, late = 0.2 * 3, 2 * 1.2
    (wait,) = (each for each in worst_waits(policy(ONLINE, sharing), 1) if each.class_name == "online")
    assert wait.start is not None
    assert wait.start / MS == pytest.approx((5 + owed + late) / (1 - 0.2) * 50)


def test_what_others_may_fill_counts_half() -> None:
    sharing = TrafficClass("sharing", 2, min_share=0.2)
    (alone, *_), (joined, *_) = (
        worst_waits(policy(ONLINE, sharing, *more, max_batch_size=4), 1) for more in ((), (TrafficClass("last", 3),))
    )
    assert alone.start is not None
    assert joined.start is not None
    assert alone.start / MS == pytest.approx((5 + 0.6 + 2.4) / 0.8 * 50)
    assert joined.start / MS == pytest.approx((5 + 0.6 / 0.5 + 2 * 1.4) / 0.6 * 50)


def test_its_own_share_bounds_a_wait_where_nothing_is_joined() -> None:
    sharing = TrafficClass("sharing", 2, max_queue_size=3, min_share=0.2)
    (wait,) = (each for each in worst_waits(policy(ONLINE, sharing), 1) if each.class_name == "sharing")
    debt = 0.2 * 1000
    assert wait.start is not None
    assert wait.start / MS == pytest.approx(2 * 50 + ((2 + 2 * 1.2 + 3 * 0.2) * 50 + debt) / 0.2 + 50)
    assert not wait.missing
    assert missing("sharing", ONLINE, sharing, max_batch_size=2) == [("max_wait_microseconds", "sharing")]


def test_a_timeout_bounds_the_start_and_of_whole_requests_the_answer() -> None:
    limited = TrafficClass("background", 2, default_timeout=200 * MS)
    _, wait = worst_waits(policy(ONLINE, limited), 1)
    assert wait == WorstWait("background", 250 * MS, 300 * MS)
    _, wait = worst_waits(policy(ONLINE, limited, max_batch_size=4), 8)
    assert (wait.start, wait.answer) == (250 * MS, None)
    assert [each.key for each in wait.missing] == ["max_wait_microseconds", "max_queue_size"]


def test_the_shorter_of_two_bounds_counts() -> None:
    assert ms(replace(ONLINE, default_timeout=20 * MS))["online"] == (70, 120)
    assert ms(replace(ONLINE, default_timeout=9 * SECOND))["online"] == (250, 300)


def test_nothing_is_bounded_without_the_longest_execution() -> None:
    for wait in worst_waits(policy(ONLINE, TrafficClass("rest", 2), max_execution=0), 1):
        assert (wait.start, wait.answer) == (None, None)
        assert wait.missing[0].key == "max_execution_microseconds"
    assert missing("rest", ONLINE, TrafficClass("rest", 2), max_execution=0) == [
        ("max_execution_microseconds", None),
        ("max_wait_microseconds", "rest"),
        ("max_queue_size", "rest"),
    ]


def test_what_is_given_up_too_early_is_not_counted() -> None:
    assert missing("online", ONLINE, executor_timeout=99 * MS) == [("executor_timeout_microseconds", None)]
    assert ms(ONLINE, executor_timeout=100 * MS)


@pytest.mark.parametrize(
    ("classes", "lacking"),
    [
        ([replace(ONLINE, max_queue_size=0)], ("max_queue_size", "online")),
        ([ONLINE, replace(ONLINE, name="twin", max_queue_size=0)], ("max_queue_size", "twin")),
        ([ONLINE, replace(BACKGROUND, max_queue_size=0)], ("max_queue_size", "background")),
        ([replace(ONLINE, order=Order.DEADLINE)], ("max_wait_microseconds", "online")),
        ([replace(ONLINE, fair_by=FairBy.TENANT)], ("max_wait_microseconds", "online")),
        ([replace(ONLINE, timeout_action=TimeoutAction.DELAY)], ("max_wait_microseconds", "online")),
        ([ONLINE, TrafficClass("sharing", 2, min_share=1)], ("min_share", "sharing")),
    ],
)
def test_what_is_missing_is_named(classes: list[TrafficClass], lacking: tuple[str, str]) -> None:
    assert missing("online", *classes) == [lacking]


def test_the_largest_request_is_asked_for_where_it_matters() -> None:
    (wait,) = worst_waits(policy(ONLINE, max_batch_size=4))
    assert [(each.key, each.in_router) for each in wait.missing] == [("max_batch_size", True)]


def test_deadlines_that_only_the_class_sets_are_arrivals() -> None:
    own = replace(ONLINE, order=Order.DEADLINE, allow_timeout_override=False)
    delayed = replace(ONLINE, timeout_action=TimeoutAction.DELAY, allow_timeout_override=False)
    assert ms(own) == ms(delayed) == ms(ONLINE), "without a timeout nothing is delayed"


def test_split_requests_that_pass_each_other_can_outnumber_the_queue() -> None:
    by_deadline = replace(ONLINE, name="passing", order=Order.DEADLINE)
    by_tenant = replace(ONLINE, name="passing", fair_by=FairBy.TENANT)
    for passing, key in ((by_deadline, "allow_timeout_override"), (by_tenant, "fair_by")):
        assert missing("online", ONLINE, passing, largest=8, max_batch_size=4) == [(key, "passing")]
        assert not missing("online", ONLINE, passing, largest=4, max_batch_size=4)


def test_one_that_has_begun_may_stand_above_the_limit_beside_delayed_ones() -> None:
    delayed = replace(ONLINE, name="delayed", timeout_action=TimeoutAction.DELAY)
    assert ms(ONLINE, replace(ONLINE, name="twin"), largest=8, max_batch_size=4)["online"][0] == (2 + 14) * 50
    (wait, _) = worst_waits(policy(ONLINE, delayed, max_batch_size=4), 8)
    assert wait.start == (2 + 14 + 2) * 50 * MS


def test_long_executions_count_more_than_a_small_share() -> None:
    """Two claims of a second each are sent before either is charged, and a debt of a second's share is kept."""
    sharing = TrafficClass("sharing", 2, min_share=0.1)
    assert missing("online", ONLINE, sharing, max_execution=SECOND) == [("min_share", "sharing")]
    assert not missing("online", ONLINE, sharing, max_execution=200 * MS)


def test_inside_a_shared_executor_the_less_urgent_have_no_bound() -> None:
    assert missing("background", ONLINE, BACKGROUND, shared_executor=True) == [("shared_executor", None)]
