# SPDX-License-Identifier: Apache-2.0
"""The router's audit of itself against the books that the load generator keeps, request by request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from priority_router.ops import assets
from priority_router.ops.bench import load
from priority_router.ops.bench.arrivals import poisson
from priority_router.ops.bench.ledger import Ledger
from priority_router.ops.bench.wire import Outcome, Route
from priority_router.ops.loads import ClassLoad
from support.fleet import Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, ErrorReply, Executor, Router

FAILING, DROPPED = 71, 666
SECONDS = 2.0

EXECUTOR = Executor(batch_seconds=0.02, error_tags={FAILING: ErrorReply("bad weights")})
CLASSES = (
    {"name": INTERACTIVE, "level": 1},
    {"name": "timed", "level": 2, "default_timeout_microseconds": 5_000},
    {"name": BULK, "level": 3, "max_queue_size": 20},
)
RATES = {INTERACTIVE: 40.0, "failing": 5.0, "timed": 60.0, BULK: 300.0, "unknown": 20.0}
"""Requests/s; more of them together than the executor can serve."""

FAULT = f"""
from priority_router.runtime.replies import Replies

_answer = Replies._answer


def _forgetful(self, answer, tally):
    if any(name == "TAG" and {DROPPED} in array for name, array in answer.job.inputs):
        raise RuntimeError("dropped on purpose")
    _answer(self, answer, tally)


Replies._answer = _forgetful
"""
"""Added to the backend: the reply to a request of one tag is never sent."""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("audit")
    forgetful = folder / "model.py"
    forgetful.write_text(assets.model_file().read_text() + FAULT)
    routers = [(Router(name, classes=CLASSES), EXECUTOR) for name in ("router", "forgetful")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assets, "model_file", lambda: forgetful)
        with fleet(folder / "fleet", "levels", routers, faulty=["forgetful"]) as made:
            yield made


def inputs(tag: int) -> dict[str, Any]:
    return {"X": np.ones((1, 4), np.float32), "TAG": np.full((1, 1), tag, np.int64)}


def target(system: Fleet, router: str) -> load.Target:
    named = {"failing": INTERACTIVE, "unknown": "gold", "dropped": INTERACTIVE}
    routes = {name: Route(router, class_name=named.get(name, name)) for name in (*RATES, "dropped")}
    own = {"failing": [load.Variant(inputs(FAILING))], "dropped": [load.Variant(inputs(DROPPED))]}
    return load.Target(system.server.http, routes, [inputs(1)], variants=own)


def books(ledger: Ledger) -> Mapping[tuple[str, str], int]:
    """What the generator says became of its requests, in the words of the router's metrics."""
    labels = {"failing": INTERACTIVE, "unknown": "_none", "dropped": INTERACTIVE}
    found: Counter[tuple[str, str]] = Counter()
    for index, code in zip(ledger.class_index.tolist(), ledger.outcome.tolist(), strict=True):
        name, outcome = ledger.classes[index], Outcome(code)
        if outcome is not Outcome.UNANSWERED:
            word = outcome.label
            if outcome is Outcome.OTHER:
                word = "invalid" if name == "unknown" else "executor_error"
            found[labels.get(name, name), word] += 1
    return found


def unaccounted(system: Fleet, router: str) -> float:
    return system.metric("unaccounted_requests", router)


def test_it_reads_zero_under_load_and_every_request_is_in_the_books_of_both(system: Fleet) -> None:
    schedule = poisson([ClassLoad(name, rate) for name, rate in RATES.items()], SECONDS, 7)
    read = []
    with load.begin(target(system, "router"), schedule, grace_s=60, queue_time=True) as running:
        eventually(system.held)
        while system.held():
            read.append(unaccounted(system, "router"))
        ledger = running.result()
    eventually(lambda: sum(system.outcomes().values()) == len(ledger))
    assert books(ledger) == dict(system.outcomes())
    assert {word for _, word in books(ledger)} == {"success", "timeout", "queue_full", "invalid", "executor_error"}
    assert len(ledger) == len(schedule)
    assert set(read) == {0}
    assert unaccounted(system, "router") == 0


def test_a_reply_that_is_dropped_is_missed_by_both(system: Fleet) -> None:
    schedule = poisson([ClassLoad(INTERACTIVE, 40.0), ClassLoad("dropped", 1.0)], SECONDS, 5)
    lost = int(np.count_nonzero(schedule.class_index == 1))
    assert lost
    assert unaccounted(system, "forgetful") == 0
    aim = target(system, "forgetful")
    with load.begin(aim, schedule, settle=[INTERACTIVE], grace_s=60, queue_time=True) as running:
        ledger = running.result()
        eventually(lambda: unaccounted(system, "forgetful") == lost)
    assert np.count_nonzero(ledger.outcome == Outcome.UNANSWERED) == lost
    eventually(lambda: sum(system.outcomes("forgetful").values()) == len(ledger) - lost)
    assert books(ledger) == dict(system.outcomes("forgetful"))
    said = "priority_router forgetful: 1 requests are unaccounted for: "
    assert said in system.server.log_text()
    assert system.held("forgetful") == 0
    assert unaccounted(system, "router") == 0, "the other one's"
