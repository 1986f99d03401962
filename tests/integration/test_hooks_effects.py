# SPDX-License-Identifier: Apache-2.0
"""Each hook on the real server, by effect: what is so with its switch on and is not with its switch off."""

import numpy as np
import pytest
from priority_router.hooks import GUARDED_MODELS_ENV, LEVEL_KEY, SWITCHES
from priority_router.ops.assets import hooks_library
from support.clients import Call, client, pending
from support.fleet import eventually
from support.hook_driver import compile_fake
from support.hook_models import CALLER, EXECUTOR, Case, counts_of, marker_of, write_repository
from support.models import STALL_SECONDS, Executor, stalls, write_executor

BLOCKER, URGENT = 100, 7
BACKGROUND = list(range(1, 7))
MOST_STALLS = 2
"""A machine that stalls may have so many, too."""

BATCHES = 12
CALLS = {True: 40, False: 6}


@pytest.fixture(scope="module", params=["on", "off"])
def case(request, start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("hooks") / "repository"
    record = write_repository(repository, Executor(max_batch_size=1, batch_seconds=0.02))
    switches = {} if request.param == "on" else dict.fromkeys(SWITCHES.values(), "0")
    return Case(start_server(repository, hooks=True, environment=switches), record, request.param == "on")


@pytest.fixture
def order(case):
    """Lets one slow request block the executor, queues the background behind it, then the urgent one; what ran when."""

    def run(send, urgent):
        case.record.forget()
        with client(case.server.grpc) as grpc, client(case.server.http, "http") as http:
            senders = {"grpc": grpc, "http": http}
            with case.record.shut():
                sent = [grpc.send(EXECUTOR, Call(tag=BLOCKER))]
                eventually(lambda: case.record.held() == 1)
                sent += [send(senders, tag) for tag in BACKGROUND]
                eventually(lambda: pending(case.server.metrics, EXECUTOR) == len(BACKGROUND))
                sent.append(urgent(senders, URGENT))
                eventually(lambda: pending(case.server.metrics, EXECUTOR) == len(BACKGROUND) + 1)
            replies = [future.result() for future in sent]
        assert [reply.message for reply in replies if not reply.ok] == []
        return case.record.tags()

    return run


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


@pytest.fixture(scope="module", params=[True, False], ids=["on", "off"])
def late(request, start_server, tmp_path_factory):
    """A server in which the end of a batch wakes the batcher while its instance does not count as free yet.

    What otherwise takes chance is so with every batch; without the hook the next one then waits for half a second.
    """
    folder = tmp_path_factory.mktemp("late")
    record = write_executor(folder / "repository", Executor(max_batch_size=1))
    late_release = folder / "late_release.so"
    compile_fake(late_release, "late_release.c", "-shared")
    environment = {"LD_PRELOAD": f"{hooks_library()}:{late_release}", SWITCHES["dispatch"]: str(int(request.param))}
    return Case(start_server(folder / "repository", hooks=True, environment=environment), record, request.param)


def test_the_executor_does_not_stand_idle_between_batches(late):
    before = counts_of(late.server).waits_cut
    late.record.forget()
    with client(late.server.grpc) as grpc:
        with late.record.shut():
            sent = [grpc.send(EXECUTOR, Call(tag=tag)) for tag in range(BATCHES)]
            eventually(lambda: pending(late.server.metrics, EXECUTOR) + late.record.held() == BATCHES)
        assert all(future.result().ok for future in sent)
    assert (stalls(late.record.batches()) > MOST_STALLS) is not late.on
    assert (counts_of(late.server).waits_cut > before) is late.on


def test_a_request_that_comes_before_the_instance_counts_as_free_does_not_wait_for_the_next_one(late):
    """One caller, whose every call from the second on comes while the batch before it has ended."""
    with client(late.server.grpc) as grpc:
        replies = [grpc.infer(EXECUTOR, Call(tag=1)) for _ in range(CALLS[late.on])]
    assert all(reply.ok for reply in replies)
    assert (sum(reply.seconds > STALL_SECONDS for reply in replies) > MOST_STALLS) is not late.on


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
