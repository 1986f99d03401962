# SPDX-License-Identifier: Apache-2.0
"""An executor that is not there yet, never comes up, or hangs: its callers are told at once, and it is taken back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import tritonclient.http
from priority_router.control import WRITTEN_OFF_LIMIT
from priority_router.ops import cli
from support.clients import Call, Reply
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import INTERACTIVE, Executor, Router
from tritonclient.utils import InferenceServerException

HANG_TAG = 50
HANG_SECONDS = 4.0
GIVE_UP_SECONDS = 0.2
INITIALIZE_SECONDS = 3.0
LATE_LOAD_SECONDS = 15.0
OPEN = {"guard_executor": False}
WARMUP = (
    'model_warmup { name: "once" batch_size: 1 '
    'inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } }'
)
ROUTERS = [
    (
        Router("router_hanging", policy={**OPEN, "executor_timeout_microseconds": int(GIVE_UP_SECONDS * 1e6)}),
        Executor("hanging", max_batch_size=1, sleep_tags={HANG_TAG: HANG_SECONDS}),
    ),
    (Router("router_slow", policy=OPEN), Executor("slow", initialize_seconds=INITIALIZE_SECONDS)),
    (Router("router_failing", policy=OPEN), Executor("failing", initialize_error="the weights are gone")),
    (Router("router_warm", policy=OPEN, config=WARMUP), Executor("warm")),
]
AT_START = ("router_hanging", "hanging", "router_slow", "router_failing")


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    arguments = ["--model-control-mode=explicit", *(f"--load-model={name}" for name in AT_START)]
    with fleet(tmp_path_factory.mktemp("executor"), request.param, ROUTERS, extra_args=arguments) as made:
        yield made


def load(system: Fleet, model: str) -> None:
    with tritonclient.http.InferenceServerClient(system.server.http, network_timeout=60) as control:
        control.load_model(model)


def ask(system: Fleet, router: str) -> Reply:
    return system.client.infer(router, Call(tag=1, traffic_class=INTERACTIVE))


def not_serving(reply: Reply, executor: str) -> bool:
    return reply.code == "UNAVAILABLE" and f"executor '{executor}' is not serving" in reply.message


def test_while_the_executor_initializes_callers_are_told_and_then_served(system: Fleet) -> None:
    """Case 19."""
    loading = threading.Thread(target=load, args=(system, "slow"))
    loading.start()
    refused = 0
    deadline = time.monotonic() + LATE_LOAD_SECONDS
    while not (reply := ask(system, "router_slow")).ok:
        assert not_serving(reply, "slow"), reply
        assert reply.seconds < INITIALIZE_SECONDS / 2, "the caller was kept waiting for the executor"
        assert time.monotonic() < deadline
        refused += 1
        time.sleep(0.1)
    loading.join()
    assert refused >= INITIALIZE_SECONDS / 2 / 0.1 / 3


def test_an_executor_that_does_not_come_up_is_named_and_may_come_later(system: Fleet) -> None:
    with pytest.raises(InferenceServerException, match="the weights are gone"):
        load(system, "failing")
    assert not_serving(ask(system, "router_failing"), "failing")
    config = system.repository / "failing" / "config.pbtxt"
    config.write_text(config.read_text().replace("the weights are gone", ""))
    load(system, "failing")
    assert ask(system, "router_failing").ok


def test_a_router_with_a_warmup_loads_only_after_its_executor(system: Fleet) -> None:
    """Triton runs the warm-up as a request, and a model whose warm-up fails does not load."""
    with pytest.raises(InferenceServerException):
        load(system, "router_warm")
    assert "failed to run warmup sample 'once': executor 'warm' is not serving" in system.server.log_text()
    load(system, "warm")
    load(system, "router_warm")
    assert system.records["warm"].batches(), "the warm-up never reached the executor"
    assert ask(system, "router_warm").ok


def test_a_hanging_executor_gets_no_more_calls_until_one_comes_back(
    system: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule 6. The first call blocks the only instance, so the others hang behind it, without a batch of their own."""
    probe = ["probe", "--url", f"http://{system.server.http}", "--model", "router_hanging", "--timeout", "2"]
    assert cli.main(probe) == 0
    record = system.records["hanging"]
    record.forget()
    first = system.client.infer("router_hanging", Call(tag=HANG_TAG, traffic_class=INTERACTIVE))
    tags = range(100, 100 + WRITTEN_OFF_LIMIT + 2)
    futures = [system.client.send("router_hanging", Call(tag=tag, traffic_class=INTERACTIVE)) for tag in tags]
    replies = [first, *(future.result() for future in futures)]
    assert {reply.code for reply in replies} == {"UNAVAILABLE"}
    given_up = [reply for reply in replies if "no answer within executor_timeout of 200000 us" in reply.message]
    # Two are on their way at a time, so the last two may be given up together.
    lost = len(given_up)
    assert WRITTEN_OFF_LIMIT <= lost <= WRITTEN_OFF_LIMIT + 1
    never_sent = "calls without an answer"
    assert sum(never_sent in reply.message for reply in replies) == len(replies) - lost > 0

    refused = ask(system, "router_hanging")
    assert (refused.code, f"the executor left {lost} {never_sent}" in refused.message) == ("UNAVAILABLE", True), refused
    assert refused.seconds < GIVE_UP_SECONDS, "it was sent and given up, not refused"
    capsys.readouterr()
    assert cli.main(probe) == 1
    assert never_sent in capsys.readouterr().err
    assert record.batches() == [], "the executor came back too early for this test"

    eventually(lambda: ask(system, "router_hanging").ok)
    assert cli.main(probe) == 0
    eventually(lambda: system.metric("late_answers_total", "router_hanging") == lost)
    eventually(lambda: system.metric("lost_dispatches", "router_hanging") == 0)
    ran = [tag for tag in record.tags() if tag >= HANG_TAG]
    assert len(ran) == lost, "what was refused was sent all the same"
