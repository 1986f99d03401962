# SPDX-License-Identifier: Apache-2.0
"""The recording executor and the clients do what other tests take for granted."""

import numpy as np
import pytest
from support.clients import Call, client, pending
from support.fleet import eventually
from support.models import EXTRA, TAG, TEXT, ErrorReply, Executor, X, write_executor


@pytest.fixture(scope="module")
def system(start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("support") / "repository"
    repository.mkdir()
    batched = Executor(
        batch_seconds=0.02,
        inputs=(X, TAG, TEXT, EXTRA),
        error_tags={7: ErrorReply("no luck", "INVALID_ARG")},
        wrong_rows_tags=(8,),
    )
    record = write_executor(repository, batched)
    write_executor(repository, Executor("single", max_batch_size=0, priority_levels=0))
    return start_server(repository, hooks=False), record


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_answers_and_record(system, protocol):
    server, record = system
    record.forget()
    text = {"TEXT": np.array([[b"a"], [b""]], object)}
    with client(getattr(server, protocol), protocol) as sender:
        reply = sender.infer("executor", Call(tag=3, rows=2, inputs=text, parameters={"note": "x"}, request_id="r"))
        failed = sender.infer("executor", Call(tag=7))
    assert reply.code == "OK", reply.message
    np.testing.assert_array_equal(reply.outputs["Y"], np.full((2, 4), 6, np.float32))
    assert reply.outputs["TEXT_OUT"].tolist() == [[b"a"], [b""]]
    assert "EXTRA_OUT" not in reply.outputs
    assert failed.code in ("INVALID_ARGUMENT", "400")
    assert "no luck" in failed.message
    first, second = record.batches()
    assert (first.tags, first.rows, first.inputs) == ([3, 3], [2], [["TAG", "TEXT", "X"]])
    assert second.tags == [7]
    assert first.end - first.start >= 0.02


def test_settings_act_on_tags(system):
    server, record = system
    record.forget()
    with client(server.grpc) as sender:
        short = sender.infer("executor", Call(tag=8, rows=2, outputs=["Y"]))
    assert not short.ok or short.outputs["Y"].shape == (1, 4)
    assert record.tags() == [8, 8]


def test_a_shut_door_holds_what_begins_until_it_is_opened(system):
    server, record = system
    record.forget()
    with client(server.grpc) as sender:
        with record.shut():
            held = sender.send("executor", Call(tag=9, rows=3))
            eventually(lambda: record.held_rows() == 3)
            waiting = sender.send("executor", Call(tag=10))
            eventually(lambda: pending(server.metrics, "executor") == 1)
            assert (record.held(), record.tags()) == (1, [])
            assert not held.done()
        assert held.result().ok
        assert waiting.result().ok
    assert (record.held(), record.tags()) == (0, [9, 9, 9, 10])


def test_without_batch_axis(system):
    server, _ = system
    with client(server.http, "http") as sender:
        reply = sender.infer("single", Call(tag=2, rows=0))
    assert reply.outputs["Y"].tolist() == [4, 4, 4, 4]
