# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.core.service_times import KEYS, SAMPLES, TRIAL_AGAIN, TRIALS, ServiceTimes


def learned(points, max_rows=8, signature="s", repeats=3):
    times = ServiceTimes(max_rows)
    for rows, time in points.items():
        for _ in range(repeats):
            times.sent(signature, rows)
            times.learn(signature, rows, time)
    return times


def test_nothing_learned_says_so_and_fills():
    times = ServiceTimes(8)
    assert times.estimate("s", 4) is None
    assert times.efficient_rows("s", 8, 0.95) == 8
    assert times.fill_limit("s", 1, 0.1) == 8


def test_the_first_sample_is_dropped():
    times = ServiceTimes(4)
    times.sent("s", 1)
    times.learn("s", 1, 999)
    assert times.estimate("s", 1) is None
    times.learn("s", 1, 10)
    assert times.estimate("s", 1) == 10


def test_the_median_follows_a_change_within_the_window():
    times = learned({1: 10}, repeats=40)
    for _ in range(SAMPLES // 2 + 1):
        times.learn("s", 1, 30)
    assert times.estimate("s", 1) == 30


def test_one_outlier_does_not_move_the_estimate():
    times = learned({1: 10}, repeats=8)
    times.learn("s", 1, 5000)
    assert times.estimate("s", 1) == 10


def test_falls_back_to_the_row_count_and_then_to_the_model():
    times = learned({2: 20})
    assert times.estimate("other", 2) == 20
    assert times.estimate("other", 7) == 20


def test_between_two_learned_row_counts_lies_a_straight_line():
    times = learned({2: 20, 6: 60})
    assert times.estimate("s", 4) == 40


def test_a_fixed_time_fills_and_a_linear_one_does_not():
    fixed = learned({1: 50, 4: 50, 8: 50})
    linear = learned({1: 5, 4: 20, 8: 40})
    assert fixed.fill_limit("s", 1, 0.1) == 8
    assert linear.fill_limit("s", 1, 0.1) == 1
    assert fixed.efficient_rows("s", 1, 0.95) == 8
    assert linear.efficient_rows("s", 1, 0.95) == 1


def test_efficient_rows_is_the_smallest_within_the_share_of_the_best():
    # 10 + 10 per row: 1 row 0.05, 2 rows 0.0667, 4 rows 0.08, 8 rows 0.0889 rows per ns
    times = learned({1: 20, 2: 30, 4: 50, 8: 90})
    assert times.efficient_rows("s", 1, 0.85) == 4
    assert times.efficient_rows("s", 1, 0.95) == 6
    assert times.efficient_rows("s", 1, 1.0) == 8


def test_unknown_full_dispatches_are_filled_until_learned():
    times = learned({1: 5, 2: 10})
    assert times.efficient_rows("s", 1, 0.95) == 8


def test_smaller_row_counts_are_tried_a_few_times_even_without_samples():
    times = ServiceTimes(8)
    for _ in range(4):
        times.sent("s", 8)
    tried = []
    for _ in range(20):
        rows = times.efficient_rows("s", 8, 0.95)
        tried.append(rows)
        times.sent("s", rows)
    assert tried == [4] * TRIALS + [2] * TRIALS + [1] * TRIALS + [8] * (20 - 3 * TRIALS)


def test_an_old_row_count_is_tried_again():
    times = learned({1: 50, 2: 50, 4: 50, 8: 50}, repeats=TRIALS)
    tried = 0
    for _ in range(2 * TRIAL_AGAIN):
        rows = times.efficient_rows("s", 8, 0.95)
        tried += rows < 8
        times.sent("s", rows)
    assert 3 <= tried <= 6


def full_tries(times, dispatches):
    """Of so many dispatches, with 8 rows available each time, those that had 8."""
    tried = []
    for n in range(dispatches):
        rows = times.efficient_rows("s", 8, 0.95)
        times.sent("s", rows)
        if rows == 8:
            tried.append(n)
    return tried


def test_full_batches_that_seem_slow_are_tried_again():
    times = learned({1: 10, 2: 20, 4: 40, 8: 100}, repeats=TRIALS)  # 12.5 per row instead of 10
    assert len(full_tries(times, 2 * TRIAL_AGAIN)) in (1, 2)


def test_full_batches_that_are_hardly_slower_are_not_tried_again():
    times = learned({1: 10, 2: 20, 4: 40, 8: 99}, repeats=TRIALS)
    assert full_tries(times, 2 * TRIAL_AGAIN) == []


def test_one_full_batch_that_was_fast_is_followed_by_more():
    times = learned({1: 10, 2: 20, 4: 40, 8: 400}, repeats=TRIALS)
    assert full_tries(times, 9) == []
    times.learn("s", 8, 80)
    assert len(full_tries(times, 9)) == 9
    times.learn("s", 8, 400)
    assert full_tries(times, 9) == []


def test_memory_is_bounded_and_the_least_recent_forgotten():
    times = ServiceTimes(8)
    for n in range(3 * KEYS):
        for sample in (1000, n + 1):
            times.sent(n, 1)
            times.learn(n, 1, sample)
    assert len(times._by_signature) <= KEYS
    assert times.estimate(3 * KEYS - 1, 1) == 3 * KEYS
    assert times.estimate(0, 1) != 1


def test_row_counts_of_all_signatures_together_are_bounded_too():
    times = learned({rows: 1000 + rows for rows in range(1, 3 * KEYS)}, max_rows=4 * KEYS)
    assert len(times._any_signature.curve) == len(times._any_signature._row_counts) == KEYS
    assert times.estimate("other", 3 * KEYS - 1) == 1000 + 3 * KEYS - 1


@pytest.mark.parametrize("rows", range(1, 9))
def test_every_row_count_has_an_estimate_once_anything_is_learned(rows):
    assert learned({3: 30}).estimate("s", rows) == 30


def test_a_point_measured_too_high_does_not_end_the_filling():
    times = learned({1: 50, 2: 52, 3: 65, 4: 50}, max_rows=4)
    assert times.fill_limit("s", 1, 0.1) == 4


def test_cost_is_what_exceeds_efficient_batches():
    times = learned({1: 30, 8: 80})  # 10 per row at best
    assert times.cost("s", 1, 1.0) == (30, 20, 80)
    assert times.cost("s", 8, 0.5) == (80, 0, 80)
    assert ServiceTimes(8).cost("s", 1, 1.0) == (0, 0, 0)


def test_spread_is_that_of_the_own_row_count_alone():
    times = learned({2: 20})
    times.learn("s", 2, 10)
    assert times.spread("s", 2) == [10, 20, 20]
    assert times.spread("other", 2) == [10, 20, 20]
    assert times.spread("s", 3) == []
