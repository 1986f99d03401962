# SPDX-License-Identifier: Apache-2.0
"""A million steps under the policies of docs/policies.md: no bound is exceeded while times are as predicted."""

from __future__ import annotations

from itertools import accumulate

import pytest
from conformance.worlds import MS, Played, check_end, run
from priority_router.core.values import SECOND, SchedulingPolicy, TrafficClass
from priority_router.ops.simulate.arrivals import Stream, own_signatures, rows_up_to
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import NO_DELAYS, Setup

EXACT = ServiceTimes(4 * MS, 4 * MS)
ROWS = 8
BUDGET = 21 * MS
MAX_WAIT = 300 * MS
WARM_UP = 10 * SECOND
"""Until then some row counts are not measured yet."""


def play(requests: int, seed: int, max_blocking: int = BUDGET, max_wait: int = MAX_WAIT) -> Played:
    """Urgent bursts beside background of up to 16 rows. None joins another, so that every dispatch is one's own."""
    online = TrafficClass("online", 1, max_blocking=max_blocking)
    policy = SchedulingPolicy((online, TrafficClass("background", 2, max_wait=max_wait)), max_batch_size=ROWS)
    mix = own_signatures()
    streams = [
        Stream("online", 0.65 * SECOND / EXACT.expected(1, 0), signature=mix, burst=12),
        Stream("background", 0.2 * SECOND / EXACT.expected(ROWS, 0), rows_up_to(2 * ROWS), mix),
    ]
    setup = Setup(ExecutorShape(1, ROWS), EXACT, NO_DELAYS, dispatch_overhead=0)
    played = run(policy, setup, streams, requests, seed)
    check_end(played)
    return played


def longest_less_urgent(played: Played) -> int:
    """Longest dispatch in ns that a background request headed."""
    names = played.simulation.class_names
    return max(
        end - start
        for sent, start, end in played.taken
        if start > WARM_UP and names[sent.parts[0].request_id] == "background"
    )


def longest_past_its_turn(played: Played, max_wait: int = MAX_WAIT) -> int:
    """Longest time in ns that a background request stood still for what came after it, although it was past its bound.

    That is its wait beyond the bound without the executions of what came before it and was not over at the bound. Of
    those that came later it may find one running and one sent ahead.
    """
    arrived, names = played.simulation.arrived, played.simulation.class_names
    begun: dict[int, int] = {}
    for sent, start, _ in played.taken:
        begun.setdefault(sent.parts[0].request_id, start)
    took = [0] * len(arrived)
    for sent, start, end in played.taken:
        took[sent.parts[0].request_id] += end - start
    came_before = [0, *accumulate(took)]
    aged = [(arrived[who] + max_wait, who) for who in begun if names[who] == "background" and arrived[who] > WARM_UP]
    over = Sums(len(arrived))
    ended = sorted((end, end - start, sent.parts[0].request_id) for sent, start, end in played.taken)
    at, longest = 0, 0
    for bound, who in sorted(aged):
        while at < len(ended) and ended[at][0] <= bound:
            over.add(ended[at][2], ended[at][1])
            at += 1
        left = came_before[who] - over.below(who)
        longest = max(longest, begun[who] - bound - left)
    return longest


class Sums:
    """Sums of what was added below a place, in logarithmic time."""

    def __init__(self, places: int) -> None:
        self._tree = [0] * (places + 1)

    def add(self, place: int, value: int) -> None:
        place += 1
        while place < len(self._tree):
            self._tree[place] += value
            place += place & -place

    def below(self, place: int) -> int:
        total = 0
        while place:
            total += self._tree[place]
            place -= place & -place
        return total


def check_bounds(played: Played) -> None:
    assert 16 * MS < longest_less_urgent(played) <= BUDGET
    longest = max(end - start for _, start, end in played.taken)
    assert longest_past_its_turn(played) <= 2 * longest


def test_bounds_are_kept_and_are_exceeded_without_their_keys() -> None:
    check_bounds(play(4_000, 1))
    unbounded = play(4_000, 1, max_blocking=0, max_wait=0)
    assert longest_less_urgent(unbounded) > BUDGET
    longest = max(end - start for _, start, end in unbounded.taken)
    assert longest_past_its_turn(unbounded) > 3 * longest


@pytest.mark.slow
def test_no_bound_is_exceeded_in_a_million_steps() -> None:
    played = play(455_000, 2)
    assert played.referee.steps >= 1_000_000
    check_bounds(played)
