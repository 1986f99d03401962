# SPDX-License-Identifier: Apache-2.0
"""Many executor calls in flight at once: Triton's pool of threads holds them and, beside them, every reply."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from priority_router.control import CALLS_PER_INSTANCE, TRITON_DEFAULT_POOL
from support.clients import Call
from support.fleet import Fleet, eventually, fleet
from support.models import INTERACTIVE, Executor, Router

INSTANCES = 10
IN_FLIGHT = CALLS_PER_INSTANCE * INSTANCES


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    executor = Executor(max_batch_size=1, instances=INSTANCES)
    router = Router(policy={"shared_executor": True})
    with fleet(tmp_path_factory.mktemp("pool"), "levels", [(router, executor)]) as made:
        yield made


def test_more_calls_than_triton_has_threads_by_default_and_replies_still_leave(system: Fleet) -> None:
    assert IN_FLIGHT > TRITON_DEFAULT_POOL
    record = system.records["executor"]
    with record.shut():
        sent = [system.client.send("router", Call(tag=1, traffic_class=INTERACTIVE)) for _ in range(IN_FLIGHT)]
        eventually(lambda: system.metric("in_flight_rows") == IN_FLIGHT)
        eventually(lambda: system.pending() == IN_FLIGHT - INSTANCES)  # all in the executor's own queue
        assert record.held() == INSTANCES
        # Without a free thread this reply would wait for the first call to come back.
        assert system.client.infer("router", Call(tag=1, traffic_class="gold")).code == "INVALID_ARGUMENT"
        assert not any(future.done() for future in sent)
    for future in sent:
        assert future.result().ok
