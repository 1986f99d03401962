# SPDX-License-Identifier: Apache-2.0
"""A server that lives and does nothing any more: `serve` notices, ends it, and says so by its exit status."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from priority_router.ops.server import children, installation, process, serve, watch
from support import stubborn_server
from support.fleet import PATIENCE_SECONDS, eventually
from support.models import Router, write_pair
from support.serving import installation_of, living

FATES = {"stopped": signal.SIGSTOP, "crashed": signal.SIGUSR1, "mute": signal.SIGUSR2}
SAID = {
    "stopped": "error: tritonserver hangs: for ",
    "crashed": "error: tritonserver crashed with signal SIGABRT and hangs",
    "mute": "s it has taken connections on its HTTP port and answered none",
}
NEVER_SECONDS = 3600.0
GUARD_SECONDS = 120


@pytest.fixture
def words(tmp_path, monkeypatch):
    stand_in = installation_of(stubborn_server, tmp_path / "stubborn")
    monkeypatch.setattr(installation, "find", lambda: stand_in)
    monkeypatch.setattr(process, "STOP_SECONDS", 4.0)
    monkeypatch.setattr(process, "DRAIN_SECONDS", 1.0)
    # It waits no longer for a reader than it must: here it waits until everything has been read.
    monkeypatch.setattr(serve, "LAST_WORDS_SECONDS", 60.0)
    for name, seconds in {
        "SILENT_SECONDS": NEVER_SECONDS,
        "MUTE_SECONDS": NEVER_SECONDS,
        "CRASH_SECONDS": NEVER_SECONDS,
        "_CHECK_SECONDS": 0.2,
        "_ANSWER_SECONDS": 0.3,
    }.items():
        monkeypatch.setattr(watch, name, seconds)
    write_pair(tmp_path / "repository", Router(mode="plain"))
    return [
        "--model-repository",
        str(tmp_path / "repository"),
        "--http-port=0",
        "--grpc-port=0",
        "--metrics-port=0",
        "--max-restarts=0",
    ]


def order_to_stop():
    """To this process while it runs `serve`; at any other time that would end it."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        os.kill(os.getpid(), signal.SIGTERM)


def has_met(pid, fate, log):
    """The server is stopped, or has said that it crashes."""
    if fate == "crashed":
        return signal.SIGABRT in log.signals
    if fate == "mute":
        return "from now on nothing is answered" in log.text()
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.fixture
def meet(monkeypatch):
    """Lets the server that `serve` starts meet its fate once it serves, and then does something; gives its session."""
    sessions = []
    # A `serve` that notices nothing would run for ever.
    guard = threading.Timer(GUARD_SECONDS, order_to_stop)

    def arm(fate, after=lambda: None):
        class Watched(watch.Watch):
            def __init__(self, pid, host, port, log, **more):
                super().__init__(pid, host, port, log, **more)
                sessions.append(pid)
                threading.Thread(target=self.meet, args=(pid, log), daemon=True).start()

            def meet(self, pid, log):
                os.kill(pid, FATES[fate])
                eventually(lambda: has_met(pid, fate, log))
                after()

        monkeypatch.setattr(serve, "Watch", Watched)
        guard.start()
        return sessions

    yield arm
    guard.cancel()
    for session in sessions:
        assert children.kill_all(session, time.monotonic() + PATIENCE_SECONDS) == []


@pytest.mark.parametrize(
    ("fate", "limit"),
    [
        ("stopped", ("SILENT_SECONDS", 2.0)),
        ("crashed", ("CRASH_SECONDS", 0.5)),
        ("mute", ("MUTE_SECONDS", 2.0)),
    ],
)
def test_a_hung_server_is_noticed_said_and_killed(words, meet, capfd, fate, limit, monkeypatch):
    monkeypatch.setattr(watch, *limit)
    sessions = meet(fate)
    assert serve.main(words) == 1
    said = capfd.readouterr().err
    assert SAID[fate] in said
    assert "stopping: " not in said, "it was told to stop before it noticed"
    eventually(lambda: living(sessions[0]) == [])


@pytest.mark.parametrize("fate", FATES)
def test_an_order_to_stop_a_hung_server_does_not_end_in_success(words, meet, capfd, fate):
    sessions = meet(fate, order_to_stop)
    assert serve.main(words) == 1
    assert "stopping: " in capfd.readouterr().err
    eventually(lambda: living(sessions[0]) == [])


def test_a_core_dump_is_let_finish(words, meet, capfd, monkeypatch):
    looked = []
    monkeypatch.setattr(watch, "CRASH_SECONDS", 0.5)

    def dumps_core(pid):
        looked.append(pid)
        return True

    def after_some_looks():
        eventually(lambda: len(looked) >= 3)
        order_to_stop()

    monkeypatch.setattr(children, "dumps_core", dumps_core)
    meet("crashed", after_some_looks)
    serve.main(words)
    assert "stopping: " in capfd.readouterr().err
