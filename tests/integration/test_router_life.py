# SPDX-License-Identifier: Apache-2.0
"""Loading, reloading, unloading: of the router, of its executor, and what keeps a router from loading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tritonclient.http
from priority_router.config import POLICY_FILE
from support import models
from support.clients import Call
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, Executor, Router
from tritonclient.utils import InferenceServerException

RELOADS = 8
CONTROL_SECONDS = 300
EXECUTOR = Executor("executor", batch_seconds=0.05, max_batch_size=2)
# Longer than an ordinary call takes on a busy machine.
LOSING = Router("losing", policy={"executor_timeout_microseconds": 2_000_000, "guard_executor": False})
RELOADED = Router("reloaded", policy={"guard_executor": False})
TWO_INSTANCES = "instance_group { kind: KIND_CPU count: 2 }"
BATCHING = {
    "sequences": "sequence_batching { }",
    "own_levels": "dynamic_batching { priority_levels: 2 default_priority_level: 2 }",
    "ordered": "dynamic_batching { preserve_ordering: true }",
    "delayed": "dynamic_batching { max_queue_delay_microseconds: 1000 }",
}


def write_unloadable(repository: Path) -> None:
    """Routers that must not load, whatever the mode, and one that may; each is named for its fault."""
    executor = replace(EXECUTOR, name="executor")
    for name in ("two_instances", "broken_policy", "no_policy", "unequal_batch", "itself", *BATCHING):
        router = Router(name, policy={"guard_executor": False}, mode="plain")
        if name == "itself":
            models.write_router(repository, router, replace(executor, name="itself"))
            continue
        policy = models.write_router(repository, router, executor)
        config = policy.parents[1] / "config.pbtxt"
        if name == "two_instances":
            config.write_text(config.read_text().replace("instance_group { kind: KIND_CPU count: 1 }", TWO_INSTANCES))
        elif name == "broken_policy":
            policy.write_text(policy.read_text().replace("level = 2", "level = 0"))
        elif name == "no_policy":
            policy.rename(policy.with_name("policy.txt"))
        elif name in BATCHING:
            config.write_text(config.read_text().replace("dynamic_batching { }", BATCHING[name]))
        elif name == "unequal_batch":
            text = config.read_text().replace("max_batch_size: 32", "max_batch_size: 0")
            config.write_text(text.replace("dynamic_batching { }", ""))


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    routers = [(RELOADED, EXECUTOR), (LOSING, EXECUTOR)]
    arguments = ["--model-control-mode=explicit", "--load-model=reloaded", "--load-model=losing"]
    folder = tmp_path_factory.mktemp("life")
    with fleet(folder, request.param, routers, extra_args=arguments) as made:
        write_unloadable(made.repository)
        yield made


@pytest.fixture
def control(system: Fleet) -> Iterator[Any]:
    with tritonclient.http.InferenceServerClient(
        system.server.http, network_timeout=CONTROL_SECONDS, connection_timeout=CONTROL_SECONDS
    ) as made:
        yield made


@pytest.fixture
def loaded(system: Fleet, control: Any) -> Fleet:
    """Router and executor serve, and the metrics page tells of no earlier test."""
    for model in ("executor", "reloaded", "losing"):
        if not control.is_model_ready(model):
            control.load_model(model)
    for router in ("reloaded", "losing"):
        system.rests(router)
    return system


def reload(system: Fleet, control: Any) -> Path:
    """Puts a new generation of the router beside the old one, whose process is returned.

    Triton does that only where a file has changed.
    """
    with (system.repository / "reloaded" / "1" / POLICY_FILE).open("a") as policy:
        policy.write("# changed\n")
    before = system.server.stub_pids()["reloaded_0_0"]
    control.load_model("reloaded")
    return Path(f"/proc/{before}")


def gone(process: Path) -> None:
    eventually(lambda: not process.exists())


def test_a_router_serves_before_its_executor_and_recovers_by_itself(system: Fleet, control: Any) -> None:
    """Case 19."""
    assert not control.is_model_ready("executor")
    for _ in range(3):
        reply = system.client.infer("reloaded", Call(tag=1))
        assert (reply.code, "executor 'executor' is not serving" in reply.message) == ("UNAVAILABLE", True), reply
    control.load_model("executor")
    assert system.client.infer("reloaded", Call(tag=1)).ok
    control.unload_model("executor")
    eventually(lambda: system.client.infer("reloaded", Call(tag=1)).code == "UNAVAILABLE")
    control.load_model("executor")
    assert system.client.infer("reloaded", Call(tag=1)).ok


def test_an_executor_reloaded_under_load_leaves_no_caller_without_an_answer(loaded: Fleet, control: Any) -> None:
    futures = [loaded.client.send("reloaded", Call(tag=tag, traffic_class=BULK)) for tag in range(100, 140)]
    eventually(lambda: any(future.done() for future in futures))
    control.unload_model("executor")
    control.load_model("executor")
    replies = [future.result() for future in futures]
    for reply in replies:
        assert reply.ok or (reply.code, "is not serving" in reply.message) == ("UNAVAILABLE", True), reply
    assert any(reply.ok for reply in replies)
    assert loaded.client.infer("reloaded", Call(tag=1)).ok


def test_a_router_unloaded_with_requests_queued_serves_them_first(loaded: Fleet, control: Any) -> None:
    stub = loaded.server.stub_pids()["reloaded_0_0"]
    with loaded.records["executor"].shut():
        futures = [loaded.client.send("reloaded", Call(tag=tag, traffic_class=BULK)) for tag in range(100, 160)]
        eventually(
            lambda: loaded.held("reloaded") == len(futures)
        )  # Triton refuses what comes after the order to unload
        control.unload_model("reloaded")
    assert [future.result().code for future in futures] == ["OK"] * len(futures)
    gone(Path(f"/proc/{stub}"))
    assert not loaded.client.infer("reloaded", Call(tag=1)).ok
    control.load_model("reloaded")
    assert loaded.client.infer("reloaded", Call(tag=1, traffic_class=INTERACTIVE)).ok


def test_a_router_reloaded_keeps_its_place_on_the_metrics_page(loaded: Fleet, control: Any) -> None:
    with loaded.records["executor"].shut():
        futures = [loaded.client.send("reloaded", Call(tag=tag, traffic_class=BULK)) for tag in range(100, 120)]
        eventually(lambda: loaded.held("reloaded") == len(futures))
        reload(loaded, control)
        futures += [loaded.client.send("reloaded", Call(tag=tag, traffic_class=BULK)) for tag in range(120, 130)]
        # Both generations add to the page.
        eventually(lambda: loaded.held("reloaded") == len(futures))
    assert [future.result().code for future in futures] == ["OK"] * 30
    eventually(lambda: loaded.metric("queue_size", "reloaded", **{"class": BULK}) == 0)
    eventually(lambda: loaded.metric("in_flight_rows", "reloaded") == 0)
    eventually(lambda: loaded.outcomes("reloaded")[BULK, "success"] >= 10)


def test_a_router_reloaded_again_and_again_keeps_the_server_alive_and_its_counts(loaded: Fleet, control: Any) -> None:
    """Each generation writes to metrics that its predecessor had; what one of them deletes breaks the server's heap."""
    before = loaded.settled_outcomes("reloaded")[BULK, "success"]
    for tag in range(RELOADS):
        gone(reload(loaded, control))
        assert loaded.client.infer("reloaded", Call(tag=tag, traffic_class=BULK)).ok
    # Stock Triton's heap tells of the damage by chance, the counts always: a deleted metric starts again at 0.
    eventually(lambda: loaded.outcomes("reloaded")[BULK, "success"] >= before + RELOADS)


def test_a_call_without_an_answer_is_given_up_and_its_late_answer_dropped(loaded: Fleet) -> None:
    """Rule 6."""
    late = loaded.metric("late_answers_total", "losing")
    with loaded.records["executor"].shut():
        reply = loaded.client.infer("losing", Call(tag=50, traffic_class=INTERACTIVE))
        assert (reply.code, "no answer within executor_timeout of 2000000 us" in reply.message) == ("UNAVAILABLE", True)
        assert reply.seconds >= 2
        eventually(lambda: loaded.metric("lost_dispatches", "losing") == 1)
        assert loaded.metric("late_answers_total", "losing") == late
    eventually(lambda: loaded.metric("late_answers_total", "losing") == late + 1)
    eventually(lambda: loaded.metric("lost_dispatches", "losing") == 0)
    eventually(lambda: loaded.client.infer("losing", Call(tag=1)).ok)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("two_instances", "it must be one CPU instance, since each has a queue of its own"),
        ("broken_policy", "class[1].level = 0 cannot be used; write a value from 1"),
        ("no_policy", "a router's version folder must hold policy.toml"),
        ("unequal_batch", "has max_batch_size 0, its policy's [executor_shape] has 2"),
        ("itself", "policy.toml names the router itself as executor"),
        ("sequences", "has sequence_batching, which a router cannot serve"),
        ("own_levels", "has priority_levels: "),
        ("ordered", "has preserve_ordering: "),
    ],
)
def test_what_cannot_serve_does_not_load_and_says_why(system: Fleet, control: Any, model: str, said: str) -> None:
    with pytest.raises(InferenceServerException) as caught:
        control.load_model(model)
    assert said in str(caught.value)
    assert control.is_server_live()


def test_a_queue_delay_of_the_routers_own_is_warned_of(loaded: Fleet, control: Any) -> None:
    control.load_model("delayed")
    assert loaded.client.infer("delayed", Call(tag=1)).ok
    said = "priority_router delayed: its config.pbtxt has max_queue_delay_microseconds: 1000"
    assert loaded.server.log_text().count(said) == 1
    control.unload_model("delayed")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server that preloads nothing."""
    routers = [(Router("plain_router"), EXECUTOR)]
    arguments = ["--model-control-mode=explicit", "--load-model=plain_router", "--load-model=executor"]
    with fleet(tmp_path_factory.mktemp("bare"), "plain", routers, hooks=False, extra_args=arguments) as made:
        models.write_router(made.repository, Router("levels_router"), EXECUTOR)
        yield made


def test_levels_mode_without_hooks_is_refused_with_the_reason(bare: Fleet) -> None:
    with (
        tritonclient.http.InferenceServerClient(bare.server.http, network_timeout=CONTROL_SECONDS) as control,
        pytest.raises(InferenceServerException) as caught,
    ):
        control.load_model("levels_router")
    for part in ("is not loaded into this server", "stall", "priority-router serve", 'mode = "plain"'):
        assert part in str(caught.value)


def test_plain_mode_without_hooks_serves_and_says_that_the_back_door_is_open(bare: Fleet) -> None:
    assert bare.client.infer("plain_router", Call(tag=1, traffic_class=INTERACTIVE)).ok
    assert bare.metric("guard_active", "plain_router") == 0
    assert bare.server.log_text().count("clients can call 'executor' directly and pass the queue") == 1
    assert bare.client.infer("executor", Call(tag=1)).ok


@pytest.mark.parametrize("system", ["levels"], indirect=True)
def test_the_hooks_are_seen_to_work(loaded: Fleet) -> None:
    before = loaded.metric("hook_priorities_set_total", "reloaded")
    assert loaded.client.infer("reloaded", Call(tag=1)).ok
    eventually(lambda: loaded.metric("hook_priorities_set_total", "reloaded") > before)
    for hook in ("priority", "dispatch"):
        assert loaded.metric("hook_working", "reloaded", hook=hook) == 1
