# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.ops.bench.aims import ALL, Metric, at_least, at_most, judge, step_name
from priority_router.ops.bench.stats import Spread

from .ledgers import summary

P99 = Metric("p99_ms", "online")


def rounds(*pairs):
    return [
        {"router": summary(online={"p99_ms": own}), "levels": summary(online={"p99_ms": base})} for own, base in pairs
    ]


def test_arms_are_compared_within_a_round():
    aim = at_most(0.6, P99, of="levels")
    # Each round's ratio is 0.5, while the ratio of the medians would be 1.
    [verdict] = judge([aim], rounds((10, 20), (20, 40), (100, 200)))
    assert verdict.values == (0.5, 0.5, 0.5)
    assert verdict.reached == Spread(0.5, 0.5, 0.5)
    assert verdict.met


@pytest.mark.parametrize(("aim", "met"), [(at_most(15, P99), False), (at_least(15, P99), True)])
def test_the_median_is_judged_in_the_aims_direction(aim, met):
    [verdict] = judge([aim], rounds((1, 1), (16, 1), (17, 1)))
    assert verdict.reached == Spread(16, 1, 17)
    assert verdict.met is met


def test_the_limit_itself_is_met():
    for aim in (at_most(15, P99), at_least(15, P99)):
        assert judge([aim], rounds((15, 1)))[0].met


def test_a_constant_base_and_a_difference():
    floor = at_most(1.1, P99, of_floor_ms=75.0)
    added = at_most(1.2, P99, above="levels")
    ratio, difference = judge([floor, added], rounds((150, 149)))
    assert ratio.values == (2.0,)
    assert difference.values == (1.0,)


def test_rows_of_all_classes_or_one_and_the_busy_share():
    arms = {"router": summary(busy=0.97, online={"rows_per_s": 16.0}, background={"rows_per_s": 60.0})}
    assert Metric("rows_per_s", ALL).of(arms, "router") == 76
    assert Metric("rows_per_s", "online").of(arms, "router") == 16
    assert Metric("busy").of(arms, "router") == 0.97


def test_what_was_not_measured_is_not_judged():
    aim = at_most(0.6, P99, of="levels")
    incomplete = [{"router": summary(online={"p99_ms": 1.0})}, {"router": summary(online={}), "levels": summary()}]
    [verdict] = judge([aim], incomplete)
    assert (verdict.arm, verdict.reached, verdict.met) == ("router", None, None)


def test_other_arms_are_shown_but_do_not_decide():
    made = [{"router": summary(busy=0.9), "router-plain": summary(busy=0.99)}]
    first, second = judge([at_least(0.96, Metric("busy"))], made)
    assert (first.arm, first.decisive, first.met) == ("router", True, False)
    assert (second.arm, second.decisive, second.met) == ("router-plain", False, True)


@pytest.mark.parametrize(
    ("aim", "text", "arms"),
    [
        (at_least(0.9, Metric("busy")), "executor busy", ("router", "router-plain")),
        (at_most(1, P99, of="levels"), "online p99 / that of levels", ("router", "router-plain")),
        (at_most(1, P99, of="router-plain"), "online p99 / that of router-plain", ("router",)),
        (
            at_most(1.1, P99, of_floor_ms=75.0),
            "online p99 / floor of 75 ms (half a batch + its own)",
            ("router", "router-plain"),
        ),
        (
            at_least(1, Metric("rows_per_s", ALL), of="levels"),
            "rows/s / those of levels",
            ("router", "router-plain"),
        ),
        (
            at_most(1, Metric("p50_ms", step_name(8)), above="levels"),
            "p50 at 8 in flight - that of levels, ms",
            ("router", "router-plain"),
        ),
    ],
)
def test_an_aim_says_what_it_compares(aim, text, arms):
    assert (aim.text, aim.arms) == (text, arms)


def test_what_an_aim_is_held_against_is_the_same_number_elsewhere():
    share, added = at_most(0.6, P99, of="levels"), at_most(1.2, P99, above="levels")
    assert share.base == added.base == Metric("p99_ms", "online", "levels")
    assert (share.by, added.by, at_most(1.1, P99, of_floor_ms=75.0).base) == ("ratio", "difference", 75.0)
    assert (at_most(1, P99).at_most, at_least(1, P99).at_most) == (True, False)
