# SPDX-License-Identifier: Apache-2.0
"""`serve` ends: in good order under load, within its bound whatever hangs, and never leaving processes behind."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from priority_router.ops.server.process import RESERVED_REGION_PREFIX
from support.clients import Call
from support.fleet import eventually
from support.models import Executor, Router, write_executor
from support.serving import fill, living, region_files, served, serving

STOPPING = "stopping: draining"


def stopping(it):
    """Orders the stop and waits until `serve` has begun with it."""
    it.command.order()
    eventually(lambda: STOPPING in it.command.log)


def nothing_is_left(it):
    eventually(lambda: it.left() == [])


@contextlib.contextmanager
def left_alone(owner):
    """Shared memory of a server that another process started, and of Triton's own name: still there afterwards."""
    names = (f"priority_router_{owner}1_x", f"{owner}_x")
    with contextlib.ExitStack() as opened:
        regions = [Path("/dev/shm", RESERVED_REGION_PREFIX + name) for name in names]
        for region in regions:
            opened.callback(region.unlink, missing_ok=True)
            region.touch()
        yield
        assert all(region.exists() for region in regions)


@pytest.mark.parametrize("mode", ["levels", "plain"])
def test_drain_under_load_loses_nobody(tmp_path, mode):
    """Nobody has been served when the order comes: all are all the same; what comes later is told to go elsewhere."""
    pair = (Router(mode=mode), Executor(batch_seconds=0.005, max_batch_size=4))
    with served(tmp_path, pair) as it, left_alone(it.command.process.pid):
        record, urgent = it.records["executor"], Call(tag=999, traffic_class="interactive")
        with record.shut():
            queued = [it.sender.send("router", Call(tag=tag, traffic_class="bulk")) for tag in range(1, 141)]
            eventually(lambda: it.held() == 140)
            assert region_files(it.command.process.pid), "its shared memory has names that clients may register"
            stopping(it)
            eventually(lambda: "draining: new requests are refused" in it.command.log)
            late = it.sender.infer("router", urgent)
            assert late.code == "UNAVAILABLE", late
            assert not any(future.done() for future in queued)
        assert [future.result().code for future in queued] == ["OK"] * 140
        assert it.command.ended() == 0
        assert "not drained" not in it.command.log
        assert "was killed" not in it.command.log
        nothing_is_left(it)
    assert sorted(record.tags()) == list(range(1, 141))


def test_what_does_not_drain_in_time_is_given_up_within_the_bound(tmp_path):
    with served(tmp_path, (Router(), Executor(max_batch_size=1))) as it, it.records["executor"].shut():
        stuck, waiting = (it.sender.send("router", Call(tag=tag)) for tag in (7, 8))
        eventually(lambda: it.held() == 2)
        ordered = time.monotonic()
        it.command.order()
        assert it.command.ended() == 0
        assert time.monotonic() - ordered > 8
        assert "not drained after 8 s: router" in it.command.log
        nothing_is_left(it)
        assert not stuck.result().ok
        assert not waiting.result().ok


def test_a_dead_router_does_not_hold_up_the_drain(tmp_path):
    with served(tmp_path) as it:
        os.kill(it.stub("router"), signal.SIGKILL)
        it.command.order()
        assert it.command.ended() == 0
        assert "not drained" not in it.command.log
        nothing_is_left(it)


def test_server_and_stubs_that_hang_are_killed_within_the_bound(tmp_path):
    with served(tmp_path) as it:
        for pid in (it.stub("router"), it.stub("executor"), it.session):
            os.kill(pid, signal.SIGSTOP)
        it.command.order()
        assert it.command.ended() == 1
        assert "was killed" in it.command.log
        nothing_is_left(it)


def test_a_reader_of_its_log_that_is_stuck_does_not_hold_up_the_stop(tmp_path):
    reading, writing = os.pipe()
    try:
        with served(tmp_path, stderr=writing) as it:
            fill(writing)
            it.command.order()
            assert it.command.ended() == 0
            nothing_is_left(it)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_second_signal_stops_at_once(tmp_path):
    with served(tmp_path) as it, it.records["executor"].shut():
        it.sender.send("router", Call(tag=7))
        eventually(lambda: it.held() == 1)
        stopping(it)
        it.command.order()
        assert it.command.ended() == 0
        assert "not drained after" not in it.command.log
        nothing_is_left(it)


def test_interrupting_the_whole_foreground_group_still_drains(tmp_path):
    """Ctrl-C goes to every process of the terminal's foreground group; the server must not see it before the drain."""
    with served(tmp_path, (Router(), Executor(max_batch_size=1))) as it:
        with it.records["executor"].shut():
            queued = [it.sender.send("router", Call(tag=tag)) for tag in range(1, 6)]
            eventually(lambda: it.held() == 5)
            os.killpg(it.command.process.pid, signal.SIGINT)
            eventually(lambda: STOPPING in it.command.log)
        assert [future.result().code for future in queued] == ["OK"] * 5
        assert it.command.ended() == 0
        nothing_is_left(it)


def test_a_signal_while_models_load_stops_at_once(tmp_path):
    record = write_executor(tmp_path / "repository", Executor())
    with record.shut(), serving(tmp_path, "--model-repository", tmp_path / "repository") as command:
        eventually(lambda: record.held() == 1)
        session = command.tritonserver()
        assert len(living(session)) > 1
        command.order()
        assert command.ended() == 0
        assert command.lines == []
        eventually(lambda: living(session) == [])


def test_a_server_that_dies_takes_serve_along_with_a_reason_where_it_may_not_start_again(tmp_path):
    with served(tmp_path, words=("--max-restarts", "0")) as it:
        # Stopped, the stubs cannot notice that their server is gone.
        for name in ("router", "executor"):
            os.kill(it.stub(name), signal.SIGSTOP)
        os.kill(it.session, signal.SIGKILL)
        assert it.command.ended() == 1
        assert "tritonserver ended by itself, with signal SIGKILL" in it.command.log
        nothing_is_left(it)


def test_the_server_does_not_outlive_a_killed_serve(tmp_path):
    with served(tmp_path) as it:
        it.command.order(signal.SIGKILL)
        it.command.ended()
        eventually(lambda: not living(it.session))
