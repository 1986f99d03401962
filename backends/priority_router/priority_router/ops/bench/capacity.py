# SPDX-License-Identifier: Apache-2.0
"""What an executor can do when it never waits: what the loads of a scenario are a share of."""

from __future__ import annotations

from priority_router.core.values import SECOND
from priority_router.ops.bench import executor_stats, load
from priority_router.ops.bench.load import LoadError, Target, Variant
from priority_router.ops.bench.own_model import Facts
from priority_router.ops.bench.traffic import Payloads
from priority_router.ops.bench.venue import Stage

WARMUP_SECONDS = 2.0
SECONDS = 5.0

_BATCHES_IN_FLIGHT = 4
"""Enough to keep every batch full while replies travel."""


def measured(stage: Stage, known: Facts, payloads: Payloads, class_name: str) -> float:
    """Keeps an executor saturated for a while and reads what Triton counted.

    Args:
        stage: a server.
        known: its executor.
        payloads: the inputs of requests.
        class_name: whose way the requests take.

    Returns:
        Rows per second.

    Raises:
        LoadError: the load could not be generated, or nothing was answered.
    """
    target = Target(
        stage.address,
        stage.routes,
        payloads(1),
        stage.outputs,
        {class_name: [Variant(inputs) for inputs in payloads(1)]},
    )
    in_flight = _BATCHES_IN_FLIGHT * known.takes
    with load.begin_closed(target, class_name, in_flight, WARMUP_SECONDS + SECONDS, grace_s=30.0) as running:
        begin = running.start + int(WARMUP_SECONDS * SECOND)
        before, after = executor_stats.over(stage.address, stage.executor, begin, begin + int(SECONDS * SECOND))
        ledger = running.result()
    rows = after.rows - before.rows
    if not rows:
        reason = next((text for _, text in ledger.failures), "no batch ended")
        raise LoadError(f"{known.executor} answered nothing in {SECONDS:g} s ({reason}); tell its rows/s by --capacity")
    return rows / ((after.at - before.at) / SECOND)
