# SPDX-License-Identifier: Apache-2.0
"""`serve` as a user runs it: starting, refusing to start, and what it prints."""

import contextlib
import os
import re
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import Server, process
from support.clients import Call, client, held_by_router
from support.fleet import eventually
from support.models import Executor, Router, write_executor, write_pair, write_router
from support.serving import END_SECONDS, READY_SECONDS, Serving, free_ports, living, serving

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


def port_words(numbers):
    return [
        word
        for name, port in zip(("http", "grpc", "metrics"), numbers, strict=True)
        for word in (f"--{name}-port", port)
    ]


def refused(folder, *words, **options):
    """Runs `serve`, which must give up by itself; its status and what it said."""
    with serving(folder, *words, **options) as command:
        status = command.ended(READY_SECONDS)
        assert command.lines == [], "it said that it was ready"
        return status, command.log


def test_one_line_when_the_models_serve_on_the_ports_given(tmp_path, repository):
    write_pair(repository)
    numbers = free_ports()
    with serving(tmp_path, "--model-repository", repository, *port_words(numbers), pick_ports=False) as command:
        http, grpc, metrics = command.ready()
        assert [http, grpc, metrics] == [f"127.0.0.1:{port}" for port in numbers]
        for address, protocol in ((http, "http"), (grpc, "grpc")):
            with client(address, protocol) as sender:
                reply = sender.infer("router", Call(tag=1, traffic_class="interactive"))
                assert reply.code == "OK", reply.message
                direct = sender.infer("executor", Call(tag=2))
                assert "router" in direct.message, "the guard is not set"
        with urllib.request.urlopen(f"http://{metrics}/metrics") as page:
            assert b"nv_inference_request_success" in page.read()
        assert "Started HTTPService" in command.log
        words = Path(f"/proc/{command.tritonserver()}/cmdline").read_bytes().split(b"\0")
        assert b"--backend-config=python,thread-pool-size=32" in words
        command.order()
        assert command.ended() == 0
        assert len(command.lines) == 1


@pytest.mark.parametrize("busy", ["http", "grpc", "metrics"])
def test_a_busy_port_is_named_before_anything_starts(tmp_path, repository, busy):
    write_executor(repository, Executor())
    numbers = dict(zip(("http", "grpc", "metrics"), free_ports(), strict=True))
    with socket.create_server(("127.0.0.1", numbers[busy])):
        status, said = refused(
            tmp_path, "--model-repository", repository, *port_words(numbers.values()), pick_ports=False
        )
    assert status == 1
    assert f"{busy} port {numbers[busy]} on 127.0.0.1 is in use" in said
    assert f"--{busy}-port" in said
    assert "tritonserver" not in said.replace("perhaps", ""), "the server was started"


def test_a_server_that_still_stops_is_noticed_and_its_ports_are_free_at_once_afterwards(tmp_path, repository):
    record = write_pair(repository)
    words = ["--model-repository", repository, *port_words(free_ports())]
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    with serving(tmp_path / "a", *words, pick_ports=False) as first:
        _, grpc, metrics = first.ready()
        with client(grpc) as sender, record.shut():
            sender.send("router", Call(tag=7))  # holds the drain up, so that there is time to look
            eventually(lambda: held_by_router(metrics) == 1)
            first.order()
            eventually(lambda: "stopping: draining" in first.log)
            status, said = refused(tmp_path / "b", *words, pick_ports=False)
            assert first.process.poll() is None, "it stopped too fast for this test to mean anything"
            assert status == 1
            assert "is in use, perhaps by a server that is still stopping" in said
            assert first.ended() == 0
        with serving(tmp_path / "c", *words, pick_ports=False) as second:
            second.ready()


def test_another_server_that_takes_the_ports_meanwhile_is_not_taken_for_ours(tmp_path, repository):
    """Both find the ports free; the other is quicker, and its answers must not make the slower one say ready."""
    record = write_executor(repository, Executor())
    (tmp_path / "quick").mkdir()
    write_executor(tmp_path / "quick", Executor())
    ports_given = port_words(free_ports())
    with (
        record.shut(),
        serving(tmp_path, "--model-repository", repository, *ports_given, pick_ports=False) as slow,
    ):
        eventually(lambda: record.held() == 1)
        words = ["--model-repository", tmp_path / "quick", *ports_given]
        with serving(tmp_path / "quick", *words, pick_ports=False) as quick:
            quick.ready()
            record.open()
            assert slow.ended() == 1
            assert slow.lines == []
            assert "already in use" in slow.log[slow.log.index("priority-router serve: error:") :]


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        (Executor(initialize_error="weights are missing"), "model executor: .*weights are missing"),
        (Executor(config='input { name: "Z" data_type: TYPE_FP32 dims: [ x ] }'), "executor"),
    ],
    ids=["fails to load", "broken config"],
)
def test_a_model_that_does_not_load_is_named_with_its_reason(tmp_path, repository, executor, said):
    write_executor(repository, Executor("healthy"))
    write_executor(repository, executor)
    status, log = refused(tmp_path, "--model-repository", repository)
    assert status == 1
    error = log[log.index("priority-router serve: error:") :]
    assert re.search(said, error), error
    assert "healthy" not in error


def test_a_broken_policy_is_named_before_anything_starts(tmp_path, repository):
    write_pair(repository, Router(policy={"colour": "red"}))
    status, log = refused(tmp_path, "--model-repository", repository)
    assert status == 1
    assert "policy.toml" in log
    assert "colour" in log
    assert "Started" not in log


def test_one_port_for_two_services_is_refused(tmp_path, repository):
    write_executor(repository, Executor())
    (port, *_) = free_ports()
    words = ["--model-repository", repository, "--grpc-port", port, "--metrics-port", port, "--http-port", 0]
    status, log = refused(tmp_path, *words, pick_ports=False)
    assert status == 1
    assert f"port {port} is asked for twice" in log


def test_a_missing_repository_is_named(tmp_path):
    status, log = refused(tmp_path, "--model-repository", tmp_path / "nowhere")
    assert status == 1
    assert f"model repository {tmp_path / 'nowhere'}: no such folder" in log


def test_models_that_may_fail_are_warned_of(tmp_path, repository):
    write_executor(repository, Executor("healthy"))
    write_executor(repository, Executor(initialize_error="weights are missing"))
    with serving(tmp_path, "--model-repository", repository, "--", "--exit-on-error=false") as command:
        http, *_ = command.ready()
        assert "priority-router serve: warning: model executor version 1 is UNAVAILABLE" in command.log
        with client(http, "http") as sender:
            assert sender.infer("healthy", Call(tag=1)).ok


def warned(command):
    command.ready()
    return [line for line in command.log.splitlines() if line.startswith("priority-router serve: warning: ")]


def test_a_router_that_disagrees_with_its_executor_is_warned_of_and_served(tmp_path, repository):
    delay = "dynamic_batching { max_queue_delay_microseconds: 1 default_queue_policy { max_queue_size: 9 } }"
    executor = Executor(instances=2, batching=delay)
    nothing = 'output { name: "NOPE" data_type: TYPE_FP32 dims: [ 1 ] }'
    router = Router(instances=3, config=nothing, policy={"executor_version": 1})
    write_pair(repository, router, executor)
    policy = repository / "router" / "1" / "policy.toml"
    policy.write_text(policy.read_text().replace("max_batch_size = 4", "max_batch_size = 8"))
    write_router(repository, Router("stray", policy={"executor": "exekutor"}), executor)
    with serving(tmp_path, "--no-lint", "--model-repository", repository) as command:
        wrong = (
            "max_batch_size is 8",
            "instances is 3 in policy.toml and 2",
            "no priority_levels",
            "max_queue_size: 9 in default_queue_policy",
            "output 'NOPE'",
            "executor/config.pbtxt has max_queue_delay_microseconds: 1:",
            'write executor = "executor"',
        )
        lines = warned(command)
        assert len(lines) == len(wrong), lines
        for line, said in zip(lines, wrong, strict=True):
            assert said in line


def test_the_models_that_come_along_agree(tmp_path):
    with serving(tmp_path, "--model-repository", ROOT / "model_repository") as command:
        assert warned(command) == []


def test_a_router_that_nobody_asked_to_be_loaded_is_warned_of(tmp_path, repository):
    write_pair(repository)
    words = ["--model-repository", repository, "--", "--model-control-mode=explicit"]
    with serving(tmp_path, *words) as command:
        (line,) = warned(command)
        assert "router 'router' is not loaded: " in line
        options = line.partition(" add ")[2].partition(",")[0].split()
    with serving(tmp_path, *words, *options) as command:
        assert warned(command) == []
        with client(command.ready()[0], "http") as sender:
            assert sender.infer("router", Call(tag=1)).ok


def test_a_probe_that_needs_a_header_is_noted(tmp_path, repository):
    write_pair(repository, Router(policy={"class_sources": ["header:X-Class"]}))
    with serving(tmp_path, "--model-repository", repository) as command:
        assert warned(command) == []
        (note,) = [line for line in command.log.splitlines() if line.startswith("priority-router serve: note: ")]
        assert "--header 'x-class: interactive'" in note


RESTRICTED = ["health:one=1", "model-config,metadata,inference:two=2"]


def test_serve_sends_the_keys_that_it_is_given(tmp_path, repository):
    """It asks for health, configurations and life, whatever of these is restricted."""
    write_pair(repository, executor=Executor(instances=2))
    policy = repository / "router" / "1" / "policy.toml"
    policy.write_text(policy.read_text().replace("instances = 2", "instances = 1"))
    restricted = [f"--http-restricted-api={words}" for words in RESTRICTED]
    words = ["--no-lint", "--router-timeout=2", "--model-repository", repository, "--", *restricted]
    with serving(tmp_path, *words) as command:
        (line,) = warned(command)
        assert "instances is 1 in policy.toml and 2" in line
        time.sleep(8)  # several liveness requests
        assert "error: " not in command.log


def test_configurations_that_serve_may_not_read_are_said(tmp_path, repository):
    write_pair(repository)
    restricted = [f"--http-restricted-api={words}" for words in ("model-config:key=1", "statistics:key=2")]
    with serving(tmp_path, "--model-repository", repository, "--", *restricted) as command:
        (line,) = warned(command)
        assert "cannot be compared with its executor" in line


def test_arguments_are_passed_on(tmp_path, repository):
    write_executor(repository, Executor("chosen"))
    write_executor(repository, Executor("left-out"))
    passed = ["--model-control-mode=explicit", "--load-model", "chosen", "--log-verbose=1", "--allow-metrics=false"]
    command = Serving(tmp_path, "--model-repository", repository, "--http-port=0", "--grpc-port=0", "--", *passed)
    with contextlib.ExitStack() as stack:
        stack.callback(command.process.wait, END_SECONDS)
        stack.callback(command.order)
        http, _, metrics = command.ready()
        assert metrics == "off"
        with client(http, "http") as sender:
            assert sender.infer("chosen", Call(tag=1)).ok
            assert not sender.infer("left-out", Call(tag=1)).ok
        assert "Starting Python backend stub" in command.log, "--log-verbose=1 did not arrive"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "--http-port=1"], "cannot be passed on"),
        (["--", "--model-repository=/x"], "cannot be passed on"),
        (["--", "--backend-config=python,thread-pool-size=2"], "error PR401: "),
        (["--no-lint", "--", "--backend-config=python,thread-pool-size=2"], "cannot be passed on"),
    ],
)
def test_arguments_that_would_break_it_are_refused(tmp_path, repository, words, said):
    write_pair(repository)
    status, log = refused(tmp_path, "--model-repository", repository, *words)
    assert status == 1
    assert said in log


def test_an_argument_that_tritonserver_refuses_is_said(tmp_path, repository):
    write_executor(repository, Executor())
    status, log = refused(tmp_path, "--model-repository", repository, "--", "--no-such-option=1")
    assert status == 1
    assert "no-such-option" in log[log.index("priority-router serve: error:") :]


def test_odd_paths_and_a_bare_environment(tmp_path):
    """Spaces in every path, nothing of the virtual environment on PATH, hooks and router included."""
    folder = tmp_path / "odd $HOME; name"
    (folder / "model repository").mkdir(parents=True)
    (folder / "tmp dir").mkdir()
    record = write_pair(folder / "model repository")
    environment = {
        **{name: os.environ[name] for name in ("PYTHONPATH", "HOME") if name in os.environ},
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(folder / "tmp dir"),
    }
    with serving(folder, "--model-repository", folder / "model repository", environment=environment) as command:
        _, grpc, _ = command.ready()
        with client(grpc) as sender:
            reply = sender.infer("router", Call(tag=5, traffic_class="bulk"))
        assert reply.code == "OK", reply.message
        assert record.tags() == [5]


def test_several_repositories(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_executor(tmp_path / name, Executor(name))
    words = ["--model-repository", tmp_path / "one", "--model-repository", tmp_path / "two"]
    with serving(tmp_path, *words) as command:
        http, *_ = command.ready()
        with client(http, "http") as sender:
            assert sender.infer("one", Call(tag=1)).ok
            assert sender.infer("two", Call(tag=1)).ok


def test_models_that_take_too_long_are_given_up(tmp_path, repository):
    with write_executor(repository, Executor()).shut():
        status, log = refused(tmp_path, "--model-repository", repository, "--ready-timeout", "0.1")
    assert status == 1
    assert "error: not every model serves after 0.1 s; if they only need longer, raise --ready-timeout" in log


class Impatient:
    """Stands for the module `time`: ten minutes pass once the server has begun to load its model."""

    def __init__(self, server):
        self._server = server
        self.sleep = time.sleep
        self.session = 0

    def monotonic(self):
        if not self.session and "loading: executor:1" in self._server.log_text():
            self.session = self._server.pid
        return time.monotonic() + (600 if self.session else 0)


def test_what_a_server_that_is_given_up_was_doing_is_said_and_nothing_of_it_is_left(repository, monkeypatch):
    server = Server(repository, ready_timeout=600)
    clock = Impatient(server)
    monkeypatch.setattr(process, "time", clock)
    with write_executor(repository, Executor()).shut(), pytest.raises(SetupError) as caught:
        server.start()
    said, _, last_words = str(caught.value).partition("the server's last words:")
    assert said.startswith("not every model serves after 600 s;")
    assert "loading: executor:1" in last_words
    eventually(lambda: living(clock.session) == [])


def test_a_health_api_that_serve_may_not_ask_is_said(tmp_path, repository):
    write_executor(repository, Executor())
    restricted = [f"--http-restricted-api={words}" for words in ("health:key=1", "statistics:key=2")]
    status, log = refused(tmp_path, "--model-repository", repository, "--", *restricted)
    assert status == 1
    assert "health API is restricted" in log
