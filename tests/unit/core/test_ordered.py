# SPDX-License-Identifier: Apache-2.0
"""Items in order, against a sorted list."""

import random

from priority_router.core.ordered import LONGEST, Ordered


def test_items_stay_in_order_while_they_come_and_go():
    rng = random.Random(3)
    ordered = Ordered()
    expected: list[tuple[int, int]] = []
    for step in range(20 * LONGEST):
        if expected and rng.random() < (0.2 if step < 10 * LONGEST else 0.8):
            item = expected.pop(rng.randrange(len(expected)))
            ordered.remove(item)
        else:
            item = (rng.randrange(50), step)
            ordered.add(item)
            expected.append(item)
        if expected:
            assert ordered.first() == min(expected)
        if step % LONGEST == 0:
            assert list(ordered) == sorted(expected)
            assert all(len(items) <= LONGEST for items in ordered._lists)
    for item in expected:
        ordered.remove(item)
    assert not list(ordered)
    assert not ordered._lists
    assert not ordered._last
