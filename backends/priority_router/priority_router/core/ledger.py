# SPDX-License-Identifier: Apache-2.0
"""How much of a class's time each of its tenants was charged with.

Law: a ledger in ns. It is told who waits and what was sent, and says who was charged the least; it knows neither
requests nor the clock. Whatever names tenants have, it remembers a bounded number of those that have no work.

This is deficit round robin with its rounds compared, not walked: who was charged more than another sits out until the
other has caught up, however small a round is. Only differences count. A tenant without work is not owed anything: when
it comes it begins where the least charged of those who wait is, or where its own charges have brought it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from priority_router.core.ordered import Ordered
from priority_router.core.values import SECOND

MOST_TENANTS: Final = 4096
"""Tenants with work that have an account of their own; those past it share accounts, or names made up without end would
each be given a turn and memory."""

SHARED_ACCOUNTS: Final = 251
"""Accounts that the rest share; a prime, so that every letter of a name counts."""

MOST_DEBTS: Final = 4096
"""Charges remembered of tenants without work; past it the smallest is forgotten, which gives away the least."""

LONGEST_LEAD: Final = 1 * SECOND
"""A tenant that has had more than the others, since none of them could use the time (rows of other signatures cannot
join), loses at most so much of it, or its last dispatch where that is longer."""


class Account:
    """Who pays for the requests of one tenant, or of several that share it.

    Attributes:
        key: the tenant's name, or the number of a shared account.
        number: different for each account of a ledger.
        charged: ns, on a scale that all accounts of a ledger share; it only grows.
        waiting: its requests that wait.
    """

    __slots__ = ("charged", "key", "number", "waiting")

    def __init__(self, key: Hashable, number: int, charged: int) -> None:
        self.key = key
        self.number = number
        self.charged = charged
        self.waiting = 0


class Ledger:
    """The accounts of one class.

    Attributes:
        row_time: what a row was charged with last; 1 while nothing is learned, so that rows count.
    """

    def __init__(self) -> None:
        self.row_time = 1.0
        self._accounts: dict[Hashable, Account] = {}
        self._own = 0
        self._numbers = 0
        self._least = 0
        self._by_charge = Ordered()
        self._debts: dict[Hashable, tuple[int, int, Hashable]] = {}
        self._by_debt = Ordered()

    def begins(self, tenant: str) -> Account:
        """One more request of this tenant waits; returns who pays for it."""
        key = self._key(tenant)
        account = self._accounts.get(key)
        if account is None:
            self._numbers += 1
            debt = self._debts.pop(key, None)
            if debt is not None:
                self._by_debt.remove(debt)
            account = self._accounts[key] = Account(key, self._numbers, max(self._lowest(), debt[0] if debt else 0))
            self._own += isinstance(key, str)
            self._by_charge.add((account.charged, account.number, account))
        account.waiting += 1
        return account

    def ends(self, account: Account) -> None:
        """One of its requests waits no longer."""
        account.waiting -= 1
        if account.waiting:
            return
        self._by_charge.remove((account.charged, account.number, account))
        del self._accounts[account.key]
        self._own -= isinstance(account.key, str)
        lowest = self._lowest()
        if account.charged > lowest:
            debt = self._debts[account.key] = (account.charged, account.number, account.key)
            self._by_debt.add(debt)
        while self._debts and ((first := self._by_debt.first())[0] <= lowest or len(self._debts) > MOST_DEBTS):
            self._by_debt.remove(first)
            del self._debts[first[2]]

    def charge(self, account: Account, rows: int, row_time: float) -> None:
        """Rows of an account with work are sent; each is predicted to take ``row_time`` ns of its dispatch."""
        self.row_time = row_time
        lowest = self._lowest()
        cost = max(round(rows * row_time), 1)
        self._by_charge.remove((account.charged, account.number, account))
        account.charged = max(account.charged, min(account.charged + cost, lowest + max(LONGEST_LEAD, cost)))
        self._by_charge.add((account.charged, account.number, account))

    def _lowest(self) -> int:
        """What the least charged of those with work was charged; kept while nobody has any."""
        if self._accounts:
            self._least = self._by_charge.first()[0]
        return self._least

    def _key(self, tenant: str) -> Hashable:
        if tenant in self._accounts:
            return tenant
        if self._own == len(self._accounts) < MOST_TENANTS:
            return tenant
        shared = int.from_bytes(tenant.encode("utf-8", "surrogatepass"), "big") % SHARED_ACCOUNTS
        # Whoever shares an account goes on sharing it while that has work: nobody pays from two.
        return shared if self._own >= MOST_TENANTS or shared in self._accounts else tenant
