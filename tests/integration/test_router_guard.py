# SPDX-License-Identifier: Apache-2.0
"""Under `serve` the guard holds in either mode, and the router's metrics page shows what the hooks did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from priority_router.hooks import HookCounters, HookCounts, marker_of_process
from priority_router.ops.server import children
from support.clients import Call, Client, client, metrics
from support.fleet import MODES, eventually
from support.models import BULK, INTERACTIVE, Executor, Record, Router, write_pair
from support.serving import Serving, serving


class Doors:
    """A server with a router and an executor of either mode; both are named for it."""

    def __init__(self, command: Serving, records: dict[str, Record], sender: Client) -> None:
        self.command = command
        self.records = records
        self.sender = sender
        self.metrics = command.ready()[2]

    def metric(self, name: str, mode: str) -> float:
        return metrics(self.metrics)[f'priority_router_{name}{{model="router_{mode}"}}']

    def counts(self) -> HookCounts:
        """What the hooks say themselves."""
        marker = marker_of_process(next(iter(children.stubs(self.command.tritonserver()))))
        assert marker is not None
        counters = HookCounters.open(marker)
        try:
            return counters.read()
        finally:
            counters.close()


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp("guard")
    repository = folder / "repository"
    repository.mkdir()
    records = {}
    for mode in MODES:
        executor = Executor(f"executor_{mode}", batch_seconds=0.03, max_batch_size=1)
        records[mode] = write_pair(repository, Router(f"router_{mode}", mode=mode), executor)
    with (
        serving(folder, "--model-repository", repository) as command,
        client(command.ready()[1], concurrency=64) as sender,
    ):
        yield Doors(command, records, sender)


@pytest.mark.parametrize("mode", MODES)
def test_clients_are_sent_to_the_router_whatever_its_mode(doors: Doors, mode: str) -> None:
    doors.records[mode].forget()
    before = doors.counts().calls_refused
    direct = doors.sender.infer(f"executor_{mode}", Call(tag=2))
    refusal = f"model 'executor_{mode}' takes no requests from clients: call model 'router_{mode}' instead"
    assert (direct.code, refusal in direct.message) == ("INVALID_ARGUMENT", True), direct
    routed = doors.sender.infer(f"router_{mode}", Call(tag=1, traffic_class=INTERACTIVE))
    assert routed.ok, routed.message
    assert doors.records[mode].tags() == [1]
    assert doors.metric("guard_active", mode) == 1
    assert doors.counts().calls_refused == before + 1
    # The page counts from the router's start, and nothing was refused before.
    eventually(lambda: doors.metric("hook_calls_refused_total", mode) == before + 1)


def test_the_page_counts_the_waits_that_were_cut_short_during_a_backlog(doors: Doors) -> None:
    before = doors.counts().waits_cut
    backlog = [doors.sender.send("router_levels", Call(tag=tag, traffic_class=BULK)) for tag in range(30)]
    assert all(future.result().ok for future in backlog)
    after = doors.counts().waits_cut
    assert after > before, "the backlog had no wait cut short"
    # Those before the router's start, when there was nothing to wait for, are none.
    eventually(lambda: doors.metric("hook_waits_cut_total", "levels") >= after)
