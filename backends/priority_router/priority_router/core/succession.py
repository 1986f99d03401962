# SPDX-License-Identifier: Apache-2.0
"""What becomes of the requests that a scheduler holds when its policy changes.

Law: moves entries into queues made from the new policy, ends none and knows nothing of the executor. A request keeps
its place by arrival, its deadline, its rows already sent and its own class, which is found by name; whatever else its
class says holds from now on:

- one whose class is gone waits in the default class, by its arrival;
- ``max_wait`` counts from arrival, so who has waited as long as the new one is promoted and nobody else is;
- who waits on past its deadline does so whatever the class now says of those who expire;
- turns that a class has given to others than those who brought them stay with them while it keeps its order;
- tenants of a class that stays shared by tenant keep what they were charged with;
- no limit ends one that waits already.
"""

from __future__ import annotations

from collections.abc import Iterable

from priority_router.core.deadlines import Deadlines
from priority_router.core.lanes import Lanes
from priority_router.core.lines import Entry
from priority_router.core.values import SchedulingPolicy, TrafficClass


def succeed(
    entries: Iterable[Entry], lanes: Lanes, policy: SchedulingPolicy, now: int, default_class: str
) -> tuple[Lanes, Deadlines, Deadlines]:
    """Queues under a new policy.

    Args:
        entries: all that are held, in order of arrival; of those sent to the end only the class is changed.
        lanes: that they wait in.
        policy: the new one.
        now: ns.
        default_class: one of its classes.

    Returns:
        who waits, their queue deadlines, and the moments from which they are as urgent as any.
    """
    classes = {each.name: each for each in policy.classes}
    after, deadlines, ages = Lanes(policy, lanes), Deadlines(), Deadlines()
    waiting: list[Entry] = []
    newly_delayed: list[Entry] = []
    for entry in entries:
        old, level, was_promoted = entry.traffic_class, entry.level, entry.promoted
        new = entry.traffic_class = classes.get(old.name) or classes[default_class]
        entry.promoted = 0 < new.max_wait <= now - entry.arrived
        entry.level = after.most_urgent_level if entry.promoted else new.level
        if not entry.unsent:
            continue
        waiting.append(entry)
        if entry.level != level:
            entry.since = now
        if old.name != new.name or old.fair_by is not new.fair_by:
            after.open_account(entry)
        if entry.promoted or not entry.expired:
            if entry.promoted or was_promoted or not _same_turns(old, new):
                entry.place = entry.turn = entry.turn_alike = entry.sequence
        elif was_promoted:
            newly_delayed.append(entry)
        elif not _same_turns(old, new):
            entry.turn = entry.turn_alike = entry.place
        if entry.deadline is not None and not entry.next_row and not entry.expired:
            deadlines.add(entry, entry.deadline)
        if new.max_wait and not entry.promoted:
            ages.add(entry, entry.arrived + new.max_wait)
    for entry in sorted(newly_delayed, key=_expiry):
        entry.place = entry.turn = entry.turn_alike = after.next_delay()
    after.readmit(waiting)
    return after, deadlines, ages


def _same_turns(old: TrafficClass, new: TrafficClass) -> bool:
    """Whether the requests of a class go on in the order in which they were."""
    return (old.name, old.order, old.fair_by) == (new.name, new.order, new.fair_by)


def _expiry(entry: Entry) -> tuple[int, int]:
    return entry.deadline or 0, entry.sequence
