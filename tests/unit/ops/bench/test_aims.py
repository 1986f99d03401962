# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.ops.bench.aims import ALL, Aim, Metric, judge
from priority_router.ops.bench.stats import Spread

from .ledgers import summary

P99 = Metric("p99_ms", "online")


def rounds(*pairs):
    return [
        {"router": summary(online={"p99_ms": own}), "levels": summary(online={"p99_ms": base})} for own, base in pairs
    ]


def test_arms_are_compared_within_a_round():
    aim = Aim("", P99, 0.6, at_most=True, base=Metric("p99_ms", "online", "levels"))
    # Each round's ratio is 0.5, while the ratio of the medians would be 1.
    [verdict] = judge([aim], rounds((10, 20), (20, 40), (100, 200)))
    assert verdict.values == (0.5, 0.5, 0.5)
    assert verdict.reached == Spread(0.5, 0.5, 0.5)
    assert verdict.met


@pytest.mark.parametrize(("at_most", "met"), [(True, False), (False, True)])
def test_the_median_is_judged_in_the_aims_direction(at_most, met):
    [verdict] = judge([Aim("", P99, 15, at_most=at_most)], rounds((1, 1), (16, 1), (17, 1)))
    assert verdict.reached == Spread(16, 1, 17)
    assert verdict.met is met


def test_the_limit_itself_is_met():
    for at_most in (True, False):
        assert judge([Aim("", P99, 15, at_most=at_most)], rounds((15, 1)))[0].met


def test_a_constant_base_and_a_difference():
    floor = Aim("", P99, 1.1, at_most=True, base=75.0)
    added = Aim("", P99, 1.2, at_most=True, base=Metric("p99_ms", "online", "levels"), by="difference")
    ratio, difference = judge([floor, added], rounds((150, 149)))
    assert ratio.values == (2.0,)
    assert difference.values == (1.0,)


def test_rows_of_all_classes_or_one_and_the_busy_share():
    arms = {"router": summary(busy=0.97, online={"rows_per_s": 16.0}, background={"rows_per_s": 60.0})}
    assert Metric("rows_per_s", ALL).of(arms, "router") == 76
    assert Metric("rows_per_s", "online").of(arms, "router") == 16
    assert Metric("busy").of(arms, "router") == 0.97


def test_what_was_not_measured_is_not_judged():
    aim = Aim("", P99, 0.6, at_most=True, base=Metric("p99_ms", "online", "levels"))
    incomplete = [{"router": summary(online={"p99_ms": 1.0})}, {"router": summary(online={}), "levels": summary()}]
    [verdict] = judge([aim], incomplete)
    assert (verdict.arm, verdict.reached, verdict.met) == ("router", None, None)


def test_other_arms_are_shown_but_do_not_decide():
    made = [{"router": summary(busy=0.9), "router-plain": summary(busy=0.99)}]
    first, second = judge([Aim("", Metric("busy"), 0.96, at_most=False)], made)
    assert (first.arm, first.decisive, first.met) == ("router", True, False)
    assert (second.arm, second.decisive, second.met) == ("router-plain", False, True)
