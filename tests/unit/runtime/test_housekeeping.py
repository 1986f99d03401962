# SPDX-License-Identifier: Apache-2.0
"""Metrics, drain order and hook watch, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from priority_router.control import ControlDirectory, RouterChannel
from priority_router.errors import Outcome
from priority_router.hooks import HookCounts
from priority_router.runtime.audit import Received
from priority_router.runtime.export import Exporter
from priority_router.runtime.housekeeping import Housekeeping, Sources
from priority_router.runtime.metrics import Tally
from priority_router.runtime.work import Job

from .harness import Bench, policy


class Counters:
    """The hooks' counters, set by the test."""

    def __init__(self, *counts: int) -> None:
        self.counts = HookCounts(*counts)
        self.closed = False

    def read(self) -> HookCounts:
        return self.counts

    def close(self) -> None:
        self.closed = True


class House(Bench):
    """A bench with housekeeping around its driver."""

    def furnish(self, hooks: Any = None, watched: bool = True, channel: RouterChannel | None = None) -> House:
        self.tally = Tally(["online", "bulk"])
        self.received = Received()
        self.levels_sent = 0
        sources = Sources([self.tally], dict, self.received, lambda: self.levels_sent)
        exporter = Exporter(self.triton, "router")
        self.house = Housekeeping(self.driver, sources, exporter, hooks, watched, channel, self.clock, self.log)
        return self

    def submit(self, *jobs: Job) -> None:
        self.received.begun += len(jobs)
        super().submit(*jobs)
        self.received.ended += len(jobs)

    def counts_one(self, class_name: str | None = "online", outcome: Outcome = Outcome.SUCCESS) -> None:
        """A reply thread is done with a reply."""
        self.tally.begun += 1
        self.tally.count(class_name, outcome, None, None)
        self.tally.ended += 1

    def read(self, sample: str) -> float:
        return self.triton.page.read(sample)


IN_FLIGHT = 'priority_router_in_flight_rows{model="router"}'
SUCCESS = 'priority_router_requests_total{class="online",model="router",outcome="success"}'


def test_metrics_are_flushed_at_most_twice_a_second() -> None:
    house = House(policy()).furnish()
    for round_number in range(1, 21):
        house.counts_one()
        house.clock.pass_ms(100)
        house.house.step()
        assert house.read(SUCCESS) == round_number - round_number % 5
    assert house.triton.page[SUCCESS].calls == 4


def test_hook_counts_begin_when_the_router_loads() -> None:
    hooks = Counters(100, 50, 7)
    house = House(policy()).furnish(hooks)
    hooks.counts = HookCounts(103, 50, 8)
    house.clock.pass_ms(600)
    house.house.step()
    assert house.read('priority_router_hook_priorities_set_total{model="router"}') == 3
    assert house.read('priority_router_hook_calls_refused_total{model="router"}') == 1


@pytest.mark.parametrize("watched", [True, False])
def test_a_silent_hook_is_an_error_where_it_is_relied_on(watched: bool) -> None:
    hooks = Counters(0, 0, 0)
    house = House(policy(size=1)).furnish(hooks, watched)
    house.submit(*[house.job("bulk") for _ in range(300)])
    for _ in range(120):
        house.levels_sent += 1
        house.complete(house.calls[-1])
        house.clock.pass_ms(100)
        house.house.step()
    errors = [text for level, text in house.triton.Logger.lines if level == "error"]
    if watched:
        assert len(errors) == 1
        assert house.read('priority_router_hook_working{hook="dispatch",model="router"}') == 0
        assert house.read('priority_router_hook_working{hook="priority",model="router"}') == 0
    else:
        assert errors == []


def test_a_drain_is_reported_when_every_reply_has_left(tmp_path: Path) -> None:
    control = ControlDirectory(tmp_path / "control")
    house = House(policy(size=1)).furnish(channel=RouterChannel(control.path, "router"))
    jobs = [house.job(), house.job("bulk")]
    house.submit(*jobs)
    house.house.step()
    control.order_drain()
    house.house.step()
    assert control.undrained() == ["router"]
    house.submit(house.job())
    assert house.answers[-1].error is not None
    done = 0
    while done < len(house.calls):
        house.complete(house.calls[done])
        done += 1
    house.house.step()
    assert control.undrained() == ["router"], "decided is not yet sent"
    for job, error in house.answers:
        house.counts_one(job.class_name, Outcome.SUCCESS if error is None else error.outcome)
    house.house.step()
    assert control.undrained() == []


def test_without_an_order_nothing_is_drained(tmp_path: Path) -> None:
    control = ControlDirectory(tmp_path / "control")
    house = House(policy()).furnish(channel=RouterChannel(control.path, "router"))
    house.house.step()
    house.submit(house.job())
    assert house.answers == []
    assert control.undrained() == ["router"]


def test_closing_sends_the_last_numbers_and_signs_off(tmp_path: Path) -> None:
    control = ControlDirectory(tmp_path / "control")
    hooks = Counters(0, 0, 0)
    house = House(policy()).furnish(hooks, channel=RouterChannel(control.path, "router"))
    house.counts_one()
    house.house.close()
    assert house.read(SUCCESS) == 1
    assert hooks.closed
    assert control.undrained() == []


def failing(*_: Any) -> None:
    raise RuntimeError("no answer from the server")


@pytest.mark.parametrize(
    ("owner", "method"), [(Exporter, "flush"), (Exporter, "close"), (RouterChannel, "close"), (Counters, "close")]
)
def test_closing_goes_on_when_one_part_of_it_fails(
    owner: type, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = ControlDirectory(tmp_path / "control")
    hooks = Counters(0, 0, 0)
    house = House(policy(size=1)).furnish(hooks, channel=RouterChannel(control.path, "router"))
    house.submit(house.job())
    house.clock.pass_ms(600)
    house.house.step()
    assert house.read(IN_FLIGHT) == 1
    monkeypatch.setattr(owner, method, failing)
    house.house.close()
    if (owner, method) != (Exporter, "close"):
        assert house.read(IN_FLIGHT) == 0
    if owner is not RouterChannel:
        assert control.undrained() == []
    assert hooks.closed == (owner is not Counters)
    ((level, text),) = house.triton.Logger.lines
    assert (level, "no answer from the server" in text) == ("error", True)


def test_closing_does_not_wait_for_a_server_that_does_not_answer(tmp_path: Path) -> None:
    control = ControlDirectory(tmp_path / "control")
    house = House(policy()).furnish(channel=RouterChannel(control.path, "router"))
    house.counts_one()
    house.house.close(server_answers=False)
    assert house.triton.page[SUCCESS].calls == 0
    assert control.undrained() == []


def test_an_order_to_drain_that_failed_is_carried_out_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = ControlDirectory(tmp_path / "control")
    house = House(policy()).furnish(channel=RouterChannel(control.path, "router"))
    control.order_drain()
    with monkeypatch.context() as patch:
        patch.setattr(house.driver, "drain", failing)
        house.house.step()
        assert control.undrained() == ["router"]
    house.house.step()
    assert control.undrained() == []
    house.submit(house.job())
    assert house.answers[-1].error is not None


def test_a_look_that_fails_does_not_keep_the_numbers_back(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(policy()).furnish(Counters(0, 0, 0))
    monkeypatch.setattr(house.house, "_look_for_drain", failing)
    monkeypatch.setattr(house.house, "_look_at_hooks", failing)
    house.counts_one()
    house.clock.pass_ms(600)
    house.house.step()
    assert house.read(SUCCESS) == 1
    assert len(house.triton.Logger.lines) == 2
