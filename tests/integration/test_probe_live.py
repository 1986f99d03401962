# SPDX-License-Identifier: Apache-2.0
"""`probe --live` tells a router that lives from one that does not, whatever waits; `--hooks` proves the hooks."""

import os
import signal
import time
import urllib.request
from concurrent.futures import Future

import pytest
from priority_router.hooks import SWITCHES
from priority_router.ops import cli
from support.clients import Call, Reply, client, held_by_router, metrics
from support.fleet import eventually
from support.models import BULK, EXTRA, TAG, TEXT, Executor, Router, X, write_executor, write_pair, write_router

PAGE_SECONDS = 0.7
"""The router sends its numbers to the metrics page twice a second."""

AMPLE = ("--timeout", "60")
SUCCESS = f'priority_router_requests_total{{class="{BULK}",model="router",outcome="success"}}'


def probe(capsys, *words):
    status = cli.main(["probe", *words])
    output = capsys.readouterr()
    return status, output.err or output.out


def counted(server):
    return {name: value for name, value in metrics(server.metrics).items() if "priority_router_requests_total" in name}


@pytest.fixture(scope="module")
def system(start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("live") / "repository"
    repository.mkdir()
    full = ({"name": BULK, "level": 1, "max_queue_size": 1},)
    executor = Executor(max_batch_size=1, inputs=(X, TAG, TEXT, EXTRA))
    record = write_pair(repository, Router(classes=full), executor)
    lost = Executor("lost", max_batch_size=0, priority_levels=0)
    write_router(repository, Router("alone", mode="plain"), lost)
    return start_server(repository), record


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_it_is_answered_while_everything_else_waits_or_is_refused_and_counts_as_nothing(system, capsys, protocol):
    server, record = system
    url = f"{protocol}://{getattr(server, protocol)}"
    before = counted(server)
    eventually(lambda: held_by_router(server.metrics) == 0)
    with client(server.grpc) as sender, record.shut():
        calls: list[Future[Reply]] = []

        def full():
            """One is executed, one waits inside Triton, perhaps only after a while, one waits here."""
            if held_by_router(server.metrics) == 3:
                return True
            calls.append(sender.send("router", Call(tag=len(calls))))
            time.sleep(PAGE_SECONDS)
            return False

        eventually(full)
        for _ in range(3):
            status, said = probe(capsys, *AMPLE, "--live", "--url", url)
            assert status == 0, said
        status, said = probe(capsys, *AMPLE, "--url", url)
        assert (status, "max_queue_size" in said) == (1, True), "a real request is taken"
        record.open()
        assert sum(call.result().ok for call in calls) == 3
    eventually(lambda: held_by_router(server.metrics) == 0)
    eventually(lambda: sum(counted(server).values()) == sum(before.values()) + len(calls) + 1)
    assert counted(server)[SUCCESS] == before[SUCCESS] + 3


def test_a_router_lives_without_its_executor_and_is_not_ready(system, capsys):
    words = [*AMPLE, "--url", f"http://{system[0].http}", "--model", "alone"]
    assert probe(capsys, "--live", *words)[0] == 0
    status, said = probe(capsys, *words)
    assert (status, "executor 'lost' is not serving" in said) == (1, True), said


def test_what_a_dead_or_hanging_router_gets_though_the_server_calls_itself_ready(start_server, tmp_path, capsys):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_pair(tmp_path / name)
        server = start_server(tmp_path / name)
        url = f"http://{server.http}"
        assert probe(capsys, *AMPLE, "--live", "--url", url)[0] == 0
        os.kill(server.stub_pids()["router_0_0"], {"one": signal.SIGSTOP, "two": signal.SIGKILL}[name])
        with urllib.request.urlopen(f"{url}/v2/health/ready") as answer:
            assert answer.status == 200
        assert probe(capsys, "--live", "--url", url, "--timeout", "5")[0] == 1


def test_live_and_hooks_exclude_each_other(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["probe", "--live", "--hooks"])
    assert ended.value.code == 2


@pytest.fixture(scope="module")
def hooked(start_server, tmp_path_factory):
    """Servers by the hooks that are switched off in them, by the test's own hand after their start."""

    def start(mode="levels", **environment):
        repository = tmp_path_factory.mktemp("hooked") / "repository"
        repository.mkdir()
        write_pair(repository, Router(mode=mode), Executor(batch_seconds=0.02))
        write_executor(repository, Executor("free"))
        return start_server(repository, hooks=mode == "levels", environment=environment)

    return start


def prove(capsys, server, *words):
    places = ("--url", f"http://{server.http}", "--metrics-url", f"http://{server.metrics}")
    return probe(capsys, "--hooks", *(words if "--timeout" in words else (*AMPLE, *words)), *places)


def test_hooks_that_work_are_proved_by_what_they_do(hooked, capsys):
    server = hooked()
    status, said = prove(capsys, server)
    assert status == 0, said
    for hook in ("guard: a client's call was turned away", "priority: seen to act", "dispatch: seen to act"):
        assert hook in said
    page = metrics(server.metrics)
    assert page['priority_router_hook_calls_refused_total{model="router"}'] == 1
    assert page['priority_router_hook_priorities_set_total{model="router"}'] > 0
    assert page['priority_router_hook_waits_cut_total{model="router"}'] > 0


def test_a_guard_that_lets_a_client_pass_is_found(hooked, capsys):
    status, said = prove(capsys, hooked(), "--executor", "free")
    assert (status, "guard: loaded without effect: free has served a client's own call" in said) == (1, True), said
    status, said = prove(capsys, hooked(), "--executor", "nobody")
    assert (status, "name the model that the router calls with --executor" in said) == (1, True), said


def test_a_dispatch_hook_without_effect_is_found(hooked, capsys):
    # A slice longer than any wait: the hook is loaded, and cuts nothing.
    server = hooked(PRIORITY_ROUTER_DISPATCH_SLICE_MICROSECONDS="500000")
    status, said = prove(capsys, server, "--timeout", "10")
    assert (status, "dispatch: loaded without effect" in said) == (1, True), said


def test_without_any_hook_there_is_nothing_to_prove(hooked, capsys):
    status, said = prove(capsys, hooked("plain", **{SWITCHES["guard"]: "0"}))
    assert (status, "it relies on no hook" in said) == (1, True), said


def test_no_metrics_is_said(hooked, capsys, system):
    server, _ = system
    places = ("--url", f"http://{server.http}", "--metrics-url", f"http://{server.http}")
    status, said = probe(capsys, "--hooks", *AMPLE, *places)
    assert (status, "cannot be read" in said) == (1, True), said
    status, said = prove(capsys, server, "--model", "nobody")
    assert (status, "no router of that name has metrics" in said) == (1, True), said
