# SPDX-License-Identifier: Apache-2.0
"""Under `serve` the guard holds in either mode, and the router's metrics page shows what the hooks did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.clients import Call, metrics
from support.fleet import MODES, eventually
from support.hook_models import counts_in
from support.models import BULK, INTERACTIVE, Executor, Router
from support.serving import Served, served


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a router and an executor of either mode; both are named for it."""
    pairs = [
        (Router(f"router_{mode}", mode=mode), Executor(f"executor_{mode}", batch_seconds=0.03, max_batch_size=1))
        for mode in MODES
    ]
    with served(tmp_path_factory.mktemp("guard"), *pairs) as it:
        yield it


def metric(doors: Served, name: str, mode: str) -> float:
    return metrics(doors.metrics)[f'priority_router_{name}{{model="router_{mode}"}}']


@pytest.mark.parametrize("mode", MODES)
def test_clients_are_sent_to_the_router_whatever_its_mode(doors: Served, mode: str) -> None:
    doors.records[f"executor_{mode}"].forget()
    before = counts_in(doors.session).calls_refused
    direct = doors.sender.infer(f"executor_{mode}", Call(tag=2))
    refusal = f"model 'executor_{mode}' takes no requests from clients: call model 'router_{mode}' instead"
    assert (direct.code, refusal in direct.message) == ("INVALID_ARGUMENT", True), direct
    routed = doors.sender.infer(f"router_{mode}", Call(tag=1, traffic_class=INTERACTIVE))
    assert routed.ok, routed.message
    assert doors.records[f"executor_{mode}"].tags() == [1]
    assert metric(doors, "guard_active", mode) == 1
    assert counts_in(doors.session).calls_refused == before + 1
    # The page counts from the router's start, and nothing was refused before.
    eventually(lambda: metric(doors, "hook_calls_refused_total", mode) == before + 1)


def test_the_page_counts_the_waits_that_were_cut_short_during_a_backlog(doors: Served) -> None:
    before = counts_in(doors.session).waits_cut
    backlog = [doors.sender.send("router_levels", Call(tag=tag, traffic_class=BULK)) for tag in range(30)]
    assert all(future.result().ok for future in backlog)
    after = counts_in(doors.session).waits_cut
    assert after > before, "the backlog had no wait cut short"
    # Those before the router's start, when there was nothing to wait for, are none.
    eventually(lambda: metric(doors, "hook_waits_cut_total", "levels") >= after)
