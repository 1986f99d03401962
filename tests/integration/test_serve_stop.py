# SPDX-License-Identifier: Apache-2.0
"""`serve` ends: in good order under load, within its bound whatever hangs, and never leaving processes behind."""

import os
import signal
import time

import pytest
from support.clients import Call
from support.fleet import eventually
from support.models import Executor, Router, write_executor
from support.serving import STOP_BOUND_SECONDS, fill, living, region_files, served, serving


@pytest.mark.parametrize("mode", ["levels", "plain"])
def test_drain_under_load_loses_nobody(tmp_path, mode):
    """Some 30 batches of 50 ms wait when the order comes: all are served; what comes later is told to go elsewhere."""
    with served(tmp_path, (Router(mode=mode), Executor(batch_seconds=0.05, max_batch_size=4))) as it:
        record, urgent = it.records["executor"], Call(tag=999, traffic_class="interactive")
        queued = [it.sender.send("router", Call(tag=tag, traffic_class="bulk")) for tag in range(1, 141)]
        eventually(lambda: len(record.batches()) >= 2)
        assert region_files(it.command.process.pid), "its shared memory has names that clients may register"
        it.command.order()
        ordered = time.monotonic()
        while (late := it.sender.infer("router", urgent)).ok:
            assert time.monotonic() - ordered < 8, "the drain never began"
        assert late.code == "UNAVAILABLE", late
        assert sum(not future.done() for future in queued) > 20, "the queue was empty before the drain began"
        replies = [future.result(timeout=20) for future in queued]
        assert [reply.code for reply in replies] == ["OK"] * 140
        assert it.command.ended() == 0
        assert time.monotonic() - ordered < STOP_BOUND_SECONDS
        assert it.left() == []
    assert sorted(tag for tag in record.tags() if tag != 999) == list(range(1, 141))


def test_what_does_not_drain_in_time_is_given_up_within_the_bound(tmp_path):
    with served(tmp_path, (Router(), Executor(sleep_tags={7: 60}, max_batch_size=1))) as it:
        stuck = it.sender.send("router", Call(tag=7))
        time.sleep(0.5)
        waiting = it.sender.send("router", Call(tag=8))
        time.sleep(0.5)
        it.command.order()
        ordered = time.monotonic()
        assert it.command.ended() == 0
        assert time.monotonic() - ordered > 8
        assert "not drained after 8 s: router" in it.command.log
        assert it.left() == []
        assert not stuck.result(timeout=5).ok
        assert not waiting.result(timeout=5).ok


def test_a_dead_router_does_not_hold_up_the_drain(tmp_path):
    with served(tmp_path) as it:
        os.kill(it.stub("router"), signal.SIGKILL)
        it.command.order()
        assert it.command.ended() == 0
        assert "not drained" not in it.command.log
        assert it.left() == []


def test_server_and_stubs_that_hang_are_killed_within_the_bound(tmp_path):
    with served(tmp_path) as it:
        for pid in (it.stub("router"), it.stub("executor"), it.session):
            os.kill(pid, signal.SIGSTOP)
        it.command.order()
        assert it.command.ended() == 1
        assert "was killed" in it.command.log
        assert it.left() == []


def test_a_reader_of_its_log_that_is_stuck_does_not_hold_up_the_stop(tmp_path):
    reading, writing = os.pipe()
    try:
        with served(tmp_path, stderr=writing) as it:
            fill(writing)
            it.command.order()
            assert it.command.ended() == 0
            assert it.left() == []
    finally:
        os.close(reading)
        os.close(writing)


def test_a_second_signal_stops_at_once(tmp_path):
    with served(tmp_path, (Router(), Executor(sleep_tags={7: 60}))) as it:
        it.sender.send("router", Call(tag=7))
        time.sleep(0.5)
        it.command.order()
        time.sleep(0.5)
        it.command.order()
        assert it.command.ended(3) == 0
        assert "not drained after" not in it.command.log
        assert it.left() == []


def test_interrupting_the_whole_foreground_group_still_drains(tmp_path):
    """Ctrl-C goes to every process of the terminal's foreground group; the server must not see it before the drain."""
    with served(tmp_path, (Router(), Executor(batch_seconds=0.2, max_batch_size=1))) as it:
        queued = [it.sender.send("router", Call(tag=tag)) for tag in range(1, 6)]
        time.sleep(0.3)
        os.killpg(it.command.process.pid, signal.SIGINT)
        assert [future.result(timeout=10).code for future in queued] == ["OK"] * 5
        assert it.command.ended() == 0
        assert it.left() == []


def test_a_signal_while_models_load_stops_at_once(tmp_path):
    write_executor(tmp_path / "repository", Executor(initialize_seconds=60))
    with serving(tmp_path, "--model-repository", tmp_path / "repository") as command:
        eventually(lambda: "loading: executor:1" in command.log)
        session = command.tritonserver()
        eventually(lambda: len(living(session)) > 1)
        command.order()
        assert command.ended(5) == 0
        assert command.lines == []
        assert living(session) == []


def test_a_server_that_dies_takes_serve_along_with_a_reason(tmp_path):
    with served(tmp_path) as it:
        # Stopped, the stubs cannot notice that their server is gone.
        for name in ("router", "executor"):
            os.kill(it.stub(name), signal.SIGSTOP)
        os.kill(it.session, signal.SIGKILL)
        assert it.command.ended(5) == 1
        assert "tritonserver ended by itself, with signal SIGKILL" in it.command.log
        assert it.left() == []


def test_the_server_does_not_outlive_a_killed_serve(tmp_path):
    with served(tmp_path) as it:
        it.command.order(signal.SIGKILL)
        it.command.ended(5)
        eventually(lambda: not living(it.session), STOP_BOUND_SECONDS)
