# SPDX-License-Identifier: Apache-2.0
"""What callers saw beside what the router counted: any request too many or too few is found."""

from collections import Counter

import numpy as np
import pytest
from priority_router.core.values import SECOND
from priority_router.errors import Outcome
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.wire import Outcome as Seen
from priority_router.ops.soak import books, checks, resources
from priority_router.ops.soak.kinds import NO_CLASS, Kind
from priority_router.ops.soak.mixed import windows

KINDS = (
    Kind("online", 1, "online"),
    Kind("failing", 1, "bulk", other=Outcome.EXECUTOR_ERROR),
    Kind("unknown", 1, "gold", other=Outcome.INVALID),
    Kind("wrong", 1, "online", other=Outcome.INVALID, received=False),
    Kind("leaving", 1, "leaving", patience_s=(0.1, 0.2)),
)
SENT = (
    ("online", Seen.SUCCESS, 5),
    ("online", Seen.QUEUE_FULL, 2),
    ("failing", Seen.OTHER, 3),
    ("unknown", Seen.OTHER, 4),
    ("wrong", Seen.OTHER, 1),
    ("leaving", Seen.SUCCESS, 6),
    ("leaving", Seen.CANCELLED, 3),
)
COUNTED = {
    ("online", "success"): 5,
    ("online", "queue_full"): 2,
    ("online", "timeout"): 0,
    ("bulk", "executor_error"): 3,
    (NO_CLASS, "invalid"): 4,
    ("leaving", "success"): 7,
    ("leaving", "cancelled"): 1,
}


def ledger(sent=SENT, took=1_000_000):
    names = tuple(kind.name for kind in KINDS)
    codes = [(names.index(name), seen) for name, seen, count in sent for _ in range(count)]
    classes, outcomes = (np.array(column, dtype=np.int64) for column in zip(*codes, strict=True))
    at = np.arange(len(codes), dtype=np.int64) * SECOND // 10
    ones = np.ones(len(codes), dtype=np.int64)
    return Ledger(names, classes, ones, at, at, at + took, outcomes, -ones, Counter(), 10 * SECOND, 0.0, 1)


def test_books_that_balance():
    found = books.compared(ledger(), KINDS, COUNTED)
    assert (found.differences, found.unexpected) == ({}, {})
    assert found.requests == 24
    assert found.ended["leaving"] == {"success": 6, "cancelled": 3}
    assert all(check.met for check in checks.balanced(found.as_json(), 0.0))


@pytest.mark.parametrize(
    ("changed", "differ"),
    [
        ({("online", "success"): 4}, {"online success": (5, 4)}),
        ({("online", "success"): 6}, {"online success": (5, 6)}),
        ({("online", "timeout"): 1}, {"online timeout": (0, 1)}),
        ({("bulk", "executor_error"): 2}, {"bulk executor_error": (3, 2)}),
        ({(NO_CLASS, "invalid"): 5}, {f"{NO_CLASS} invalid": (4, 5)}),
        # One that was not answered; and more than left together, though each number could be.
        ({("leaving", "success"): 5}, {"leaving success": (6, 5)}),
        ({("leaving", "success"): 8, ("leaving", "cancelled"): 2}, {"leaving together": (6, 10)}),
    ],
)
def test_a_request_too_many_or_too_few_is_found(changed, differ):
    found = books.compared(ledger(), KINDS, {**COUNTED, **changed})
    assert found.differences == differ
    assert [check.met for check in checks.balanced(found.as_json(), 0.0)] == [False, True, True]


@pytest.mark.parametrize(
    ("ended", "name"),
    [
        (("online", Seen.UNANSWERED, 1), "online unanswered"),
        (("online", Seen.OTHER, 1), "online other"),
        (("online", Seen.CANCELLED, 1), "online cancelled"),
        (("failing", Seen.SUCCESS, 1), "failing success"),
        (("leaving", Seen.UNANSWERED, 1), "leaving unanswered"),
    ],
)
def test_an_end_that_a_kind_never_has_is_told(ended, name):
    found = books.compared(ledger((*SENT, ended)), KINDS, COUNTED)
    assert found.unexpected == {name: 1}
    assert [check.met for check in checks.balanced(found.as_json(), 0.0)] == [True, False, True]


def test_what_the_routers_own_audit_says_counts():
    found = books.compared(ledger(), KINDS, COUNTED).as_json()
    for unaccounted in (1.0, None):
        assert [check.met for check in checks.balanced(found, unaccounted)] == [True, True, False]


def test_a_window_has_what_was_answered_in_it():
    found = books.window(ledger(), SECOND // 5, SECOND)
    # From the third to the tenth: three of class online that were served, the rest refused or failing.
    assert found["classes"] == {"online": {"p50_ms": 1.0, "p99_ms": 1.0}}
    assert found["requests_per_s"] == found["rows_per_s"] == 3 / 0.8


def test_memory_may_grow_by_a_little_and_threads_by_a_few():
    before = dict.fromkeys(resources.FIGURES, 100.0)
    allowed = {name: 116.0 if name.endswith("MiB") else 108.0 for name in before}
    assert all(check.met for check in checks.flat(before, allowed, ""))
    for name, value in allowed.items():
        found = list(checks.flat(before, {**allowed, name: value + 1}, ""))
        assert [check.what.strip() for check in found if not check.met] == [name]
    assert not any(check.met for check in checks.flat({}, allowed, "")), "nothing was measured"
    without = checks.flat({}, allowed, "", {resources.SOCKETS})
    assert [check.what.strip() for check in without] == [one for one in resources.FIGURES if one != resources.SOCKETS]


@pytest.mark.parametrize("seconds", [6.0, 45.0, 600.0, 3600.0])
def test_both_windows_are_alike_and_apart(seconds):
    first, last = windows(seconds)
    assert 0 < first[0] < first[1] <= last[0] < last[1] == int(seconds * SECOND)
    assert abs((first[1] - first[0]) - (last[1] - last[0])) <= 1
