# SPDX-License-Identifier: Apache-2.0
"""Another policy in a driver, an intake, tallies and metrics that are at work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from priority_router.config import RouterPolicy, parse_policy
from priority_router.core.scheduler import Scheduler
from priority_router.errors import Outcome, QueueFull
from priority_router.runtime import metrics
from priority_router.runtime.metrics import Tally
from priority_router.runtime.policy_watch import PolicyFile
from priority_router.runtime.router import Router, Surroundings
from support.fake_triton import Request, Triton, rows
from support.policy_texts import BULK, a_class, a_policy

from .harness import Bench, policy


def renamed(*names: str) -> RouterPolicy:
    """One class per name, the last the default."""
    return parse_policy(a_policy(*(a_class(name, level) for level, name in enumerate(names, start=1)), size=1))


def adopt(bench: Bench, new: RouterPolicy) -> dict[str, int]:
    moved = bench.driver.adopt(new.scheduling, new.default_class)
    bench.intake.adopt(new)
    return moved


def busy() -> Bench:
    """Two calls at the executor, and nothing waits."""
    bench = Bench(policy(size=1))
    bench.submit(bench.job("online"), bench.job("online"))
    assert len(bench.calls) == 2
    return bench


def finish(bench: Bench) -> None:
    done = 0
    while done < len(bench.calls):
        bench.complete(bench.calls[done])
        done += 1


def test_who_waits_is_kept_and_answered_once_under_its_own_class() -> None:
    bench = busy()
    waiting = [bench.job(name) for name in ("bulk", "online", "bulk")]
    bench.submit(*waiting)
    assert adopt(bench, renamed("urgent", "patient")) == {"online": 1, "bulk": 2}
    assert bench.driver.observe().waiting == {"urgent": 0, "patient": 3}
    assert len(bench.driver.waiting_ids("patient")) == 3
    finish(bench)
    assert [answer.job for answer in bench.answers[2:]] == waiting
    assert {answer.error for answer in bench.answers} == {None}
    assert [job.class_name for job in waiting] == ["bulk", "online", "bulk"]
    assert bench.driver.idle
    assert not bench.driver.backlog


def test_a_request_that_was_read_before_the_change_waits_in_the_default_class() -> None:
    bench = busy()
    late = bench.job("online")
    adopt(bench, renamed("urgent", "patient"))
    bench.submit(late)
    assert bench.driver.observe().waiting == {"urgent": 0, "patient": 1}
    finish(bench)
    assert bench.driver.faults == 0
    assert (bench.answers[-1].job, bench.answers[-1].error) == (late, None)


def test_a_new_class_can_be_asked_for_and_an_old_one_no_longer() -> None:
    bench = busy()
    adopt(bench, renamed("urgent", "patient"))
    bench.submit(bench.job("urgent"))
    with pytest.raises(Exception, match="class 'bulk' is unknown"):
        bench.job("bulk")


def test_new_limits_hold_and_name_the_class_for_cancel_checks() -> None:
    bench = busy()
    bench.submit(bench.job("bulk"), bench.job("bulk"))
    bulk = replace(policy().scheduling.classes[1], max_queue_size=1)
    bench.driver.adopt(replace(bench.policy.scheduling, classes=(policy().scheduling.classes[0], bulk)), "bulk")
    assert bench.answers == []
    bench.submit(bench.job("bulk"))
    assert isinstance(bench.answers[0].error, QueueFull)
    assert bench.driver.full_classes() == {"bulk"}
    assert list(bench.driver.waiting_ids("gone")) == []


def test_after_a_fault_the_policy_in_force_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = busy()
    adopt(bench, renamed("urgent", "patient"))
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "advance", lambda *_: 1 / 0)
        bench.driver.tick()
    assert bench.driver.faults == 1
    bench.submit(bench.job("urgent"))
    assert bench.driver.faults == 1
    assert set(bench.driver.observe().waiting) == {"urgent", "patient"}


def test_a_fault_while_it_is_adopted_answers_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = busy()
    bench.submit(bench.job("bulk"))
    monkeypatch.setattr(Scheduler, "adopt", lambda *_: 1 / 0)
    adopt(bench, renamed("urgent", "patient"))
    assert len(bench.answers) == 3
    assert bench.driver.idle


def test_counters_of_a_class_that_is_gone_stay_and_go_on() -> None:
    bench, tally = busy(), Tally(["online", "bulk"])
    tally.count("bulk", Outcome.SUCCESS, 5, 5)
    tally.adopt(["urgent"])
    tally.count("bulk", Outcome.SUCCESS, 5, 5)
    tally.count("urgent", Outcome.SUCCESS, 5, 5)
    tally.adopt(["bulk"])
    bench.driver.adopt(renamed("urgent").scheduling, "urgent")
    found = {
        (sample.family, sample.labels): sample.value
        for sample in metrics.samples(metrics.Readings([tally], bench.driver.observe(), {}))
    }
    success = ("outcome", "success")
    assert found[metrics.REQUESTS, (("class", "bulk"), success)] == 2
    assert found[metrics.REQUESTS, (("class", "urgent"), success)] == 1
    assert found[metrics.QUEUE_COUNT, (("class", "bulk"),)] == 2
    assert (metrics.QUEUE_SIZE, (("class", "bulk"),)) not in found


TEXT = a_policy(BULK, top='mode = "plain"')


def asking(class_name: str) -> Request:
    return Request({"X": rows(1, 1.0), "CLASS": np.full((1, 1), class_name.encode(), object)})


def ask(router: Router, class_name: str) -> Any:
    request = asking(class_name)
    router.execute([request])
    return request.sender.reply


def test_a_router_takes_in_what_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TEXT)
    triton = Triton()
    router = Router(triton, parse_policy(TEXT), Surroundings("router", policy_file=PolicyFile(path, TEXT)))
    try:
        assert ask(router, "new").has_error()
        path.write_text(TEXT + a_class("new", 1))
        assert router._policy_watch is not None
        for _ in range(2):
            router._policy_watch.look()
        assert not ask(router, "new").has_error()
        assert not ask(router, "bulk").has_error()
    finally:
        router.close()
