# SPDX-License-Identifier: Apache-2.0
"""The benchmark's load generator, run from beginning to end."""

from __future__ import annotations

from typing import Any

from priority_router.ops.bench import load
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.ledger import Ledger


def replay(target: load.Target, schedule: Schedule, **options: Any) -> Ledger:
    """Replays a schedule to its end and, unless told otherwise, waits for every reply as long as a busy machine needs.

    The options are those of `load.begin`.
    """
    with load.begin(target, schedule, **{"grace_s": 60.0, **options}) as running:
        return running.result()
