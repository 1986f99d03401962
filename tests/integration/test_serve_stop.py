# SPDX-License-Identifier: Apache-2.0
"""`serve` ends: in good order under load, within its bound whatever hangs, and never leaving processes behind."""

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest
from priority_router.ops.server import children
from support.clients import Call, client
from support.models import Executor, Router, write_executor, write_pair
from support.serving import STOP_BOUND_SECONDS, living, region_files, serving


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


def until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return value


def assert_nothing_left(command, session):
    assert living(session) == []
    assert region_files(command.process.pid) == []
    assert list(Path(tempfile.gettempdir()).glob(f"priority-router-{command.process.pid}-*")) == []


@pytest.mark.parametrize("mode", ["levels", "plain"])
def test_drain_under_load_loses_nobody(tmp_path, repository, mode):
    """Some 30 batches of 50 ms wait when the order comes: all are served; what comes later is told to go elsewhere."""
    record = write_pair(repository, Router(mode=mode), Executor(batch_seconds=0.05, max_batch_size=4))
    with serving(tmp_path, "--model-repository", repository) as command, client_of(command) as sender:
        session = command.tritonserver()
        urgent = Call(tag=999, traffic_class="interactive")
        queued = [sender.send("router", Call(tag=tag, traffic_class="bulk")) for tag in range(1, 141)]
        until(lambda: len(record.batches()) >= 2)
        assert region_files(command.process.pid), "its shared memory has names that clients may register"
        command.order()
        ordered = time.monotonic()
        late = until(lambda: [reply for reply in [sender.infer("router", urgent)] if not reply.ok])
        assert late[0].code == "UNAVAILABLE", late
        assert sum(not future.done() for future in queued) > 20, "the queue was empty before the drain began"
        replies = [future.result(timeout=20) for future in queued]
        assert [reply.code for reply in replies] == ["OK"] * 140
        assert command.ended() == 0
        assert time.monotonic() - ordered < STOP_BOUND_SECONDS
        assert_nothing_left(command, session)
    assert sorted(tag for tag in record.tags() if tag != 999) == list(range(1, 141))


def test_what_does_not_drain_in_time_is_given_up_within_the_bound(tmp_path, repository):
    write_pair(repository, executor=Executor(sleep_tags={7: 60}, max_batch_size=1))
    with serving(tmp_path, "--model-repository", repository) as command, client_of(command) as sender:
        session = command.tritonserver()
        stuck = sender.send("router", Call(tag=7))
        time.sleep(0.5)
        waiting = sender.send("router", Call(tag=8))
        time.sleep(0.5)
        command.order()
        ordered = time.monotonic()
        assert command.ended(STOP_BOUND_SECONDS) == 0
        assert time.monotonic() - ordered > 8
        assert "not drained after 8 s: router" in command.log
        assert_nothing_left(command, session)
        assert not stuck.result(timeout=5).ok
        assert not waiting.result(timeout=5).ok


def test_a_dead_router_does_not_hold_up_the_drain(tmp_path, repository):
    write_pair(repository)
    with serving(tmp_path, "--model-repository", repository) as command:
        command.ready()
        session = command.tritonserver()
        os.kill(stub_of(session, "router"), signal.SIGKILL)
        command.order()
        assert command.ended() == 0
        assert "not drained" not in command.log
        assert_nothing_left(command, session)


def test_server_and_stubs_that_hang_are_killed_within_the_bound(tmp_path, repository):
    write_pair(repository)
    with serving(tmp_path, "--model-repository", repository) as command:
        command.ready()
        session = command.tritonserver()
        for name in ("router", "executor"):
            os.kill(stub_of(session, name), signal.SIGSTOP)
        os.kill(session, signal.SIGSTOP)
        command.order()
        assert command.ended() == 0
        assert "was killed" in command.log
        assert_nothing_left(command, session)


def test_a_second_signal_stops_at_once(tmp_path, repository):
    write_pair(repository, executor=Executor(sleep_tags={7: 60}))
    with serving(tmp_path, "--model-repository", repository) as command, client_of(command) as sender:
        session = command.tritonserver()
        sender.send("router", Call(tag=7))
        time.sleep(0.5)
        command.order()
        time.sleep(0.5)
        command.order()
        assert command.ended(3) == 0
        assert "not drained after" not in command.log
        assert_nothing_left(command, session)


def test_interrupting_the_whole_foreground_group_still_drains(tmp_path, repository):
    """Ctrl-C goes to every process of the terminal's foreground group; the server must not see it before the drain."""
    write_pair(repository, executor=Executor(batch_seconds=0.2, max_batch_size=1))
    with serving(tmp_path, "--model-repository", repository) as command, client_of(command) as sender:
        session = command.tritonserver()
        queued = [sender.send("router", Call(tag=tag)) for tag in range(1, 6)]
        time.sleep(0.3)
        os.killpg(command.process.pid, signal.SIGINT)
        assert [future.result(timeout=10).code for future in queued] == ["OK"] * 5
        assert command.ended() == 0
        assert_nothing_left(command, session)


def test_a_signal_while_models_load_stops_at_once(tmp_path, repository):
    write_executor(repository, Executor(initialize_seconds=60))
    with serving(tmp_path, "--model-repository", repository) as command:
        until(lambda: "loading: executor:1" in command.log)
        session = command.tritonserver()
        until(lambda: len(living(session)) > 1)
        command.order()
        assert command.ended(5) == 0
        assert command.lines == []
        assert_nothing_left(command, session)


def test_a_server_that_dies_takes_serve_along_with_a_reason(tmp_path, repository):
    write_pair(repository)
    with serving(tmp_path, "--model-repository", repository) as command:
        command.ready()
        session = command.tritonserver()
        # Stopped, the stubs cannot notice that their server is gone.
        for name in ("router", "executor"):
            os.kill(stub_of(session, name), signal.SIGSTOP)
        os.kill(session, signal.SIGKILL)
        assert command.ended(5) == 1
        assert "tritonserver ended by itself, with signal SIGKILL" in command.log
        assert_nothing_left(command, session)


def test_the_server_does_not_outlive_a_killed_serve(tmp_path, repository):
    write_pair(repository)
    with serving(tmp_path, "--model-repository", repository) as command:
        command.ready()
        session = command.tritonserver()
        command.order(signal.SIGKILL)
        command.ended(5)
        until(lambda: not living(session), STOP_BOUND_SECONDS)


def client_of(command):
    _, grpc, _ = command.ready()
    return client(grpc, concurrency=200)


def stub_of(session, model):
    return next(pid for pid, name in children.stubs(session).items() if name.startswith(f"{model}_"))
