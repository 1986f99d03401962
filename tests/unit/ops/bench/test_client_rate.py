# SPDX-License-Identifier: Apache-2.0
"""What the client can send, what it is asked for, and that too much is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from priority_router.core.values import SECOND
from priority_router.ops.bench import client_rate, doubts, experiment, report
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.client_rate import Client, Top
from priority_router.ops.bench.load import LoadError
from priority_router.ops.bench.scenarios import SCENARIOS
from priority_router.ops.bench.venue import Embedded
from priority_router.ops.bench.wire import Outcome

from . import ledgers
from .ledgers import ledger, summary


def schedule(rate, seconds=2, burst=0):
    """Evenly, and some more at once in the last second."""
    at = np.concatenate([np.arange(rate * seconds) * SECOND // max(1, rate), np.full(burst, seconds * SECOND - 1)])
    none = np.zeros(len(at), np.int64)
    return Schedule(("online",), at.astype(np.int64), none, none, seconds * SECOND)


def test_the_rate_of_a_process_counts_once_connections_are_there():
    """From the 26th of 101 being sent, at 50 ms, to the last reply."""
    entries = [("online", 0, 202 + at // 50, Outcome.SUCCESS) for at in range(101)]
    made = replace(ledger(entries), cpu_seconds=0.12, sent=np.arange(101) * 2_000_000)
    top = client_rate.of_ledger(made)
    assert top.rate == pytest.approx(76 / 0.154)
    assert top.cpu == pytest.approx(0.6)


def test_there_is_no_rate_where_requests_failed():
    made = ledger([("online", 0, 1, Outcome.OTHER)], failures=[(500, "no luck")])
    with pytest.raises(LoadError, match="no luck"):
        client_rate.of_ledger(made)


def test_a_load_that_one_process_cannot_send_is_shared_by_several():
    def needed(rate, top=None, **options):
        return client_rate.planned(schedule(rate), top, **{"grpc": False, **options}).processes

    assert [needed(rate) for rate in (0, 100, 3900, 4100, 9000)] == [1, 1, 1, 2, 3]
    assert needed(3900, grpc=True) == 4
    assert needed(3900, Top(50_000, 1)) == 1
    assert needed(3900, Top(2500, 1)) == 2, "a slow machine"
    assert needed(9000, processes=1) == 1


def test_too_much_is_what_the_busiest_second_asks_of_the_processes_that_have_a_core():
    one = Client(False, Top(1000, 1), processes=1, cores=2, asked=500, peak=800)
    assert one.too_much() is None
    assert "up to 801 requests/s, more than the 800" in str(replace(one, peak=801).too_much())
    assert replace(one, peak=1600, processes=2).too_much() is None
    assert "more than the 1600" in str(replace(one, peak=1601, processes=9).too_much())
    assert replace(one, asked=None, peak=None).too_much() is None
    burst = client_rate.planned(schedule(100, burst=900), None, grpc=False)
    assert (burst.asked, burst.peak) == (550.0, 1000.0)


class Said:
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    def step(self, text):
        raise AssertionError("an arm was run")


@pytest.mark.parametrize(("top", "warned"), [(Top(9000, 1), 0), (Top(100, 1), 1)])
def test_what_is_too_much_is_said_before_the_first_arm_runs(monkeypatch, top, warned):
    monkeypatch.setattr(client_rate, "measured", lambda inputs: top)
    said, scenario = Said(), SCENARIOS["overload"]
    client = experiment._client(experiment.Plan(scenario, 1, Embedded(scenario), processes=1), said)
    assert f"alone one process sends {top.rate:.0f} requests/s with 100% of a core; this load asks 12" in said.lines[0]
    assert len([line for line in said.lines if line.startswith("warning: the load asks up to")]) == warned
    made = ledgers.results(scenario, [{"router": summary(online={})}], client=client)
    assert sum("more than the 80 that a client of 1 process" in text for text in doubts.warnings(made)) == warned
    assert f"  {client.words()}" in report.as_text(made).splitlines()


def test_a_client_that_cannot_be_measured_is_no_reason_to_stop(monkeypatch):
    def fails(inputs):
        raise LoadError("no luck")

    monkeypatch.setattr(client_rate, "measured", fails)
    said, scenario = Said(), SCENARIOS["overhead"]
    client = experiment._client(experiment.Plan(scenario, 1, Embedded(scenario)), said)
    assert said.lines == ["no luck", "client: one process is taken to send 4000 requests/s, which was not measured"]
    assert client.as_json(0.5)["top_rate"] is None


@pytest.mark.parametrize(("rate", "warned"), [(7199.0, False), (7201.0, True)])
def test_a_closed_loop_as_fast_as_its_client_is_said(rate, warned):
    rounds = [{"router": summary(**{"64_in_flight": {"rows_per_s": rate}})}]
    made = ledgers.results(SCENARIOS["overhead"], rounds, client=Client(False, Top(9000, 1), 1, 2))
    words = f"router: {rate:.0f} requests/s are near the 9000 that its client can do at most"
    assert (words in doubts.warnings(made)) is warned
