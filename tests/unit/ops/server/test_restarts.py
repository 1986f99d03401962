# SPDX-License-Identifier: Apache-2.0
from priority_router.ops.server.restarts import STEADY_SECONDS, Restarts


def test_pauses_double_and_then_it_is_given_up():
    restarts = Restarts(7)
    assert [restarts.failed(0) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, None]
    assert restarts.count == 7
    assert restarts.failed(0) is None


def test_a_server_that_was_well_begins_a_new_row_and_keeps_the_count():
    restarts = Restarts(2)
    assert [restarts.failed(STEADY_SECONDS - 1), restarts.failed(0), restarts.failed(0)] == [1, 2, None]
    assert restarts.failed(STEADY_SECONDS) == 1
    assert restarts.count == 3


def test_none_at_all():
    assert Restarts(0).failed(1e9) is None
