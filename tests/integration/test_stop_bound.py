# SPDX-License-Identifier: Apache-2.0
"""A server is gone within its bound even where every single step of stopping it takes as long as it may.

The processes are real, their time is not: a step takes what it is given, and what the machine adds does not count.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import Server, children, installation, log, process
from support import stubborn_server
from support.fleet import eventually
from support.models import Router, write_pair
from support.serving import full_pipe, installation_of

LAST_LOOK_SECONDS = 0.05
"""Killing looks for what is left every 20 ms."""

PHANTOM = 1 << 22
"""Above every process id: stands for a process that outlives SIGKILL."""


class Clock:
    """Stands for the module `time`.

    Attributes:
        calls: moment to what happens then.
    """

    def __init__(self):
        self.now = 1000.0
        self.calls = {}

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        for moment in [moment for moment in self.calls if moment <= self.now]:
            self.calls.pop(moment)()
        time.sleep(0.001)


class StuckLog(log.ForwardedLog):
    """Nobody reads what it passes on, so that its end takes as long as it may."""

    def __init__(self, clock, stuck):
        super().__init__(stuck)
        self._clock = clock

    def close(self, seconds=log._PASS_ON_SECONDS):
        self._clock.now += min(seconds, log._PASS_ON_SECONDS)
        super().close(seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def server(tmp_path, monkeypatch, clock):
    stand_in = installation_of(stubborn_server, tmp_path / "stubborn")
    monkeypatch.setattr(installation, "find", lambda: stand_in)
    write_pair(tmp_path / "repository", Router(mode="plain"))
    with full_pipe() as stuck:
        made = Server(tmp_path / "repository", hooks=False, log=StuckLog(clock, stuck))
        made.start()
        session = made.pid
        for module in (process, children):
            monkeypatch.setattr(module, "time", clock)
        yield made
        made.kill()
        children.kill_all(session, clock.now + 1)


@pytest.fixture
def phantom(server, monkeypatch):
    """The server has one more process, which nothing ends."""
    members = children.members
    monkeypatch.setattr(children, "members", lambda session: [*members(session), PHANTOM])


def nobody_is_left(session):
    eventually(lambda: set(children.members(session)) <= {PHANTOM})


def test_a_server_that_ignores_everything_is_gone_within_the_bound(server, clock, phantom):
    session = server.pid
    assert len(children.members(session)) == 3 + 1
    ordered = clock.now
    server.stop()
    assert clock.now - ordered <= process.STOP_SECONDS - process.LAST_WORDS_SECONDS + LAST_LOOK_SECONDS
    nobody_is_left(session)
    assert server.warnings == [
        "not drained after 8 s: router",
        "tritonserver did not end by itself and was killed",
        f"processes [{PHANTOM}] outlived SIGKILL",
    ]


@pytest.mark.parametrize("passed", [2, 9, 60])
def test_time_that_has_passed_since_the_order_counts(server, clock, passed):
    session = server.pid
    begun = clock.now
    server.stop(since=begun - passed)
    nobody_is_left(session)
    left = max(process.STOP_SECONDS - process.LAST_WORDS_SECONDS - passed, 0)
    assert clock.now - begun <= left + LAST_LOOK_SECONDS


@pytest.mark.parametrize("moment", [0, 3, 10], ids=["before", "while it drains", "while tritonserver should end"])
def test_in_a_hurry_nothing_more_is_waited_for(server, clock, moment):
    session = server.pid
    ordered = clock.now
    if moment:
        clock.calls[ordered + moment] = server.hurry
    else:
        server.hurry()
    server.stop()
    assert clock.now - ordered <= moment + process.KILL_SECONDS + 2 * LAST_LOOK_SECONDS
    nobody_is_left(session)
    assert not any("did not end by itself" in warning for warning in server.warnings)


def test_a_drain_that_cannot_be_ordered_is_said_and_the_server_stopped_all_the_same(server):
    session = server.pid
    for folder in Path(tempfile.gettempdir()).glob(f"priority-router-{os.getpid()}-*"):
        shutil.rmtree(folder / "control")
    server.stop()
    nobody_is_left(session)
    assert "the routers cannot be told to drain: " in server.warnings[0]


def test_killing_alone_is_bounded_too(server, clock, phantom):
    session = server.pid
    begun = clock.now
    server.kill()
    assert clock.now - begun <= process.KILL_SECONDS + LAST_LOOK_SECONDS
    nobody_is_left(session)


def test_a_program_that_hangs_while_it_is_tried_does_not_hold_up_the_stop(tmp_path):
    stub = tmp_path / "stub"
    stub.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid.new\nmv {tmp_path}/pid.new {tmp_path}/pid\nexec sleep 600\n")
    stub.chmod(0o755)
    begun = time.monotonic()
    with pytest.raises(SetupError, match=r"stopped while .*/stub was tried"):
        installation.check_stub(stub, dict(os.environ), (tmp_path / "pid").exists)
    assert time.monotonic() - begun < installation._PROBE_SECONDS, "it was waited for all the same"
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
