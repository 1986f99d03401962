# SPDX-License-Identifier: Apache-2.0
"""Checks by hand of what an owner may ask for on top of the rules: docs/policies.md."""

from __future__ import annotations

from conformance.checks import check
from priority_router.core.values import Order, TrafficClass
from unit.core.build import MS, ONLINE, Bench, ids

# Order inside a class.


@check
def a_class_by_deadline_serves_the_earliest_first() -> None:
    bench = Bench(ONLINE, TrafficClass("background", 2, order=Order.DEADLINE), max_batch_size=1)
    bench.learn(50)
    bench.submit("background")
    (running,) = bench.advance()
    never = bench.submit("background")
    late, soon = (bench.submit("background", timeout_ms=timeout)[0] for timeout in (900, 300))
    order = []
    for _ in range(3):
        bench.now += 50 * MS
        (running,) = bench.complete(running)
        order += ids(running)
    assert order == [soon, late, *never]


@check
def the_order_inside_a_class_takes_no_turn_from_another() -> None:
    bench = Bench(TrafficClass("fifo", 1), TrafficClass("edf", 1, order=Order.DEADLINE), max_batch_size=1)
    bench.learn(50, class_name="fifo")
    bench.submit("fifo")
    (running,) = bench.advance()
    names = ["edf", "fifo", "edf", "fifo", "edf"]
    submitted = [bench.submit(name, timeout_ms=900 - 100 * at)[0] for at, name in enumerate(names)]
    order = []
    for _ in names:
        bench.now += 50 * MS
        (running,) = bench.complete(running)
        order += ids(running)
    assert order == [submitted[at] for at in (4, 1, 2, 3, 0)]
