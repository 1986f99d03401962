# SPDX-License-Identifier: Apache-2.0
"""Each hook on the real server, by effect: what is so with its switch on and is not with its switch off."""

import itertools
import time

import numpy as np
import pytest
from priority_router.hooks import GUARDED_MODELS_ENV, LEVEL_KEY, SWITCHES
from priority_router.ops.assets import hooks_library
from support.clients import Call, client, metrics
from support.hook_driver import compile_fake
from support.hook_models import CALLER, EXECUTOR, Case, counts_of, marker_of, write_repository
from support.models import Executor, write_executor
from support.server import running

BLOCKER, URGENT = 100, 7
BACKGROUND = list(range(1, 7))
SETTLE_SECONDS = 10
HEAD_START_SECONDS = 0.3
STALL_SECONDS = 0.4
RACES = 40


@pytest.fixture(scope="module", params=["on", "off"])
def case(request, start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("hooks") / "repository"
    record = write_repository(repository, Executor(max_batch_size=1, batch_seconds=0.02, sleep_tags={BLOCKER: 2.5}))
    switches = {} if request.param == "on" else dict.fromkeys(SWITCHES.values(), "0")
    return Case(start_server(repository, hooks=True, environment=switches), record, request.param == "on")


@pytest.fixture
def order(case):
    """Lets one slow request block the executor, queues the background behind it, then the urgent one; what ran when."""

    def run(send, urgent, background=BACKGROUND):
        case.record.forget()
        with client(case.server.grpc) as grpc, client(case.server.http, "http") as http:
            senders = {"grpc": grpc, "http": http}
            blocker = senders["grpc"].send(EXECUTOR, Call(tag=BLOCKER))
            time.sleep(HEAD_START_SECONDS)
            pending = [send(senders, tag) for tag in background]
            wait_for_backlog(case.server, len(background))
            pending.append(urgent(senders, URGENT))
            replies = [future.result() for future in (blocker, *pending)]
        assert [reply.message for reply in replies if not reply.ok] == []
        return case.record.tags()

    return run


def wait_for_backlog(server, length):
    deadline = time.monotonic() + SETTLE_SECONDS
    name = f'nv_inference_pending_request_count{{model="{EXECUTOR}",version="1"}}'
    while time.monotonic() < deadline:
        if metrics(server.metrics).get(name, 0) >= length:
            return
        time.sleep(0.01)
    pytest.fail(f"the executor's queue never held {length} requests")


def by_bls(level):
    def send(senders, tag):
        return senders["grpc"].send(CALLER, Call(tag=tag, inputs={"LEVEL": np.array([level], np.int64)}))

    return send


def by_client(protocol, **options):
    return lambda senders, tag: senders[protocol].send(EXECUTOR, Call(tag=tag, **options))


def test_a_level_given_by_bls_overtakes(case, order):
    before = counts_of(case.server).priorities_set
    tags = order(by_bls(2), by_bls(1))
    assert tags[0] == BLOCKER
    assert sorted(tags[1:]) == [*BACKGROUND, URGENT]
    assert tags.index(URGENT) == (1 if case.on else len(BACKGROUND) + 1)
    assert counts_of(case.server).priorities_set - before == (len(BACKGROUND) + 1 if case.on else 0)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_key_sent_by_a_client_changes_nothing(case, order, protocol):
    before = counts_of(case.server).priorities_set
    tags = order(by_client(protocol), by_client(protocol, parameters={LEVEL_KEY: 1}))
    assert tags[-1] == URGENT
    assert counts_of(case.server).priorities_set == before


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_clients_own_priority_overtakes(case, order, protocol):
    # What the test above would see if the key had any effect.
    assert order(by_client(protocol), by_client(protocol, priority=1))[1] == URGENT


def test_the_executor_does_not_stand_idle_between_batches(case, order):
    before = counts_of(case.server).waits_cut
    order(by_client("grpc"), by_client("grpc"), background=range(1, 20))
    batches = sorted(case.record.batches(), key=lambda batch: batch.start)
    stalls = sum(after.start - earlier.end > STALL_SECONDS for earlier, after in itertools.pairwise(batches))
    cut = counts_of(case.server).waits_cut - before
    if case.on:
        assert stalls == 0
        assert cut > 0
    else:
        # By chance Triton sees some free instances at once, but never twenty in a row.
        assert stalls >= 2
        assert cut == 0


def answered(sender):
    reply = sender.infer(EXECUTOR, Call(tag=1))
    assert reply.ok, reply.message
    return reply


@pytest.mark.parametrize("on", [True, False], ids=["on", "off"])
def test_a_request_that_comes_before_the_instance_counts_as_free_does_not_wait_for_the_next_one(on, tmp_path):
    """One caller, whose every call comes while the batch before it has ended and its instance is not free yet.

    That is so for each call from the second on; without the hook each of them lies there for the whole idle wait.
    """
    write_executor(tmp_path / "repository", Executor(max_batch_size=1))
    late_release = tmp_path / "late_release.so"
    compile_fake(late_release, "late_release.c", "-shared")
    environment = {"LD_PRELOAD": f"{hooks_library()}:{late_release}", SWITCHES["dispatch"]: str(int(on))}
    with (
        running(tmp_path / "repository", hooks=True, environment=environment) as server,
        client(server.grpc) as grpc,
    ):
        stalled = any(answered(grpc).seconds > STALL_SECONDS for _ in range(RACES))
    assert stalled is not on


def test_one_line_in_the_log_and_a_mark_for_the_models(case):
    lines = [line for line in case.server.log_text().splitlines() if "priority_router_hooks" in line]
    assert len(lines) == 1
    marker = marker_of(case.server)
    assert marker is not None
    assert marker.active_in(case.server.pid)
    assert marker.hooks == ({"priority", "dispatch"} if case.on else set())
    assert f"pid={case.server.pid};" in lines[0]


def test_a_server_without_the_library_has_no_mark(start_server, tmp_path):
    write_repository(tmp_path / "repository", Executor(max_batch_size=1))
    server = start_server(tmp_path / "repository", hooks=False, environment={GUARDED_MODELS_ENV: "executor=router"})
    assert marker_of(server) is None
    with client(server.grpc) as grpc:
        assert grpc.infer(EXECUTOR, Call(tag=1)).ok
