# SPDX-License-Identifier: Apache-2.0
"""How many may wait: the referee's law of limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from conformance.books import Lines, Record, law
from priority_router.core.values import SchedulingPolicy


class Limits:
    """The limits of one policy; ``stood``: those up to this place waited already when it came into force."""

    def __init__(self, policy: SchedulingPolicy, stood: int = 0) -> None:
        self._policy = policy
        self.stood = stood
        sizes = [policy.max_queue_bytes]
        for each in policy.classes:
            sizes += [each.max_queue_size, each.max_queue_bytes]
        self._limited = any(sizes)

    def check(self, lines: Lines, refused: Mapping[str, Sequence[Record]], new: Sequence[Record]) -> None:
        """After an advance: who still waits, who was refused of each class, and who had come since the last one."""
        if not self._limited and not refused:
            return  # else a long queue would be walked at every step
        everyone = list(lines.everyone())
        own = {each.name: [one for one in everyone if one.traffic_class is each] for each in self._policy.classes}
        for each in self._policy.classes:
            waiting, limit = len(own[each.name]), each.max_queue_size
            within = not limit or waiting <= limit or self._no_fuller(own[each.name], limit)
            law(within, "limits", "{} of {} wait, at most {}", waiting, each.name, limit)
        over = self._over_bytes(own, refused)
        for each in self._policy.classes:
            records, limit, waiting = refused.get(each.name, ()), each.max_queue_size, len(own[each.name])
            if not records:
                continue
            full = (limit <= waiting and self._no_fuller(own[each.name], limit)) or each.name in over
            law(full, "limits", "{} refused as full with {} of {} waiting", each.name, waiting, limit)
            places = [record.place for record in records]
            untouched = [one for one in new if lines.holds(one) and not one.sent_rows]
            kept = [one.place for one in untouched if one.traffic_class is each]
            law(max(kept, default=0) < min(places), "limits", "{}: {} refused, {} kept", each.name, places, kept)

    def _no_fuller(self, own: Sequence[Record], limit: int) -> bool:
        """Whether no more wait than the limit allows, but for those who have begun or stood there before it."""
        return sum(not record.sent_rows for record in own) <= limit or self._all_stood(own)

    def _all_stood(self, records: Iterable[Record]) -> bool:
        """Whether all that can be refused waited already when the policy changed."""
        return all(record.sent_rows or record.place <= self.stood for record in records)

    def _over_bytes(self, waiting: Mapping[str, Sequence[Record]], refused: Mapping[str, Sequence[Record]]) -> set[str]:
        """Classes that would be past a limit in bytes with one more of the refused; what waits must be within them."""
        total = self._policy.max_queue_bytes
        if not total and not any(each.max_queue_bytes for each in self._policy.classes):
            return set()
        over = set()
        for each in self._policy.classes:
            own, limit = waiting[each.name], each.max_queue_bytes
            within = not limit or _bytes(own, begun=False) <= limit or self._all_stood(own)
            law(within, "limits", "{} bytes of {} wait", _bytes(own), each.name)
            oldest = min(refused.get(each.name, ()), key=lambda record: record.place, default=None)
            if limit and oldest is not None and _bytes(own) + oldest.request.size > limit:
                over.add(each.name)
        everyone = [record for own in waiting.values() for record in own]
        within = not total or _bytes(everyone, begun=False) <= total or self._all_stood(everyone)
        law(within, "limits", "more than {} bytes wait", total)
        if total and _bytes(everyone) + sum(map(_bytes, refused.values())) > total:
            over |= set(refused)
        return over


def _bytes(records: Iterable[Record], *, begun: bool = True) -> int:
    return sum(record.request.size for record in records if begun or not record.sent_rows)
