# SPDX-License-Identifier: Apache-2.0
"""How long after a queue timeout its caller hears of it (case 5), under load, as the caller sees it.

scripts/measure_lateness.py measures the same; here it is compared with other replies of the same router at the same
time, which a machine that is not quiet makes late, too.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import time
from collections.abc import Iterator

import pytest
import tritonclient.grpc
from support.clients import Call
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, Executor, Router

ROWS = 4
BATCH_SECONDS = 0.05
LARGEST = 16 * ROWS
URGENT_SECONDS = 60.0
"""Of urgent work: many times what a test takes."""

SLACK = 10


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    executor = Executor(batch_seconds=BATCH_SECONDS, max_batch_size=ROWS)
    with fleet(tmp_path_factory.mktemp("lateness"), request.param, [(Router(), executor)]) as made:
        yield made


@contextlib.contextmanager
def urgent_work(system: Fleet) -> Iterator[None]:
    """While the block lasts the executor has urgent work; what is left of it then is given up."""
    call = Call(rows=LARGEST, class_parameter=INTERACTIVE)
    ended: list[object] = []
    with tritonclient.grpc.InferenceServerClient(system.server.grpc) as sender:
        running = [
            sender.async_infer(
                "router",
                system.client.inputs(call),
                lambda result, error: ended.append(error),
                parameters=call.all_parameters(),
            )
            for _ in range(round(URGENT_SECONDS / BATCH_SECONDS / (LARGEST / ROWS)))
        ]
        try:
            eventually(lambda: system.metric("in_flight_rows") > 0)
            yield
            assert len(ended) < len(running), "the executor was free before the last timeout"
        finally:
            for context in running:
                context.cancel()


def lateness(system: Fleet, moments: list[float]) -> tuple[list[float], list[float]]:
    """Sends requests that find the executor busy until they expire, and beside them some that are refused at once.

    Args:
        moments: when each is sent, seconds from the start; its timeout is 100 to 500 ms.

    Returns:
        Seconds from each timeout to the caller's reply, and those from each of the other requests to its reply.
    """
    rng = random.Random(5)
    timeouts = [rng.uniform(0.1, 0.5) for _ in moments]
    begun = time.monotonic()
    sent, refused = [], []
    for moment, timeout in zip(moments, timeouts, strict=True):
        time.sleep(max(begun + moment - time.monotonic(), 0))
        sent.append(system.client.send("router", Call(traffic_class=BULK, timeout_us=round(timeout * 1e6))))
        refused.append(system.client.send("router", Call(traffic_class="gold")))
    replies = [future.result() for future in sent]
    for reply in replies:
        assert (reply.code, "waited longer than its queue timeout" in reply.message) == ("UNAVAILABLE", True), reply
    late = [reply.seconds - timeout for reply, timeout in zip(replies, timeouts, strict=True)]
    assert min(late) > 0
    others = [future.result() for future in refused]
    assert {reply.code for reply in others} == {"INVALID_ARGUMENT"}
    return late, [reply.seconds for reply in others]


def test_under_a_steady_stream(system: Fleet) -> None:
    arrivals = random.Random(7)
    with urgent_work(system):
        late, others = lateness(system, sorted(arrivals.uniform(0, 4.0) for _ in range(400)))
    assert statistics.median(late) < SLACK * statistics.median(others), (sorted(late), sorted(others))


def test_where_nothing_else_happens_meanwhile(system: Fleet) -> None:
    """No arrival and no completion, at which expired requests would be seen anyway: only the timer can be in time."""
    system.rests()
    record = system.records["executor"]
    with record.shut():
        busy = [system.client.send("router", Call(traffic_class=INTERACTIVE))]
        eventually(lambda: record.held() == 1)
        busy.append(system.client.send("router", Call(traffic_class=INTERACTIVE)))
        eventually(lambda: system.metric("in_flight_rows") == 2)  # none of the others is sent ahead
        late, others = lateness(system, [second + index / 1000 for second in range(3) for index in range(30)])
        assert not any(future.done() for future in busy)
    assert all(future.result().ok for future in busy)
    assert statistics.median(late) < SLACK * statistics.median(others), (sorted(late), sorted(others))
