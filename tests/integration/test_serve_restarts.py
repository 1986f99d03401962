# SPDX-License-Identifier: Apache-2.0
"""A dead or hanging router: its callers are told soon, the service comes back by itself, and not for ever in vain."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest
import tritonclient.grpc
from support.clients import Call, client
from support.fleet import eventually
from support.models import BULK, INTERACTIVE, Executor, Router
from support.serving import living, served

PATIENT = ("--router-timeout", "10")
FATES = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}
SOON_SECONDS = 60.0
"""Five times what a hanging router takes to be noticed; without the watch callers wait for minutes."""


def answers(address, traffic_class=INTERACTIVE):
    """A new connection each time: those of the server before are gone with it."""
    with client(address) as sender:
        return sender.infer("router", Call(tag=1, traffic_class=traffic_class), timeout=10).ok


def restarts(it):
    return [int(number) for number in re.findall(r"serves again after [\d.]+ s \(restart (\d+)\)", it.command.log)]


def has_restarted(it, turn):
    eventually(lambda: restarts(it) == list(range(1, turn + 1)))


def will_restart(it, turn):
    eventually(lambda: f"restart {turn} follows" in it.command.log)


def counts_restarts(it, turn):
    eventually(lambda: it.metric("server_restarts_total") == turn)


def one_is_answered(calls):
    eventually(lambda: any(call.done() for call in calls))


@pytest.mark.parametrize("fate", FATES)
def test_callers_of_a_dead_router_are_told_soon_and_the_service_comes_back_twice(tmp_path, fate):
    pair = (Router(), Executor(batch_seconds=0.05, max_batch_size=2))
    with served(tmp_path, pair, words=PATIENT) as it:
        _, grpc, _ = it.command.ready()
        regions = []
        for turn in (1, 2):
            session = it.command.tritonserver()
            regions += it.left()
            with client(grpc, concurrency=64) as sender:
                calls = [sender.send("router", Call(tag=tag, traffic_class=BULK), 600) for tag in range(64)]
                one_is_answered(calls)
                met = time.monotonic()
                os.kill(it.stub("router", session), FATES[fate])
                replies = [call.result() for call in calls]
            failed = [reply for reply in replies if not reply.ok]
            assert failed, "nobody was in flight"
            assert max(reply.answered for reply in failed) - met < SOON_SECONDS
            assert not any(reply.code == "DEADLINE_EXCEEDED" for reply in failed)
            has_restarted(it, turn)
            eventually(lambda: answers(grpc))
            assert living(session) == [], "the first server is still there"
            counts_restarts(it, turn)
        said = {"killed": "is dead: its process has ended", "stopped": "hangs: for "}[fate]
        assert it.command.log.count(f"error: router 'router' {said}") == 2
        assert len(it.command.lines) == 1
        it.command.order()
        assert it.command.ended() == 0
        eventually(lambda: it.left() == [])
        assert [name for name in regions if isinstance(name, str) and os.path.exists(f"/dev/shm/{name}")] == []


def test_repeated_failure_is_given_up_with_the_reason(tmp_path):
    with served(tmp_path, words=(*PATIENT, "--max-restarts", "1")) as it:
        os.kill(it.stub("router"), signal.SIGKILL)
        eventually(lambda: restarts(it) == [1])
        session = it.command.tritonserver()
        os.kill(it.stub("router", session), signal.SIGKILL)
        assert it.command.ended() == 1
        log = it.command.log
        assert "error: given up after 1 restarts" in log
        assert log.count("is dead: its process has ended") == 2
        eventually(lambda: it.left() == [] and not living(session))


def test_a_model_that_does_not_load_any_more_counts_as_failure(tmp_path):
    with served(tmp_path, words=(*PATIENT, "--max-restarts", "2")) as it:
        (tmp_path / "repository" / "executor" / "1" / "model.py").write_text("raise RuntimeError('weights are gone')\n")
        os.kill(it.stub("router"), signal.SIGKILL)
        assert it.command.ended() == 1
        assert it.command.log.count("it could not be started again: ") == 2
        assert "weights are gone" in it.command.log
        assert "error: given up after 2 restarts" in it.command.log


def test_an_order_to_stop_between_two_starts_is_obeyed(tmp_path):
    with served(tmp_path, words=PATIENT) as it:
        for turn in (1, 2, 3):
            session = it.command.tritonserver()
            os.kill(it.stub("router", session), signal.SIGKILL)
            will_restart(it, turn)
            if turn < 3:
                has_restarted(it, turn)
        it.command.order()  # within the pause of 4 s
        assert it.command.ended() == 0
        eventually(lambda: it.left() == [] and not living(session))


def test_a_router_that_is_unloaded_is_not_taken_for_a_dead_one(tmp_path):
    key = tmp_path / "key"
    key.write_text("only-for-this-test\n")
    words = ("--router-timeout", "2", "--admin-key-file", key)
    passed = ("--model-control-mode=explicit", "--load-model=*")
    with served(tmp_path, words=words, passed=passed) as it:
        _, grpc, _ = it.command.ready()
        headers = {"triton-grpc-protocol-priority-router-admin": key.read_text().strip()}
        with tritonclient.grpc.InferenceServerClient(grpc) as control:
            control.unload_model("router", headers=headers)
            eventually(lambda: not control.is_model_ready("router"))
            time.sleep(8)  # several liveness requests
            control.load_model("router", headers=headers)
        assert answers(grpc)
        assert restarts(it) == []
        assert "error: " not in it.command.log
