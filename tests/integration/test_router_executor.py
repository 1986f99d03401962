# SPDX-License-Identifier: Apache-2.0
"""An executor that is not there yet, never comes up, hangs, dies or is smaller than said: its callers are told."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http
from priority_router.config import POLICY_FILE
from priority_router.control import LATE_BOUND_CALLS_PER_INSTANCE, WRITTEN_OFF_LIMIT
from priority_router.errors import SetupError
from priority_router.ops import cli
from support.clients import Call, Reply
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, INTERACTIVE, TAG, TEXT, Executor, Router, X
from tritonclient.utils import InferenceServerException

GIVE_UP_SECONDS = 3.0
"""Many times what an answer takes on a busy machine."""

IN_FLIGHT = 8
"""Calls that wait for the hanging executor side by side: so many are given up in the time of one."""

TURNED_AWAY, KIBIBYTES = 300, 512
"""Requests with so much input that come while nothing is taken."""

KEPT_KIBIBYTES = TURNED_AWAY * KIBIBYTES // 4
"""More than a router may grow by meanwhile, and much less than they need."""

OPEN = {"guard_executor": False}
WARMUP = (
    'model_warmup { name: "once" batch_size: 1 '
    'inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } }'
)
ROUTERS = [
    (
        Router(
            "router_hanging",
            instances=IN_FLIGHT // LATE_BOUND_CALLS_PER_INSTANCE,
            policy={**OPEN, "executor_timeout_microseconds": int(GIVE_UP_SECONDS * 1e6)},
        ),
        Executor("hanging", max_batch_size=1, inputs=(X, TAG, TEXT)),
    ),
    (Router("router_slow", policy=OPEN), Executor("slow")),
    (Router("router_failing", policy=OPEN), Executor("failing", initialize_error="the weights are gone")),
    (Router("router_warm", policy=OPEN, config=WARMUP), Executor("warm")),
    (Router("router_dying", policy=OPEN), Executor("dying")),
    (Router("router_larger", policy=OPEN), Executor("smaller", batch_seconds=0.05)),
]
AT_START = (
    "router_hanging",
    "hanging",
    "router_slow",
    "router_failing",
    "warm",
    "router_dying",
    "dying",
    "router_larger",
    "smaller",
)


def claim_more_rows(repository: Path) -> None:
    policy = repository / "router_larger" / "1" / POLICY_FILE
    policy.write_text(policy.read_text().replace("max_batch_size = 4", "max_batch_size = 8"))


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    arguments = ["--model-control-mode=explicit", *(f"--load-model={name}" for name in AT_START)]
    folder = tmp_path_factory.mktemp("executor")
    with fleet(folder, request.param, ROUTERS, more=claim_more_rows, extra_args=arguments) as made:
        yield made


def load(system: Fleet, model: str) -> None:
    with tritonclient.http.InferenceServerClient(system.server.http, network_timeout=300) as control:
        control.load_model(model)


def ask(system: Fleet, router: str) -> Reply:
    return system.client.infer(router, Call(tag=1, traffic_class=INTERACTIVE))


def private_memory(pid: int) -> int:
    """Of a process, in KiB; its shared memory is the server's affair."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon:")]
    return int(line.split()[1])


def not_serving(reply: Reply, executor: str) -> bool:
    return reply.code == "UNAVAILABLE" and f"executor '{executor}' is not serving" in reply.message


def test_while_the_executor_initializes_callers_are_told_and_then_served(system: Fleet) -> None:
    """Case 19."""
    loading = threading.Thread(target=load, args=(system, "slow"))
    with system.records["slow"].shut():
        loading.start()
        eventually(lambda: system.records["slow"].held() == 1)
        for _ in range(5):
            reply = ask(system, "router_slow")
            assert not_serving(reply, "slow"), reply
    loading.join()
    assert ask(system, "router_slow").ok


def test_an_executor_that_does_not_come_up_is_named_and_may_come_later(system: Fleet) -> None:
    with pytest.raises(InferenceServerException, match="the weights are gone"):
        load(system, "failing")
    assert not_serving(ask(system, "router_failing"), "failing")
    config = system.repository / "failing" / "config.pbtxt"
    config.write_text(config.read_text().replace("the weights are gone", ""))
    load(system, "failing")
    assert ask(system, "router_failing").ok


def test_a_router_with_a_warmup_loads_after_its_executor(system: Fleet) -> None:
    load(system, "router_warm")
    assert system.records["warm"].batches(), "the warm-up never reached the executor"
    assert ask(system, "router_warm").ok


@pytest.mark.parametrize("mode", MODES)
def test_a_router_with_a_warmup_does_not_load_without_its_executor(mode: str, tmp_path: Path) -> None:
    """Triton runs the warm-up as a request; a model whose warm-up fails does not load, and ends a server that starts.

    Not tried on a running server, which in 24.10 may end by SIGSEGV when the warm-up of any Python model fails; that
    may take the reason out of the log of one that starts, too.
    """
    pair = (Router("router", mode=mode, policy=OPEN, config=WARMUP), Executor("executor"))
    arguments = ["--model-control-mode=explicit", "--load-model=router"]
    with pytest.raises(SetupError), fleet(tmp_path, mode, [pair], extra_args=arguments):
        pass


def test_an_executor_whose_process_dies_is_unavailable(system: Fleet) -> None:
    with system.records["dying"].shut():
        tags = range(100, 108)
        futures = [system.client.send("router_dying", Call(tag=tag, traffic_class=BULK)) for tag in tags]
        eventually(lambda: system.records["dying"].held() == 1)
        os.kill(system.server.stub_pids()["dying_0_0"], signal.SIGKILL)
        refused = [future.result() for future in futures]
    for reply in [*refused, ask(system, "router_dying")]:
        said = "executor 'dying' does not answer: Stub process 'dying_0_0' is not healthy."
        assert (reply.code, reply.message) == ("UNAVAILABLE", said)
    eventually(lambda: system.outcomes("router_dying")[BULK, "unavailable"] == len(refused))
    assert not system.outcomes("router_dying")[BULK, "executor_error"]


def test_a_policy_that_says_more_rows_than_the_executor_takes_is_told_once(system: Fleet) -> None:
    assert ask(system, "router_larger").ok
    for _ in range(3):
        reply = system.client.infer("router_larger", Call(tag=1, rows=8, traffic_class=BULK))
        assert "batch-size must be <= 4 for 'smaller'" in reply.message, reply
    said = "executor_shape.max_batch_size = 8, but executor 'smaller' takes 4 rows and refuses larger dispatches"
    assert system.server.log_text().count(said) == 1
    assert ask(system, "router_larger").ok


def test_a_hanging_executor_gets_no_more_calls_until_one_comes_back(
    system: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule 6. The first call blocks the only instance, so the others hang behind it, without a batch of their own."""
    probe = ["probe", "--url", f"http://{system.server.http}", "--model", "router_hanging", "--timeout", "60"]
    assert cli.main(probe) == 0
    record = system.records["hanging"]
    record.forget()
    with record.shut():
        tags = range(100, 100 + WRITTEN_OFF_LIMIT + IN_FLIGHT + 2)
        futures = [system.client.send("router_hanging", Call(tag=tag, traffic_class=INTERACTIVE)) for tag in tags]
        replies = [future.result() for future in futures]
        assert {reply.code for reply in replies} == {"UNAVAILABLE"}
        given_up = [reply for reply in replies if "no answer within executor_timeout of 3000000 us" in reply.message]
        # Those that are on their way when the limit is reached may be given up with the last one.
        lost = len(given_up)
        assert WRITTEN_OFF_LIMIT <= lost < WRITTEN_OFF_LIMIT + IN_FLIGHT
        never_sent = "calls without an answer"
        assert sum(never_sent in reply.message for reply in replies) == len(replies) - lost > 0

        refused = ask(system, "router_hanging")
        said = f"the executor left {lost} {never_sent}"
        assert (refused.code, said in refused.message) == ("UNAVAILABLE", True), refused
        capsys.readouterr()
        assert cli.main(probe) == 1
        assert never_sent in capsys.readouterr().err
        router, text = (
            system.server.stub_pids()["router_hanging_0_0"],
            np.full((1, 1), b"x" * (KIBIBYTES << 10), object),
        )
        before = private_memory(router)
        large = Call(tag=1, traffic_class=BULK, inputs={"TEXT": text})
        many = [system.client.send("router_hanging", large) for _ in range(TURNED_AWAY)]
        assert {future.result().code for future in many} == {"UNAVAILABLE"}
        assert private_memory(router) - before < KEPT_KIBIBYTES
        assert record.batches() == []

    eventually(lambda: ask(system, "router_hanging").ok)
    assert cli.main(probe) == 0
    eventually(lambda: system.metric("late_answers_total", "router_hanging") == lost)
    eventually(lambda: system.metric("lost_dispatches", "router_hanging") == 0)
    ran = [tag for tag in record.tags() if tag >= 100]
    assert len(ran) == lost, "what was refused was sent all the same"


@pytest.mark.slow
@pytest.mark.parametrize("system", ["levels"], indirect=True)
def test_a_hanging_executor_that_is_killed_and_loaded_again_is_served(system: Fleet) -> None:
    """All calls that were given up come back, with errors, so that none is held against the new process."""
    with system.records["hanging"].shut():
        tags = range(100, 100 + WRITTEN_OFF_LIMIT)
        futures = [system.client.send("router_hanging", Call(tag=tag, traffic_class=INTERACTIVE)) for tag in tags]
        assert {future.result().code for future in futures} == {"UNAVAILABLE"}
        eventually(lambda: system.metric("lost_dispatches", "router_hanging") >= WRITTEN_OFF_LIMIT)
        os.kill(system.server.stub_pids()["hanging_0_0"], signal.SIGKILL)
        eventually(lambda: system.metric("lost_dispatches", "router_hanging") == 0)
    with (system.repository / "hanging" / "config.pbtxt").open("a") as config:
        config.write("# changed\n")  # without that Triton would have nothing to do
    load(system, "hanging")
    assert ask(system, "router_hanging").ok
