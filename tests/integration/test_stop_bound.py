# SPDX-License-Identifier: Apache-2.0
"""A server is gone within its bound even where every single step of stopping it takes as long as it may."""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import Server, children, installation, process
from priority_router.ops.server.log import ForwardedLog
from support import stubborn_server
from support.models import Router, write_pair
from support.serving import full_pipe, installation_of

STOP_SECONDS, DRAIN_SECONDS = 4.0, 1.0
SLACK_SECONDS = 0.3
"""For a machine that is busy with other tests; the steps' own limits would sum up to a second more."""

PHANTOM = 1 << 22
"""Above every process id: stands for a process that outlives SIGKILL."""


@pytest.fixture
def server(tmp_path, monkeypatch):
    stand_in = installation_of(stubborn_server, tmp_path / "stubborn")
    monkeypatch.setattr(installation, "find", lambda: stand_in)
    monkeypatch.setattr(process, "STOP_SECONDS", STOP_SECONDS)
    monkeypatch.setattr(process, "DRAIN_SECONDS", DRAIN_SECONDS)
    write_pair(tmp_path / "repository", Router(mode="plain"))
    with full_pipe() as stuck:
        made = Server(tmp_path / "repository", hooks=False, log=ForwardedLog(stuck))
        made.start()
        session = made.pid
        yield made
        made.kill()
        children.kill_all(session, time.monotonic() + 5)


def test_a_server_that_ignores_everything_is_gone_within_the_bound(server, monkeypatch):
    members, session = children.members, server.pid
    assert len(members(session)) == 3
    monkeypatch.setattr(children, "members", lambda session: [*members(session), PHANTOM])
    ordered = time.monotonic()
    server.stop()
    took = time.monotonic() - ordered
    assert members(session) == []
    assert took < STOP_SECONDS + SLACK_SECONDS
    assert server.warnings == [
        "not drained after 1 s: router",
        "tritonserver did not end by itself and was killed",
        f"processes [{PHANTOM}] outlived SIGKILL",
    ]


def test_time_that_has_passed_since_the_order_counts(server):
    session = server.pid
    began = time.monotonic()
    server.stop(since=began - 2)
    assert children.members(session) == []
    assert time.monotonic() - began < STOP_SECONDS - 2 + SLACK_SECONDS


def test_a_drain_that_cannot_be_ordered_is_said_and_the_server_stopped_all_the_same(server):
    session = server.pid
    for folder in Path(tempfile.gettempdir()).glob(f"priority-router-{os.getpid()}-*"):
        shutil.rmtree(folder / "control")
    server.stop()
    assert children.members(session) == []
    assert "the routers cannot be told to drain: " in server.warnings[0]


def test_killing_alone_is_bounded_too(server, monkeypatch):
    members, session = children.members, server.pid
    monkeypatch.setattr(children, "members", lambda session: [*members(session), PHANTOM])
    began = time.monotonic()
    server.kill()
    assert members(session) == []
    assert time.monotonic() - began < process.KILL_SECONDS + SLACK_SECONDS


def test_a_program_that_hangs_while_it_is_tried_does_not_hold_up_the_stop(tmp_path):
    stub = tmp_path / "stub"
    stub.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    stub.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(SetupError, match=r"stopped while .*/stub was tried"):
        installation.check_stub(stub, dict(os.environ), (tmp_path / "pid").exists)
    assert time.monotonic() - began < 5
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
