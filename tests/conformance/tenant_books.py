# SPDX-License-Identifier: Apache-2.0
"""What the referee writes down of classes that are shared by tenant: who was charged what, and who goes next for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from priority_router.core import ledger
from priority_router.core.values import FairBy, SchedulingPolicy, TrafficClass


class Charges:
    """One class: the charges of everyone who was ever seen, and how many requests of each wait."""

    def __init__(self) -> None:
        self.charged: dict[Hashable, int] = {}
        self.waiting: dict[Hashable, int] = {}
        self.row_time = 1.0
        self._least = 0

    def begins(self, tenant: str) -> Hashable:
        who = self._who(tenant)
        if who not in self.waiting:
            self.charged[who] = max(self.charged.get(who, 0), self.least())
            self.waiting[who] = 0
        self.waiting[who] += 1
        return who

    def ends(self, who: Hashable) -> None:
        self.waiting[who] -= 1
        if not self.waiting[who]:
            del self.waiting[who]
            self.least()

    def charge(self, who: Hashable, rows: int, row_time: float) -> None:
        cost = max(1, round(rows * row_time))
        most = self.least() + max(cost, ledger.LONGEST_LEAD)
        self.charged[who] = max(self.charged[who], min(most, self.charged[who] + cost))
        self.row_time = row_time

    def least(self) -> int:
        """Of those with work; else what it was when somebody had some."""
        if self.waiting:
            self._least = min(self.charged[who] for who in self.waiting)
        return self._least

    def order(self, records: Iterable[Any], place: Callable[[Any], Any]) -> Iterator[Any]:
        """One at a time the first request of whoever is charged the least, taken to be charged for what goes before."""
        queues: dict[Hashable, list[Any]] = {}
        for record in sorted(records, key=place):
            queues.setdefault(record.account, []).append(record)
        charged: dict[Hashable, float] = {who: self.charged[who] for who in queues}
        while queues:
            who = min(queues, key=lambda who: (charged[who], place(queues[who][0])))
            record = queues[who].pop(0)
            charged[who] += record.unsent * self.row_time
            if not queues[who]:
                del queues[who]
            yield record

    def _who(self, tenant: str) -> Hashable:
        if tenant in self.waiting:
            return tenant
        shared = int.from_bytes(tenant.encode("utf-8", "surrogatepass"), "big") % ledger.SHARED_ACCOUNTS
        alone = sum(isinstance(who, str) for who in self.waiting)
        return shared if shared in self.waiting or alone >= ledger.MOST_TENANTS else tenant


class TenantBooks:
    """All classes of a policy that are shared by tenant; what is told about others is ignored."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._classes = {each.name: Charges() for each in policy.classes if each.fair_by is FairBy.TENANT}

    def __bool__(self) -> bool:
        return bool(self._classes)

    def under(self, policy: SchedulingPolicy) -> TenantBooks:
        """Those that are shared under another policy, too, with all that was charged."""
        books = TenantBooks(policy)
        books._classes |= {name: charges for name, charges in self._classes.items() if name in books._classes}
        return books

    def enter(self, record: Any) -> None:
        """One more request waits in its class."""
        charges = self.of(record.traffic_class)
        if charges is not None:
            record.account = charges.begins(record.request.tenant)

    def of(self, traffic_class: TrafficClass) -> Charges | None:
        return self._classes.get(traffic_class.name)
