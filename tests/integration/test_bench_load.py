# SPDX-License-Identifier: Apache-2.0
"""The load generator against a server that answers as it is told."""

import contextlib
import json
import multiprocessing
import os
import signal
import socket
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from priority_router.core.values import SECOND
from priority_router.ops.bench import client_rate, load
from priority_router.ops.bench.arrivals import Schedule, poisson
from priority_router.ops.bench.load import Target, Variant
from priority_router.ops.bench.wire import Outcome, Route
from priority_router.ops.loads import ClassLoad
from support.load import replay
from support.scripted_http import OK, after, reply, serving

X = {"X": np.ones((1, 4), np.float32)}


def target(address, payloads=(X,), **options):
    return Target(address, {"online": Route("m", {"priority": 1}), "bulk": Route("m")}, payloads, **options)


def at(*seconds, classes=("online", "bulk"), bulk=(), duration=0.5):
    """A schedule: times of arrivals, those at the positions in ``bulk`` of that class."""
    count = len(seconds)
    return Schedule(
        classes,
        np.array([int(s * SECOND) for s in seconds]),
        np.array([int(i in bulk) for i in range(count)]),
        np.zeros(count, dtype=np.int64),
        int(duration * SECOND),
    )


def outcomes(ledger):
    return [Outcome(code) for code in ledger.outcome]


def test_latency_counts_from_the_schedule_and_requests_do_not_wait_for_replies():
    all_there = threading.Event()

    def answer(number, connection):
        if number == 3:
            all_there.set()
        if all_there.wait(20):
            connection.sendall(OK)
        else:  # the last request waits for a reply to another one
            connection.shutdown(socket.SHUT_RDWR)

    with serving(answer) as server:
        ledger = replay(target(server.address), at(0, 0.05, 0.1, 0.15))
    assert outcomes(ledger) == [Outcome.SUCCESS] * 4
    assert (ledger.done >= ledger.scheduled[-1]).all()
    assert ledger.connections == 4


def test_connections_are_used_again():
    def few_are_enough():
        with serving(after(0, OK)) as server:
            ledger = replay(target(server.address), at(*np.linspace(0, 0.9, 10), duration=1))
        assert server.received == 10
        return ledger.connections < 5

    # Where the machine holds the generator up, several requests are due at once.
    assert any(few_are_enough() for _ in range(5))


def test_replies_in_pieces_and_large_requests():
    body = json.dumps({"outputs": [], "padding": "x" * 200_000}).encode()
    whole = reply(200, body)

    def drip(number, connection):
        for cut in (0, 1, 20, 60, 90, 1000):
            connection.sendall(whole[cut : {0: 1, 1: 20, 20: 60, 60: 90, 90: 1000, 1000: len(whole)}[cut]])
            time.sleep(0.01)

    large = {"X": np.ones((1, 4_000_000), np.float32)}
    with serving(drip) as server:
        ledger = replay(target(server.address, [large]), at(0, 0.2, 0.4))
    assert outcomes(ledger) == [Outcome.SUCCESS] * 3
    assert all(len(body) > 16_000_000 for body in server.bodies)
    assert (ledger.sent > ledger.scheduled).all()


def test_every_kind_of_end_is_told_apart():
    answers = {
        "full": reply(503, b'{"error":"Exceeds maximum queue size"}'),
        "late": reply(503, b'{"error":"Request timeout expired"}'),
        "gone": reply(500, b'{"error":"request was cancelled"}'),
        "odd": reply(500, b'{"error":"no luck"}'),
        "junk": b"SSH-2.0-OpenSSH\r\n\r\n",
        "hang": None,
        "close": b"",
        "fine": OK,
    }
    script = list(answers.values())
    payloads = [{"X": np.full((1, 4), place, np.float32)} for place in range(len(script))]

    def answer(number, connection):
        # By what it asks: the order of arrival is that of the schedule only on a machine with time.
        place = int(np.frombuffer(server.bodies[number][-4:], np.float32)[0])
        if script[place] == b"":
            connection.shutdown(socket.SHUT_RDWR)
        elif script[place] is not None:
            connection.sendall(script[place])

    hanging = list(answers).index("hang")
    schedule = at(*np.linspace(0, 0.7, len(script)), bulk=[hanging], duration=0.8)
    schedule = replace(schedule, payload=np.arange(len(script)))
    with serving(answer) as server:
        ledger = replay(target(server.address, payloads), schedule, settle=["online"])
    assert dict(zip(answers, outcomes(ledger), strict=True)) == {
        "full": Outcome.QUEUE_FULL,
        "late": Outcome.TIMEOUT,
        "gone": Outcome.CANCELLED,
        "odd": Outcome.OTHER,
        "junk": Outcome.OTHER,
        "hang": Outcome.UNANSWERED,
        "close": Outcome.OTHER,
        "fine": Outcome.SUCCESS,
    }
    assert ledger.failures[500, "no luck"] == 1
    assert ledger.failures[0, "the server closed the connection"] == 1
    assert sum(ledger.failures.values()) == 3
    assert (ledger.done[ledger.outcome == Outcome.UNANSWERED] == -1).all()


def test_a_server_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    ledger = replay(target(address), at(0, 0.1))
    assert outcomes(ledger) == [Outcome.OTHER] * 2
    assert all(status == 0 for status, _ in ledger.failures)


def test_the_end_waits_for_the_classes_that_matter_and_no_longer():
    def slow_bulk(number, connection):
        if b'"priority"' in server.bodies[number]:
            time.sleep(0.4)
            connection.sendall(OK)

    with serving(slow_bulk) as server:
        begun = time.monotonic()
        ledger = replay(target(server.address), at(0, 0.2, bulk=[0], duration=0.3), settle=["online"], grace_s=120)
        assert time.monotonic() - begun < 60
    assert outcomes(ledger) == [Outcome.UNANSWERED, Outcome.SUCCESS]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_was_scheduled_is_what_the_server_got(processes):
    two = {"X": np.ones((2, 4), np.float32)}
    schedule = poisson([ClassLoad("online", 100), ClassLoad("bulk", 200)], 1.5, 11, payloads=2)
    with serving(after(0.01, OK)) as server:
        ledger = replay(target(server.address, [X, two]), schedule, processes=processes)
    assert len(ledger) == len(schedule) == server.received
    np.testing.assert_array_equal(ledger.scheduled, schedule.at)
    np.testing.assert_array_equal(ledger.rows, schedule.payload + 1)
    assert outcomes(ledger) == [Outcome.SUCCESS] * len(schedule)
    urgent = sum(b'"priority"' in body for body in server.bodies)
    assert urgent == np.count_nonzero(schedule.class_index == 0)
    assert 0 < ledger.cpu_seconds < 10 * 1.5 * processes


def test_a_generator_that_falls_behind_says_so():
    schedule = poisson([ClassLoad("online", 100)], 1.5, 1)
    with serving(after(0, OK)) as server:
        # Where the machine holds the generator up, it falls behind by itself.
        assert any(replay(target(server.address), schedule).lateness(0.5) < 0.05 for _ in range(5))
        with load.begin(target(server.address), schedule, grace_s=60) as running:
            [generator] = multiprocessing.active_children()
            assert generator.pid is not None
            os.kill(generator.pid, signal.SIGSTOP)
            time.sleep(max(running.start - time.monotonic_ns(), 0) / SECOND + 0.5)
            os.kill(generator.pid, signal.SIGCONT)
            stopped = running.result()
    assert stopped.lateness() > 0.3
    # What came late is not forgiven: latency counts from the schedule.
    assert ((stopped.done - stopped.scheduled) / SECOND).max() > 0.3
    assert outcomes(stopped) == [Outcome.SUCCESS] * len(schedule)


def test_closed_loop_keeps_the_number_in_flight():
    with (
        serving(after(0.05, OK)) as server,
        load.begin_closed(target(server.address), "online", 4, 3.0, grace_s=60) as running,
    ):
        ledger = running.result()
    assert len(ledger) == server.received
    assert ledger.connections == 4
    assert 240 / 10 <= len(ledger) <= 240 + 4
    for moment in np.linspace(0.2e9, 2.9e9, 60):
        assert np.count_nonzero((ledger.sent <= moment) & (ledger.done > moment)) <= 4
    # The last may have been decided upon in time and sent a little later.
    assert np.count_nonzero(ledger.scheduled >= ledger.duration) <= 4
    assert outcomes(ledger) == [Outcome.SUCCESS] * len(ledger)


def test_closed_loop_gives_up_on_a_silent_server():
    with (
        serving(lambda number, connection: None) as server,
        load.begin_closed(target(server.address), "online", 2, 0.2, grace_s=0.2) as running,
    ):
        assert outcomes(running.result()) == [Outcome.UNANSWERED] * 2


def test_a_caller_gives_up_and_the_others_do_not_notice():
    variants = {"online": [Variant(X, patience_s=0.05), Variant(X)]}

    def answer(number, connection):
        time.sleep(0.4)
        with contextlib.suppress(OSError):  # nobody listens any more
            connection.sendall(OK)

    schedule = replace(at(*np.linspace(0, 0.3, 6)), payload=np.arange(6) % 2)
    with serving(answer) as server:
        ledger = replay(target(server.address, variants=variants), schedule)
    assert outcomes(ledger) == [Outcome.CANCELLED, Outcome.SUCCESS] * 3
    waited = (ledger.done - ledger.scheduled)[::2]
    assert (waited >= 0.05 * SECOND).all()
    assert ledger.failures == {}


def test_several_closed_loops_send_what_is_next_by_turns():
    variants = {name: [Variant({"X": np.full((1, 4), value, np.float32)})] for name, value in values().items()}
    turns = Schedule(tuple(values()), np.zeros(3, int), np.array([0, 1, 0]), np.zeros(3, int), SECOND // 2)
    with serving(after(0.02, OK)) as server:
        one = target(server.address, variants=variants)
        with load.begin_turns([(one, turns, 3), (one, turns, 1)], grace_s=60) as running:
            ledger = running.result()
    assert ledger.processes == 2
    assert ledger.connections == 4
    sent = {
        name: sum(np.frombuffer(body[-4:], np.float32)[0] == value for body in server.bodies)
        for name, value in values().items()
    }
    assert sent == {name: np.count_nonzero(ledger.class_index == index) for index, name in enumerate(values())}
    # Either loop may end within a turn of three.
    assert abs(sent["online"] - 2 * sent["bulk"]) <= 4


def values():
    return {"online": 1, "bulk": 2}


def test_a_payload_that_looks_like_an_id_is_sent_as_it_is():
    text = {"X": np.array([["0" * 16]], dtype=object)}
    with serving(after(0, OK)) as server:
        with load.begin_closed(target(server.address, [text]), "online", 1, 0.1, grace_s=60) as running:
            running.result()
        assert {body[-16:] for body in server.bodies} == {b"0" * 16}


@pytest.mark.parametrize(("expected", "outcome"), [((777).to_bytes(8, "little"), 0), (b"778", 5)])
def test_an_answer_that_is_wrong_is_told(expected, outcome):
    variants = {"online": [Variant(X, answer=expected)]}
    with serving(after(0, with_queue_time("0" * 16))) as server:
        ledger = replay(target(server.address, variants=variants), at(0), queue_time=True)
    assert outcomes(ledger) == [Outcome(outcome)]
    assert [text for _, text in ledger.failures] == ["the reply holds a wrong answer"] * (outcome == Outcome.OTHER)


def with_queue_time(request_id):
    outputs = [{"name": "ROUTER_QUEUE_US", "parameters": {"binary_data_size": 8}}]
    header = json.dumps({"id": request_id, "outputs": outputs}).encode()
    return reply(200, header + (777).to_bytes(8, "little")).replace(
        b"Content-Length", b"Inference-Header-Content-Length: %d\r\nContent-Length" % len(header)
    )


def test_the_routers_queue_time_is_read_where_it_is_wanted():
    whole = with_queue_time("0" * 16)
    with serving(after(0, whole)) as server:
        assert replay(target(server.address), at(0), queue_time=True).queue_us.tolist() == [777]
        assert replay(target(server.address), at(0)).queue_us.tolist() == [-1]


def test_a_queue_time_counts_only_for_the_request_of_its_id():
    with serving(after(0, with_queue_time("0" * 15 + "7"))) as server:
        ledger = replay(target(server.address), at(0), queue_time=True)
    assert outcomes(ledger) == [Outcome.OTHER]
    assert ledger.queue_us.tolist() == [-1]
    [(_, text)] = ledger.failures
    assert "id of another request" in text


def test_a_broken_target_is_an_error_and_not_an_empty_ledger():
    broken = target("127.0.0.1:1", [{"X": np.zeros((1, 1), dtype=complex)}])
    with pytest.raises(load.LoadError, match="complex"):
        replay(broken, at(0))


def test_what_the_client_can_do_alone_is_measured():
    """Every reply of the endpoint was read as a router's, with the request's own id, or there were no number."""
    for rows in (1, 20_000):
        top = client_rate.measured({"X": np.ones((rows, 4), np.float32)})
        assert top.rate > 50
        assert 0 < top.cpu < 2
