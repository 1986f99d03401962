# SPDX-License-Identifier: Apache-2.0
"""A server that lives and does nothing any more: `serve` notices, ends it, and says so by its exit status."""

import os
import signal
import threading
import time

import pytest
from priority_router.ops.server import children, installation, process, serve, watch
from support import stubborn_server
from support.models import Router, write_pair
from support.serving import installation_of, living

FATES = {"stopped": signal.SIGSTOP, "crashed": signal.SIGUSR1}
SAID = {
    "stopped": "error: tritonserver hangs: for ",
    "crashed": "error: tritonserver crashed with signal SIGABRT and hangs",
}

GUARD_SECONDS = 15


@pytest.fixture
def words(tmp_path, monkeypatch):
    stand_in = installation_of(stubborn_server, tmp_path / "stubborn")
    monkeypatch.setattr(installation, "find", lambda: stand_in)
    monkeypatch.setattr(process, "STOP_SECONDS", 4.0)
    monkeypatch.setattr(process, "DRAIN_SECONDS", 1.0)
    for name, seconds in {
        "SILENT_SECONDS": 2,
        "CRASH_SECONDS": 0.5,
        "_CHECK_SECONDS": 0.2,
        "_ANSWER_SECONDS": 0.3,
    }.items():
        monkeypatch.setattr(watch, name, seconds)
    write_pair(tmp_path / "repository", Router(mode="plain"))
    return ["--model-repository", str(tmp_path / "repository"), "--http-port=0", "--grpc-port=0", "--metrics-port=0"]


def stop_after(seconds):
    """Waits, and sends this process, which runs `serve`, the order to stop."""
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def meet(monkeypatch):
    """Sends the server that `serve` starts a signal once it serves; the list gets its session."""
    sessions = []
    # A `serve` that notices nothing would run for ever.
    guard = threading.Timer(GUARD_SECONDS, lambda: stop_after(0))

    def arm(number, after=lambda: None):
        def started(server, start=process.Server.start):
            start(server)
            sessions.append(server.pid)

            def fate():
                os.kill(server.pid, number)
                after()

            threading.Timer(0.3, fate).start()

        monkeypatch.setattr(process.Server, "start", started)
        guard.start()
        return sessions

    yield arm
    guard.cancel()
    for session in sessions:
        children.kill_all(session, time.monotonic() + 5)


@pytest.mark.parametrize("fate", FATES)
def test_a_hung_server_is_noticed_said_and_killed(words, meet, capfd, fate):
    sessions = meet(FATES[fate])
    began = time.monotonic()
    assert serve.main(words) == 1
    assert time.monotonic() - began < GUARD_SECONDS
    assert SAID[fate] in capfd.readouterr().err
    assert living(sessions[0]) == []


@pytest.mark.parametrize("fate", FATES)
def test_an_order_to_stop_a_hung_server_does_not_end_in_success(words, meet, capfd, fate, monkeypatch):
    monkeypatch.setattr(watch, "SILENT_SECONDS", 60)
    monkeypatch.setattr(watch, "CRASH_SECONDS", 60)
    sessions = meet(FATES[fate], lambda: stop_after(0.5))
    assert serve.main(words) == 1
    assert "stopping: " in capfd.readouterr().err
    assert living(sessions[0]) == []


def test_a_core_dump_is_let_finish(words, meet, capfd, monkeypatch):
    monkeypatch.setattr(children, "dumps_core", lambda pid: True)
    meet(FATES["crashed"], lambda: stop_after(2))
    serve.main(words)
    assert "stopping: " in capfd.readouterr().err
