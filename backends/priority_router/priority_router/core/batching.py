# SPDX-License-Identifier: Apache-2.0
"""Who runs together (rules 1 and 7).

Law: looks at who waits and at learned times, proposes one dispatch, changes neither.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from priority_router.core.fill_budget import FillBudget
from priority_router.core.lanes import Lane, Lanes
from priority_router.core.lines import Entry, Line
from priority_router.core.service_times import ServiceTimes
from priority_router.core.values import SchedulingPolicy, TrafficClass


@dataclass(frozen=True, slots=True)
class Batch:
    """A proposed dispatch.

    Attributes:
        head: who it is sent for.
        level: that it is sent at.
        picks: the rows taken of each request in batch order, the head's first.
        rows: of all together.
        claim: it is sent for the share of its head's class.
    """

    head: Entry
    level: int
    picks: list[tuple[Entry, int]]
    rows: int
    claim: bool


def blocking_budgets(policy: SchedulingPolicy) -> dict[str, int]:
    """Per class that has one, ns that its dispatches may block the more urgent classes."""
    budgets = {}
    for each in policy.classes:
        asked = [other.max_blocking for other in policy.classes if other.level < each.level and other.max_blocking]
        if asked:
            budgets[each.name] = min(asked)
    return budgets


def propose(
    lanes: Lanes,
    times: ServiceTimes,
    budget: FillBudget,
    policy: SchedulingPolicy,
    blocking: Mapping[str, int],
    deprived: TrafficClass | None = None,
) -> Batch | None:
    """The dispatch that should go next; None when nothing waits.

    Where a class has had less than its share, its first request heads a dispatch as any of its level would be, which is
    sent at the most urgent level, so that it is not passed inside Triton. It is filled from its own class first, or the
    rows of others could keep the class from its share.

    Else its head is the oldest request of the most urgent level. Others of its signature join in the same order while
    they fit whole; at each level the first that does not fit ends the joining, so that none is passed for its size.
    """
    head = lanes.head() if deprived is None else next(line.first() for line in lanes.lines_of(deprived) if line)
    if head is None:
        return None
    signature = head.request.signature
    limit, tries = _row_limit(lanes, head, times, policy, blocking)
    level = head.level
    sent_at = level if deprived is None else lanes.most_urgent_level
    target = limit
    if level != lanes.most_urgent_level and not tries:
        target = times.efficient_rows(signature, _available(lanes, head, limit), policy.batch_efficiency)
        target = min(target, limit)

    oversized = head.request.rows > limit
    rows = min(head.unsent, target if oversized else limit)
    picks = [(head, rows)]
    if policy.max_batch_size == 0 or rows < head.unsent:
        return Batch(head, sent_at, picks, rows, deprived is not None)

    room = limit
    if deprived is not None:
        for line in lanes.lines_of(deprived):
            rows = _join(line, head, picks, rows, room, target)
    own = rows
    for lane in lanes.from_level(level):
        if lane.level > level:
            room = min(limit, _room(lane, signature, own, times, budget, policy, blocking))
        rows = _join(lane, head, picks, rows, room, target)
        if lane.level == level:
            own = rows
    return Batch(head, sent_at, picks, rows, deprived is not None)


def _row_limit(
    lanes: Lanes, head: Entry, times: ServiceTimes, policy: SchedulingPolicy, blocking: Mapping[str, int]
) -> tuple[int, bool]:
    """Most rows of a dispatch that this request heads, and whether more than known to keep to its bound are tried."""
    limit = max(policy.max_batch_size, 1)
    allowed = blocking.get(head.traffic_class.name)
    if allowed is None:
        return limit, False
    signature = head.request.signature
    within = min(limit, times.rows_within(signature, allowed, policy.max_fill_slowdown))
    beyond = min(limit, times.rows_beyond(signature, allowed))
    if beyond > within and _available(lanes, head, beyond) > within:
        return beyond, True
    return within, False


def _room(
    lane: Lane,
    signature: Hashable,
    own: int,
    times: ServiceTimes,
    budget: FillBudget,
    policy: SchedulingPolicy,
    blocking: Mapping[str, int],
) -> int:
    """Rows up to which the less urgent ones of this lane may join ``own`` rows of the head's own level."""
    bound = blocking.get(next(iter(lane.fresh)))  # it is the same for all classes of a level
    if budget.spent and bound is None:
        return policy.max_batch_size
    free = times.fill_limit(signature, own, policy.max_fill_slowdown)
    if not budget.spent or bound is None:
        return free
    return max(free, times.rows_within(signature, bound, policy.max_fill_slowdown))


def charge(batch: Batch, lanes: Lanes, times: ServiceTimes, budget: FillBudget, policy: SchedulingPolicy) -> None:
    """Charge the budget for a batch that was taken out of the lanes."""
    if not len(lanes):
        budget.clear()
        return
    level, signature = batch.level, batch.head.request.signature
    took, wasted, full = times.cost(signature, batch.rows, policy.batch_efficiency)
    most_urgent = level == lanes.most_urgent_level
    held_back = most_urgent and any(lane.holds(signature) for lane in lanes.from_level(level + 1))
    budget.charge(took, wasted if held_back else 0, full)


def _join(lane: Lane | Line, head: Entry, picks: list[tuple[Entry, int]], rows: int, room: int, target: int) -> int:
    """Append joining requests of this lane to ``picks`` while fewer than ``target`` rows; returns the rows then."""
    picked = {entry.sequence for entry, _ in picks}
    for entry in lane.of_signature(head.request.signature):
        if entry.sequence in picked:
            continue
        if rows >= target or rows + entry.unsent > room:
            break
        picks.append((entry, entry.unsent))
        rows += entry.unsent
    return rows


def _available(lanes: Lanes, head: Entry, limit: int) -> int:
    """Rows that could join the head, itself included, counted up to ``limit``."""
    rows = 0
    for lane in lanes.from_level(head.level):
        for entry in lane.of_signature(head.request.signature):
            rows += entry.unsent
            if rows >= limit:
                return limit
    return rows
