# SPDX-License-Identifier: Apache-2.0
"""Lanes, deadlines, batching and lead, each alone."""

from itertools import count

import pytest
from priority_router.core.batching import propose
from priority_router.core.deadlines import SLACK, Deadlines
from priority_router.core.fill_budget import FillBudget
from priority_router.core.lanes import Lanes
from priority_router.core.lead import LONGEST_SHARE, SHORTEST, Lead
from priority_router.core.lines import Entry
from priority_router.core.service_times import ServiceTimes
from priority_router.core.values import MICROSECOND, Request, TrafficClass
from unit.core.build import BACKGROUND, MS, ONLINE, policy

sequence = count(1)


def entry(traffic_class=BACKGROUND, rows=1, signature="s", timeout=0):
    number = next(sequence)
    return Entry(Request(number, traffic_class.name, rows, signature), traffic_class, number, 0, timeout)


def lanes_of(*entries):
    lanes = Lanes(policy())
    for one in entries:
        lanes.add(one)
    return lanes


class TestLanes:
    def test_head_is_the_oldest_of_the_most_urgent_level(self):
        old, new, urgent = entry(), entry(), entry(ONLINE)
        lanes = lanes_of(old, new, urgent)
        assert lanes.head() is urgent
        lanes.remove(urgent)
        assert lanes.head() is old
        lanes.delay(old)
        assert lanes.head() is new
        assert len(lanes) == 2

    def test_waiting_counts_per_class(self):
        lanes = lanes_of(entry(), entry(), gone := entry(ONLINE))
        lanes.remove(gone)
        assert lanes.waiting == {"online": 0, "background": 2}

    def test_a_signature_leaves_nothing_behind(self):
        one = entry(signature="rare")
        lanes = lanes_of(one)
        lanes.remove(one)
        assert one.line._by_signature == {}


class TestDeadlines:
    def test_expires_in_order_of_deadline(self):
        deadlines = Deadlines()
        late, soon = entry(timeout=20), entry(timeout=10)
        for one in (late, soon):
            deadlines.add(one, one.deadline)
        assert deadlines.earliest() == 10
        assert deadlines.pop_expired(9) == []
        assert deadlines.pop_expired(25) == [soon, late]
        assert deadlines.earliest() is None

    def test_removed_requests_do_not_expire_and_do_not_pile_up(self):
        deadlines = Deadlines()
        for _ in range(10 * SLACK):
            one = entry(timeout=10)
            deadlines.add(one, one.deadline)
            deadlines.remove(one)
        assert len(deadlines._heap) <= SLACK + 1
        assert deadlines.pop_expired(100) == []


class TestBatching:
    def rows(self, *entries, times=None, **keys):
        batch = propose(lanes_of(*entries), times or ServiceTimes(4), FillBudget(0.95), policy(**keys), {})
        assert batch is not None
        return [(entries.index(one), rows) for one, rows in batch.picks]

    def test_joins_in_serving_order_across_levels(self):
        assert self.rows(entry(), entry(ONLINE), entry(), entry(ONLINE)) == [(1, 1), (3, 1), (0, 1), (2, 1)]

    def test_a_request_that_does_not_fit_ends_the_joining_at_its_level(self):
        assert self.rows(entry(rows=3), entry(rows=2), entry(rows=1)) == [(0, 3)]
        assert self.rows(entry(ONLINE, rows=3), entry(ONLINE, rows=2), entry(rows=1)) == [(0, 3), (2, 1)]

    def test_less_urgent_rows_join_only_where_they_cost_little(self):
        times = ServiceTimes(4)
        for rows in (1, 2, 3, 4):
            for _ in range(3):
                times.sent("s", rows)
                times.learn("s", rows, rows * MS)
        requests = (entry(ONLINE), entry(), entry(), entry(ONLINE))
        assert self.rows(*requests, times=times) == [(0, 1), (3, 1)]
        assert len(self.rows(*requests, times=times, max_fill_slowdown=1.0)) == 4

    @pytest.mark.parametrize(("unsent", "parts"), [(9, [4]), (5, [4]), (4, [4]), (2, [2, 1])])
    def test_only_the_last_part_of_a_split_request_is_joined(self, unsent, parts):
        large = entry(rows=9)
        large.next_row = 9 - unsent
        assert [rows for _, rows in self.rows(large, entry(rows=1))] == parts


class TestLead:
    def test_follows_the_p90_of_the_way(self):
        lead = Lead()
        for delay in [1 * MS] * 89 + [3 * MS] * 11:
            lead.observe_way(delay)
        assert lead.before(1_000 * MS) == 3 * MS

    def test_stays_between_its_bounds(self):
        lead = Lead()
        lead.observe_way(20 * MS)
        assert lead.before(8 * MS) == 8 * MS // LONGEST_SHARE
        assert lead.before(100 * MICROSECOND) == SHORTEST

    def test_grows_while_tight_sends_last_longer_by_what_they_lacked_and_shrinks_again(self):
        lead = Lead()
        lead.observe_way(1 * MS)
        calm = lead.before(50 * MS)
        for step in range(64):
            late = step % 2
            lead.observe_ahead(spare=2 * MS * (1 - late), took=(50 + 2 * late) * MS, estimate=50 * MS)
        assert lead.before(50 * MS) > calm
        for step in range(200):
            lead.observe_ahead(spare=2 * MS * (step % 2), took=50 * MS, estimate=50 * MS)
        assert lead.before(50 * MS) == calm

    def test_equal_spare_times_tell_nothing(self):
        lead = Lead()
        lead.observe_way(1 * MS)
        for _ in range(64):
            lead.observe_ahead(spare=0, took=50 * MS, estimate=50 * MS)
        assert lead.before(50 * MS) == 1 * MS


class TestFillBudget:
    def test_waste_is_allowed_up_to_the_share_given_away(self):
        budget = FillBudget(0.95)
        filled = 0
        for _ in range(1000):
            wasted = 0 if budget.spent else 20
            filled += budget.spent
            budget.charge(100, wasted, 1000)
        assert filled == pytest.approx(750, abs=20)  # a quarter of the dispatches may waste 20 %

    def test_credit_is_bounded_and_a_quiet_time_clears_the_debt(self):
        budget = FillBudget(0.95)
        for _ in range(1000):
            budget.charge(100, 0, 10)
        budget.charge(0, 11, 10)
        assert budget.spent
        budget.clear()
        assert not budget.spent


class TestSlowdownBase:
    def test_is_the_level_of_the_head_whatever_joined_since(self):
        levels = tuple(TrafficClass(str(level), level) for level in (1, 2, 3))
        times = ServiceTimes(32)
        for rows in (1, 2, 3, 4, 8, 16, 32):
            for _ in range(3):
                times.sent("s", rows)
                times.learn("s", rows, (10 + rows) * MS)
        lanes = Lanes(policy(*levels))
        for traffic_class, waiting in zip(levels, (1, 1, 9), strict=True):
            for _ in range(waiting):
                lanes.add(entry(traffic_class))
        batch = propose(lanes, times, FillBudget(0.95), policy(*levels, max_batch_size=32), {})
        assert batch is not None
        assert batch.rows == 2
        spent = FillBudget(0.95)
        spent.charge(1, 1000, 0)
        batch = propose(lanes, times, spent, policy(*levels, max_batch_size=32), {})
        assert batch is not None
        assert batch.rows == 11
