# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.ops.server import memory

MIB = 1 << 20


def model(batch, dims_in, dims_out):
    return {
        "max_batch_size": batch,
        "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": dims_in}],
        "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": dims_out}],
    }


@pytest.mark.parametrize(
    ("router", "executor", "needed"),
    [
        (model(64, [MIB], [1]), model(4, [MIB], [1]), 64 * 4 * MIB),
        (model(64, [1], [MIB]), model(4, [1], [MIB]), 64 * 4 * MIB),
        (model(4, [MIB], [MIB]), model(4, [MIB], [MIB]), 4 * 8 * MIB),
        (model(0, [MIB], [1]), model(0, [MIB], [1]), 4 * MIB + 4),
        (model(2, [-1, 8], [1]), model(2, [-1, 8], [1]), 2 * (32 + 4)),
    ],
)
def test_what_one_request_needs_at_least(router, executor, needed):
    assert memory.least_needed(router, executor) == needed
    assert memory.warning("router", router, executor, needed) is None
    said = str(memory.warning("router", router, executor, needed - 1))
    assert f"one needs {needed / MIB:.1f} MiB at least, /dev/shm has" in said


def test_what_has_no_type_that_is_known_counts_nothing():
    odd = {"max_batch_size": 1, "input": [{"name": "X", "data_type": "TYPE_ODD", "dims": [MIB]}]}
    assert memory.least_needed(odd, odd) == 0
