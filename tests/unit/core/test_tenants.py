# SPDX-License-Identifier: Apache-2.0
"""A queue shared by tenant against naive books: who takes each turn, whatever comes, goes and pays."""

import random

import pytest
from conformance.tenant_books import Charges
from priority_router.core.ledger import Ledger
from priority_router.core.lines import ORDERS, Entry, Line
from priority_router.core.tenants import fair_queue
from priority_router.core.values import FairBy, Order, Request, TrafficClass
from unit.core.build import MS

FAIR = TrafficClass("fair", 1, fair_by=FairBy.TENANT)


class Pair:
    """The line under test, and the entries in it with what each tenant was charged."""

    def __init__(self, seed, order):
        self.rng = random.Random(seed)
        self.rank = ORDERS[order]
        self.ledger = Ledger()
        self.charges = Charges()
        self.line = Line(queue=fair_queue(self.ledger, order))
        self.entries = []
        self.came = 0

    def come(self):
        self.came += 1
        rng = self.rng
        request = Request(
            self.came, "fair", rng.randint(1, 3), rng.choice("aab"), tenant=rng.choice(("x", "x", "x", "y", "z"))
        )
        entry = Entry(request, FAIR, self.came, 0, rng.choice((0, rng.randint(1, 99))))
        entry.account = self.ledger.begins(request.tenant)
        assert self.charges.begins(request.tenant) == entry.account.key
        self.line.add(entry, self.came)
        self.entries.append(entry)

    def pay(self, entry, rows):
        row_time = self.rng.choice((1.0, 2.5)) * MS
        self.ledger.charge(entry.account, rows, row_time)
        self.charges.charge(entry.account.key, rows, row_time)

    def go(self, entry, *, served):
        (self.line.serve if served else self.line.leave)(entry)
        self.ledger.ends(entry.account)
        self.charges.ends(entry.account.key)
        self.entries.remove(entry)

    def expected(self, signature=None):
        """In order, by the naive books."""

        class Known:
            def __init__(self, entry):
                self.entry, self.account, self.unsent = entry, entry.account.key, entry.unsent

        known = [Known(entry) for entry in self.entries if signature in (None, entry.request.signature)]
        return [each.entry for each in self.charges.order(known, lambda each: self.rank(each.entry)[:2])]

    def check(self):
        if self.entries:
            assert self.line.first() is self.expected()[0]
        for signature in "ab":
            found = list(self.line.of_signature(signature))
            assert found == self.expected(signature)
            partly = self.line.of_signature(signature)
            assert [entry for entry, _ in zip(partly, range(2), strict=False)] == found[:2]
        turns = {entry.turn for entry in self.entries}
        assert len(turns) == len(self.entries)
        assert not turns or self.line.turn() == min(turns)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("seed", range(20))
def test_turns_are_taken_as_the_books_say(seed, order):
    pair = Pair(seed, order)
    for _ in range(200):
        draw = pair.rng.random()
        if draw < 0.5 or not pair.entries:
            pair.come()
        elif draw < 0.65:
            pair.go(pair.rng.choice(pair.entries), served=False)
        elif draw < 0.75:
            pair.pay(pair.rng.choice(pair.entries), 1)  # a part of it, or its rows in another class's dispatch
        else:
            entry = pair.expected(pair.rng.choice((None, pair.entries[0].request.signature)))[0]
            pair.pay(entry, entry.request.rows)
            pair.go(entry, served=True)
        pair.check()
    while pair.entries:
        pair.go(pair.entries[0], served=False)
    assert not pair.line
    assert pair.ledger._accounts == {}
