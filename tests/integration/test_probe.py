# SPDX-License-Identifier: Apache-2.0
"""`probe` tells a server that answers from one that only looks alive."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from priority_router.ops import cli
from support.clients import Call, client, held_by_router, router_metric
from support.fleet import eventually
from support.models import (
    BULK,
    EXTRA,
    INTERACTIVE,
    TAG,
    TEXT,
    ErrorReply,
    Executor,
    Tensor,
    X,
    write_executor,
    write_pair,
)

HALF = Tensor("X", "TYPE_FP32", (-1, 3))
AMPLE = ("--timeout", "60")
TRICKLE_SECONDS = 60


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("probe") / "repository"
    repository.mkdir()
    write_pair(repository, executor=Executor(inputs=(X, TAG, TEXT, EXTRA)))
    write_executor(repository, Executor("strings", inputs=(Tensor("TEXT", "TYPE_STRING", (2,)),)))
    write_executor(repository, Executor("free", max_batch_size=0, inputs=(HALF,), priority_levels=0))
    required_tag = Tensor("TAG", "TYPE_INT64", (1,))
    error = {0: ErrorReply("the weights\nare gone", "INTERNAL")}
    write_executor(repository, Executor("failing", inputs=(X, required_tag), error_tags=error))
    write_executor(repository, Executor("slow", batch_seconds=3))
    return start_server(repository)


def probe(capsys, *words):
    status = cli.main(["probe", *AMPLE, *words])
    output = capsys.readouterr()
    return status, output.err or output.out


@pytest.mark.parametrize("model", ["router", "strings", "free"])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_model_that_answers(server, capsys, protocol, model):
    status, said = probe(capsys, "--url", f"{protocol}://{getattr(server, protocol)}", "--model", model)
    assert status == 0, said
    assert "answered in" in said


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    ("model", "reason"),
    [("failing", "the weights are gone"), ("nobody", "nobody"), ("slow", "no answer within 0.5 s|Deadline Exceeded")],
)
def test_a_model_that_does_not(server, capsys, protocol, model, reason):
    url = f"{protocol}://{getattr(server, protocol)}"
    limit = ("--timeout", "0.5") if model == "slow" else AMPLE
    status, said = probe(capsys, "--url", url, "--model", model, *limit)
    assert status == 1
    assert any(part in said for part in reason.split("|")), said
    assert said.count("\n") == 1, "the reason is not one line"


@pytest.fixture(scope="module")
def busy(start_server, tmp_path_factory):
    """A router that can be given a backlog."""
    repository = tmp_path_factory.mktemp("busy") / "repository"
    record = write_pair(repository, executor=Executor(max_batch_size=1))
    return start_server(repository), record


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_an_urgent_class_does_not_wait_behind_a_backlog(busy, protocol):
    server, record = busy
    words = ["probe", *AMPLE, "--url", f"{protocol}://{getattr(server, protocol)}"]

    def waiting(name):
        return router_metric(server.metrics, "queue_size", **{"class": name})

    with client(server.grpc) as sender, ThreadPoolExecutor(2) as pool:
        eventually(lambda: held_by_router(server.metrics) == 0)
        record.forget()
        with record.shut():
            backlog = [sender.send("router", Call(tag=tag, traffic_class=BULK)) for tag in range(16)]
            eventually(lambda: held_by_router(server.metrics) == 16)
            queued = waiting(BULK)
            default = pool.submit(cli.main, words)
            eventually(lambda: waiting(BULK) == queued + 1)
            urgent = pool.submit(cli.main, [*words, "--class", INTERACTIVE])
            eventually(lambda: waiting(INTERACTIVE) == 1)
        assert (default.result(), urgent.result()) == (0, 0)
        assert all(reply.result().ok for reply in backlog)
    ran = sorted(record.batches(), key=lambda batch: batch.start)
    first, last = (place for place, batch in enumerate(ran) if not batch.tags)  # a probe sends no tag
    # Two calls are in flight at a time, each in a thread of its own, so that neighbours may change places.
    assert first <= 3
    assert last >= 15


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    ("model", "reason"), [("router", "class 'gold' is unknown"), ("slow", "the model has no input CLASS")]
)
def test_a_class_that_nobody_knows(server, capsys, protocol, model, reason):
    url = f"{protocol}://{getattr(server, protocol)}"
    status, said = probe(capsys, "--url", url, "--model", model, "--class", "gold")
    assert (status, reason in said) == (1, True), said


def test_the_wrong_port_is_said(server, capsys):
    for address in (server.grpc, server.metrics):
        status, said = probe(capsys, "--url", f"http://{address}")
        assert status == 1
        assert "is this Triton's HTTP port?" in said


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://host", "http://", "http://host:99999", "http://h:x", "http://[::1"]
)
def test_what_is_no_address(capsys, url):
    status, said = probe(capsys, "--url", url)
    assert status == 1
    assert "not an address" in said


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_neither_a_proxy_nor_a_full_device_makes_a_healthy_server_look_dead(server, protocol):
    words = ["probe", *AMPLE, "--url", f"{protocol}://{getattr(server, protocol)}"]
    proxies = dict.fromkeys(("http_proxy", "grpc_proxy"), "http://127.0.0.1:9")
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "priority_router.ops.cli", *words],
            env=os.environ | proxies,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert (run.returncode, run.stderr) == (0, "")


def test_nobody_there(capsys):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        status, said = probe(capsys, "--url", f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert status == 1
    assert "Connection refused" in said


def test_a_trickle_of_bytes_does_not_extend_the_limit(capsys):
    """Every byte restarts a socket's own time limit; the probe's runs on."""
    ended = threading.Event()

    def trickle():
        connection, _ = owner.accept()
        with connection, contextlib.suppress(OSError):
            for _ in range(10 * TRICKLE_SECONDS):
                connection.sendall(b"H")
                if ended.wait(0.1):
                    return

    with socket.create_server(("127.0.0.1", 0)) as owner:
        thread = threading.Thread(target=trickle)
        thread.start()
        url = f"http://127.0.0.1:{owner.getsockname()[1]}"
        status, said = probe(capsys, "--url", url, "--timeout", "1")
        in_time = thread.is_alive()
        ended.set()
        thread.join()
    assert status == 1
    assert "no answer within 1 s" in said
    assert in_time


def test_a_router_whose_process_hangs_is_noticed_though_the_server_calls_itself_ready(start_server, tmp_path, capsys):
    repository = tmp_path / "repository"
    repository.mkdir()
    write_pair(repository)
    server = start_server(repository)
    url = f"http://{server.http}"
    assert probe(capsys, "--url", url)[0] == 0
    os.kill(server.stub_pids()["router_0_0"], signal.SIGSTOP)
    with urllib.request.urlopen(f"{url}/v2/health/ready") as answer:
        assert answer.status == 200
    assert probe(capsys, "--url", url, "--timeout", "2")[0] == 1
