# SPDX-License-Identifier: Apache-2.0
import os
import stat

import pytest
from priority_router import control
from priority_router.errors import SetupError

GONE = 2**22 + 1  # above the kernel's largest process id


@pytest.fixture
def directory(tmp_path):
    return control.ControlDirectory(tmp_path / "control")


def test_only_the_owner_can_enter(directory):
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700


def test_a_drain_from_order_to_report(directory):
    first, second = control.RouterChannel(directory.path, "a.b"), control.RouterChannel(directory.path, "router")
    assert not first.drain_requested()
    assert directory.undrained() == ["a.b", "router"]
    directory.order_drain()
    assert first.drain_requested()
    assert second.drain_requested()
    first.report_drained()
    assert directory.undrained() == ["router"]
    second.report_drained()
    assert directory.undrained() == []


def test_an_unloaded_router_is_not_waited_for(directory):
    channel = control.RouterChannel(directory.path, "router")
    channel.close()
    channel.close()
    assert directory.undrained() == []


def test_a_dead_router_is_not_waited_for(directory):
    control.RouterChannel(directory.path, "dead", pid=GONE)
    control.RouterChannel(directory.path, "alive", pid=os.getpid())
    assert directory.undrained() == ["alive"]


def test_who_has_died_without_signing_off_is_dead(directory):
    control.RouterChannel(directory.path, "alive")
    control.RouterChannel(directory.path, "gone", pid=GONE).close()
    assert directory.dead() == []
    control.RouterChannel(directory.path, "b", pid=GONE).report_drained()
    control.RouterChannel(directory.path, "a.b", pid=GONE)
    assert directory.dead() == ["a.b", "b"]


@pytest.mark.parametrize(("said", "count"), [(None, 0), ("3", 3), ("", 0), ("x", 0), ("²", 0), ("-1", 0)])
def test_restarts_are_read_from_the_environment(said, count):
    environ = {} if said is None else {control.RESTARTS_ENV: said}
    assert control.server_restarts(environ) == count


def test_two_processes_of_one_model_are_told_apart(directory):
    control.RouterChannel(directory.path, "router", pid=os.getppid())
    control.RouterChannel(directory.path, "router").report_drained()
    assert directory.undrained() == ["router"]


def test_environment_decides(directory):
    assert control.RouterChannel.from_environment({}, "router") is None
    assert control.RouterChannel.from_environment({control.CONTROL_DIR_ENV: ""}, "router") is None
    environ = {control.CONTROL_DIR_ENV: str(directory.path)}
    assert control.RouterChannel.from_environment(environ, "router") is not None
    assert directory.undrained() == ["router"]


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(SetupError, match=r"PRIORITY_ROUTER_CONTROL_DIR=.*gone cannot be written"):
        control.RouterChannel(tmp_path / "gone", "router")


def test_reports_survive_a_vanished_directory(directory):
    channel = control.RouterChannel(directory.path, "router")
    for path in directory.path.iterdir():
        path.unlink()
    directory.path.rmdir()
    channel.report_drained()
    channel.close()
    assert not channel.drain_requested()


@pytest.mark.parametrize(("instances", "threads"), [(1, 32), (5, 32), (6, 36), (16, 76)])
def test_pool_covers_calls_in_flight_written_off_ones_and_replies(instances, threads):
    assert control.thread_pool_size(instances) == threads
    assert threads >= 4 * instances + 8 + control.REPLY_THREADS
