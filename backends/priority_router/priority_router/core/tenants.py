# SPDX-License-Identifier: Apache-2.0
"""Who takes the turns of a class that is shared by tenant.

Law: order only. A turn goes to the tenant that was charged the least, of equals to the one whose request would come
first without tenants; inside a tenant the class's own order holds. Every operation costs at most the logarithm of the
number of waiting requests, however many tenants wait.

A queue may hold a tenant where it stood before it was charged elsewhere, for requests of other signatures. Charges only
grow, so it stands too far in front, never too far back: it is put right when somebody comes across it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

from priority_router.core.ledger import Account, Ledger
from priority_router.core.lines import ORDERS, ByArrival, Entry, Reordered
from priority_router.core.ordered import Ordered
from priority_router.core.values import Order

Rank = Callable[[Entry], tuple[Any, ...]]


class _Tenant:
    """Requests of one account in one queue.

    Attributes:
        account: that pays for them.
        entries: by rank.
        key: what the tenant stands at in the queue; None once it has no request there.
    """

    __slots__ = ("account", "entries", "key")

    def __init__(self, account: Account) -> None:
        self.account = account
        self.entries = Ordered()
        self.key: tuple[Any, ...] | None = None


class _ByTenant(Reordered):
    """Turns taken by the tenants in order of their charges."""

    __slots__ = ("_ledger", "_met", "_rank", "_standing", "_tenants")

    def __init__(self, ledger: Ledger, rank: Rank) -> None:
        """Starts empty.

        Args:
            ledger: of the class.
            rank: orders the requests of one tenant.
        """
        super().__init__()
        self._ledger = ledger
        self._rank = rank
        self._tenants: dict[Account, _Tenant] = {}
        self._standing = Ordered()
        self._met: list[_Tenant] = []

    def add(self, entry: Entry, turn: int) -> None:
        super().add(entry, turn)
        tenant = self._tenants.get(entry.account)
        if tenant is None:
            tenant = self._tenants[entry.account] = _Tenant(entry.account)
        tenant.entries.add(self._rank(entry))
        self._place(tenant)

    def leave(self, entry: Entry, turn: int) -> None:
        super().leave(entry, turn)
        self._take(entry)

    def serve(self, entry: Entry, turn: int) -> tuple[Entry, int] | None:
        self._take(entry)
        return super().serve(entry, turn)

    def first(self) -> Entry:
        self._put_right()
        entry: Entry = self._standing.first()[3]
        return entry

    def before(self, entry: Entry) -> int:
        """Those of its own tenant: whom others get ahead of it depends on what they will be charged."""
        return self._tenants[entry.account].entries.rank(self._rank(entry))

    def turns(self) -> Iterator[tuple[int, Entry]]:
        return zip(self._turns, self._in_order(), strict=True)

    def _in_order(self) -> Iterator[Entry]:
        """Everyone as they would go if each were charged, as it goes, with what a row was charged with last."""
        self._put_right()
        row_time = self._ledger.row_time
        ahead: list[tuple[Any, ...]] = []
        for place in self._standing:
            while ahead and ahead[0] < place:
                yield _next(ahead, row_time)
            charged, *_, tenant = place
            if charged != tenant.account.charged:
                self._met.append(tenant)
            entries = iter(tenant.entries)
            heappush(ahead, (tenant.account.charged, *next(entries), entries))
        while ahead:
            yield _next(ahead, row_time)

    def _take(self, entry: Entry) -> None:
        tenant = self._tenants[entry.account]
        tenant.entries.remove(self._rank(entry))
        self._place(tenant)

    def _place(self, tenant: _Tenant) -> None:
        """Let the tenant stand where its charges and its first request put it."""
        key = None
        if tenant.entries:
            key = (tenant.account.charged, *tenant.entries.first(), tenant)
        else:
            del self._tenants[tenant.account]
        if key != tenant.key:
            if tenant.key is not None:
                self._standing.remove(tenant.key)
            if key is not None:
                self._standing.add(key)
            tenant.key = key

    def _put_right(self) -> None:
        for tenant in self._met:
            if tenant.key is not None:
                self._place(tenant)
        self._met.clear()
        while (front := self._standing.first())[0] != front[-1].account.charged:
            self._place(front[-1])


def _next(ahead: list[tuple[Any, ...]], row_time: float) -> Entry:
    """Take the first out, and put the next of its tenant in."""
    charged, *_, entry, entries = heappop(ahead)
    following = next(entries, None)
    if following is not None:
        heappush(ahead, (charged + entry.unsent * row_time, *following, entries))
    return entry  # type: ignore[no-any-return]


def fair_queue(ledger: Ledger, order: Order) -> Callable[[], ByArrival]:
    """Makes queues of a class that are shared by the ledger's tenants."""
    rank = ORDERS[order]
    return lambda: _ByTenant(ledger, rank)
