# SPDX-License-Identifier: Apache-2.0
"""What is said of a recording; how it is made needs a server."""

import pytest
from priority_router.ops.simulate import record


@pytest.mark.parametrize(
    ("seen", "seconds", "said"),
    [
        ({1: 10, 4: 90}, 30.0, ""),
        (
            {1: 40, 4: 4},
            3.0,
            "of 4 rows only 4 executions were seen, and fewer than 10 tell little of how times vary; ",
        ),
        ({1: 0}, 0.5, "of 1 row only 0 executions"),
    ],
)
def test_few_executions_of_a_row_count_are_said(seen, seconds, said):
    assert record.few(seen, seconds).startswith(said)
    assert bool(record.few(seen, seconds)) == bool(said)


def test_it_says_how_long_to_record():
    assert record.few({1: 40, 4: 4}, 3.0).endswith("record with --seconds 8, or more")
