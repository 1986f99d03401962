# SPDX-License-Identifier: Apache-2.0
"""Many executor calls in flight at once: Triton's pool of threads holds them and, beside them, every reply."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from priority_router.control import CALLS_PER_INSTANCE, TRITON_DEFAULT_POOL
from support import clients
from support.clients import Call
from support.fleet import Fleet, eventually, fleet
from support.models import INTERACTIVE, Executor, Router

INSTANCES = 10
IN_FLIGHT = CALLS_PER_INSTANCE * INSTANCES
SLOW_TAG = 50
SLOW_SECONDS = 4.0
AT_ONCE_SECONDS = 1.0
"""Without a free thread a reply waits for the first call to come back, most of SLOW_SECONDS."""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    executor = Executor(max_batch_size=1, instances=INSTANCES, sleep_tags={SLOW_TAG: SLOW_SECONDS})
    router = Router(policy={"shared_executor": True})
    with fleet(tmp_path_factory.mktemp("pool"), "levels", [(router, executor)]) as made:
        yield made


def test_more_calls_than_triton_has_threads_by_default_and_replies_still_leave(system: Fleet) -> None:
    assert IN_FLIGHT > TRITON_DEFAULT_POOL
    pending = 'nv_inference_pending_request_count{model="executor",version="1"}'
    begun = time.monotonic()
    sent = [system.client.send("router", Call(tag=SLOW_TAG, traffic_class=INTERACTIVE)) for _ in range(INSTANCES)]
    eventually(lambda: system.metric("in_flight_rows") == INSTANCES)
    sent += [system.client.send("router", Call(tag=1, traffic_class=INTERACTIVE)) for _ in range(IN_FLIGHT - INSTANCES)]
    eventually(lambda: system.metric("in_flight_rows") == IN_FLIGHT)
    refused = system.client.infer("router", Call(tag=1, traffic_class="gold"))
    held = clients.metrics(system.server.metrics)[pending]
    assert (refused.code, refused.seconds < AT_ONCE_SECONDS) == ("INVALID_ARGUMENT", True), refused
    assert time.monotonic() - begun < SLOW_SECONDS, "the executor came back too early for this test"
    assert held == IN_FLIGHT - INSTANCES, "calls did not get as far as the executor's own queue"
    for future in sent:
        assert future.result().ok
