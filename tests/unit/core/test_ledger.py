# SPDX-License-Identifier: Apache-2.0
"""Accounts of tenants: where one begins, what it pays, what is forgotten."""

import pytest
from priority_router.core import ledger
from priority_router.core.ledger import Ledger
from unit.core.build import MS


def test_a_newcomer_begins_level_with_the_least_charged_of_those_who_wait():
    books = Ledger()
    rich, poor = books.begins("rich"), books.begins("poor")
    books.charge(rich, 5, 1 * MS)
    books.charge(poor, 2, 1 * MS)
    assert (rich.charged, poor.charged, books.begins("new").charged) == (5 * MS, 2 * MS, 2 * MS)


def test_who_comes_back_still_has_had_what_it_had():
    books = Ledger()
    books.begins("waits")
    left = books.begins("leaves")
    books.charge(left, 3, 1 * MS)
    books.ends(left)
    assert books.begins("leaves").charged == 3 * MS


def test_a_charge_is_forgotten_once_the_others_have_had_as_much():
    books = Ledger()
    waits, left = books.begins("waits"), books.begins("leaves")
    waits.waiting += 1
    books.charge(left, 3, 1 * MS)
    books.ends(left)
    books.charge(waits, 4, 1 * MS)
    books.ends(books.begins("other"))
    assert books._debts == {}
    assert books.begins("leaves").charged == 4 * MS


def test_alone_a_tenant_runs_up_no_more_than_its_last_charge():
    books = Ledger()
    alone = books.begins("alone")
    for _ in range(100):
        books.charge(alone, 10, 1 * MS)
    books.ends(alone)
    new = books.begins("new")
    assert books.begins("alone").charged - new.charged == 10 * MS


@pytest.mark.parametrize(("rows", "lead"), [(100, ledger.LONGEST_LEAD), (5000, 5000 * MS)])
def test_a_lead_is_bounded_by_a_second_or_the_last_charge(rows, lead):
    books = Ledger()
    books.begins("waits")
    ahead = books.begins("ahead")
    for _ in range(20):
        books.charge(ahead, rows, 1 * MS)
    assert ahead.charged == lead


def test_a_row_costs_something_however_quick_it_is():
    books = Ledger()
    account = books.begins("a")
    books.charge(account, 1, 0.0)
    assert account.charged == 1


def test_names_past_a_number_share_and_go_on_sharing_while_their_account_has_work(monkeypatch):
    monkeypatch.setattr(ledger, "MOST_TENANTS", 2)
    books = Ledger()
    own = [books.begins(name) for name in ("a", "b")]
    shared = books.begins("c")
    assert isinstance(shared.key, int)
    assert books.begins("a") is own[0]
    books.ends(own[1])
    assert books.begins("c") is shared, "though there is room again, its first request is where it was"
    for _ in range(2):
        books.ends(shared)
    assert books.begins("c").key == "c"


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 256, "größe"])
def test_any_text_is_a_name_even_where_it_shares(monkeypatch, name):
    monkeypatch.setattr(ledger, "MOST_TENANTS", 0)
    books = Ledger()
    account = books.begins(name)
    assert account.key in range(ledger.SHARED_ACCOUNTS)
    books.ends(account)
    assert books._accounts == {}
