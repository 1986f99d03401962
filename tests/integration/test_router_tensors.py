# SPDX-License-Identifier: Apache-2.0
"""What goes in comes out: every shape and kind of tensor, alone, joined and split, with and without a batch axis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clients import Array, Call, Reply, client
from support.fleet import MODES, Fleet, eventually, fleet
from support.models import BULK, EXTRA, INTERACTIVE, TAG, TEXT, ErrorReply, Executor, Router, Tensor, X

ANY_X = Tensor("X", "TYPE_FP32", (-1,))
ANY_TEXT = Tensor("TEXT", "TYPE_STRING", (-1,), optional=True)
TIMINGS = ["ROUTER_EXECUTOR_US", "ROUTER_QUEUE_US"]

BLOCKING_TAG = 99
ROWS = 4

RICH = Executor("rich", inputs=(X, TAG, TEXT, EXTRA), wrong_rows_tags=(777,), batch_seconds=0.03)
ANY = Executor("any", inputs=(ANY_X, TAG, ANY_TEXT), batch_seconds=0.03)
SINGLE = Executor("single", max_batch_size=0, inputs=(ANY_X, TAG, ANY_TEXT), batch_seconds=0.03)
LARGE = Executor(
    "large", batch_seconds=0.01, error_tags={7: ErrorReply("part broken", "INVALID_ARG")}, inputs=(X, TAG, TEXT)
)

ENSEMBLE = """
name: "around"
platform: "ensemble"
max_batch_size: 16
input [ { name: "RAW" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "WHO" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "DONE" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "WAITED" data_type: TYPE_INT64 dims: [ 1 ] } ]
ensemble_scheduling { step [ {
  model_name: "router_rich" model_version: -1
  input_map { key: "X" value: "RAW" } input_map { key: "CLASS" value: "WHO" }
  output_map { key: "Y" value: "DONE" } output_map { key: "ROUTER_QUEUE_US" value: "WAITED" }
} ] }
"""


def write_ensemble(repository: Path) -> None:
    (repository / "around" / "1").mkdir(parents=True)
    (repository / "around" / "config.pbtxt").write_text(ENSEMBLE)


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    routers = [(Router(f"router_{executor.name}"), executor) for executor in (RICH, ANY, SINGLE, LARGE)]
    folder = tmp_path_factory.mktemp("tensors")
    with fleet(folder, request.param, routers, more=write_ensemble) as made:
        for record in made.records.values():
            record.forget()
        yield made


@pytest.fixture(params=["grpc", "http"])
def infer(system: Fleet, request: pytest.FixtureRequest) -> Iterator[Any]:
    with client(getattr(system.server, request.param), request.param) as sender:
        yield sender.infer


def at_once(system: Fleet, model: str, calls: list[Call]) -> list[Reply]:
    """Sends calls behind one that keeps the executor busy, so that all but those of one dispatch can be joined."""
    record = system.records[model.removeprefix("router_")]
    system.rests(model)
    with record.shut():
        blocker = system.client.send(model, Call(tag=BLOCKING_TAG, inputs=calls[0].inputs, rows=calls[0].rows))
        eventually(lambda: record.held() == 1)
        futures = [system.client.send(model, call) for call in calls]
        eventually(lambda: waiting(system, model) >= len(calls) - ROWS)
    assert blocker.result().ok, blocker.result().message
    return [future.result() for future in futures]


def waiting(system: Fleet, model: str) -> float:
    return sum(system.metric("queue_size", model, **{"class": name}) for name in (INTERACTIVE, BULK))


def numbers(rows: int, width: int, start: int = 0) -> Array:
    return np.arange(start, start + rows * width, dtype=np.float32).reshape(rows, width)


def test_every_output_comes_with_timings_per_row(infer: Any) -> None:
    inputs = {"X": numbers(3, 4), "TEXT": np.array([[b"a"], [b""], [b"\xff\0"]], object)}
    reply = infer("router_rich", Call(tag=3, rows=3, traffic_class=INTERACTIVE, inputs=inputs))
    assert reply.ok, reply.message
    assert sorted(reply.outputs) == [*TIMINGS, "TAG_OUT", "TEXT_OUT", "Y"]
    np.testing.assert_array_equal(reply.outputs["Y"], 2 * inputs["X"])
    assert reply.outputs["TEXT_OUT"].tolist() == inputs["TEXT"].tolist()
    assert reply.outputs["TAG_OUT"].tolist() == [[3], [3], [3]]
    for name in TIMINGS:
        assert reply.outputs[name].shape == (3, 1)
        assert reply.outputs[name].dtype == np.int64
    assert (reply.outputs["ROUTER_EXECUTOR_US"] >= 30_000).all()
    assert (reply.outputs["ROUTER_QUEUE_US"] >= 0).all()
    assert (reply.outputs["ROUTER_QUEUE_US"] + reply.outputs["ROUTER_EXECUTOR_US"] <= reply.seconds * 1e6).all()


@pytest.mark.parametrize("outputs", [["Y"], ["TAG_OUT", "ROUTER_QUEUE_US"], ["ROUTER_EXECUTOR_US"], TIMINGS])
def test_a_client_gets_the_outputs_it_lists(infer: Any, outputs: list[str]) -> None:
    reply = infer("router_rich", Call(tag=1, rows=2, outputs=outputs))
    assert reply.ok, reply.message
    assert sorted(reply.outputs) == sorted(outputs)


def test_callers_with_different_outputs_share_a_batch(system: Fleet) -> None:
    wanted = [["Y"], ["TAG_OUT"], ["ROUTER_QUEUE_US"], None]
    calls = [Call(tag=tag, outputs=outputs) for tag, outputs in enumerate(wanted)]
    replies = at_once(system, "router_rich", calls)
    assert [sorted(reply.outputs) for reply in replies] == [
        ["Y"],
        ["TAG_OUT"],
        ["ROUTER_QUEUE_US"],
        [*TIMINGS, "TAG_OUT", "Y"],
    ]
    assert replies[1].outputs["TAG_OUT"].tolist() == [[1]]


def test_each_caller_gets_its_own_rows(system: Fleet) -> None:
    system.records["rich"].forget()
    calls = [
        Call(
            tag=tag,
            rows=1 + tag % 3,
            traffic_class=(INTERACTIVE, BULK)[tag % 2],
            inputs={"X": numbers(1 + tag % 3, 4, 100 * tag)},
        )
        for tag in range(40)
    ]
    for call, reply in zip(calls, at_once(system, "router_rich", calls), strict=True):
        assert reply.ok, reply.message
        np.testing.assert_array_equal(reply.outputs["Y"], 2 * call.inputs["X"])
        assert reply.outputs["TAG_OUT"].tolist() == [[call.tag]] * call.rows
    assert max(len(set(batch.tags)) for batch in system.records["rich"].batches()) > 1, "nothing was joined"


def test_optional_inputs_are_neither_mixed_nor_invented(system: Fleet) -> None:
    system.records["rich"].forget()
    text, extra = {"TEXT": np.array([[b"t"]], object)}, {"EXTRA": np.ones((1, 2), np.float32)}
    kinds: list[dict[str, Array]] = [{}, text, extra, {**text, **extra}]
    calls = [Call(tag=tag, inputs=kinds[tag % 4]) for tag in range(24)]
    replies = at_once(system, "router_rich", calls)
    for call, reply in zip(calls, replies, strict=True):
        assert reply.ok, reply.message
        expected = {"Y", "TAG_OUT", *TIMINGS} | {name + "_OUT" for name in call.inputs}
        assert set(reply.outputs) == expected
    for batch in system.records["rich"].batches():
        for rows, names in zip(batch.rows, batch.inputs, strict=True):
            assert names in [sorted({"X", "TAG", *kind}) for kind in kinds]
            assert rows <= 4
    largest = max(rows for batch in system.records["rich"].batches() for rows in batch.rows)
    assert largest > 1, "nothing was joined"


def test_unequal_shapes_are_never_joined(system: Fleet) -> None:
    """Case 12: lengths 7 and 9 in one class; neither fails the other."""
    system.records["any"].forget()
    calls = [Call(tag=tag, inputs={"X": numbers(1, (7, 9)[tag % 2], tag)}) for tag in range(24)]
    for call, reply in zip(calls, at_once(system, "router_any", calls), strict=True):
        assert reply.ok, reply.message
        np.testing.assert_array_equal(reply.outputs["Y"], 2 * call.inputs["X"])
    batches = [[tag for tag in batch.tags if tag != BLOCKING_TAG] for batch in system.records["any"].batches()]
    assert all(len({tag % 2 for tag in tags}) <= 1 for tags in batches)
    assert max(map(len, batches)) > 1, "nothing was joined"


EMPTY = np.zeros((1, 0), np.float32)
EMPTY_TEXT = np.zeros((1, 0), object)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_empty_tensors_pass_alone_and_joined(system: Fleet, protocol: str) -> None:
    """Case 31."""
    with client(getattr(system.server, protocol), protocol) as sender:
        alone = sender.infer("router_any", Call(tag=1, inputs={"X": EMPTY, "TEXT": EMPTY_TEXT}))
    assert alone.ok, alone.message
    assert (alone.outputs["Y"].shape, alone.outputs["Y"].dtype) == ((1, 0), np.float32)
    assert alone.outputs["TEXT_OUT"].shape == (1, 0)
    system.records["any"].forget()
    # More than the router sends alone to learn what a few rows take.
    sizes = (2, 1, 1) * 6
    calls = [Call(tag=tag, rows=rows, inputs={"X": np.zeros((rows, 0), np.float32)}) for tag, rows in enumerate(sizes)]
    for call, reply in zip(calls, at_once(system, "router_any", calls), strict=True):
        assert reply.ok, reply.message
        assert reply.outputs["Y"].shape == (call.rows, 0)
        assert reply.outputs["TAG_OUT"].tolist() == [[call.tag]] * call.rows
    assert any(len(set(batch.tags)) > 1 for batch in system.records["any"].batches())


def test_no_rows_of_no_width_never_reach_the_router_and_harm_nobody(system: Fleet) -> None:
    """Triton takes such a request and answers nothing, whatever the model."""
    nothing = Call(rows=0, inputs={"X": np.zeros((0, 0), np.float32)})
    lost = system.client.send("router_any", nothing, timeout=1)
    replies = at_once(system, "router_any", [Call(tag=tag, inputs={"X": numbers(1, 4)}) for tag in range(4)])
    assert all(reply.ok for reply in replies)
    assert lost.result().code == "DEADLINE_EXCEEDED"
    assert system.metric("requests_total", "router_any", **{"class": "_none", "outcome": "invalid"}) == 0


def test_texts_of_any_bytes_and_length_pass_joined(system: Fleet) -> None:
    texts = [b"", b"x" * 70_000, bytes(range(256)), "größe".encode(), b"\0\0"]
    calls = [Call(tag=tag, inputs={"TEXT": np.array([[text]], object)}) for tag, text in enumerate(texts)]
    for text, reply in zip(texts, at_once(system, "router_rich", calls), strict=True):
        assert reply.ok, reply.message
        assert reply.outputs["TEXT_OUT"].tolist() == [[text]]


def test_an_oversized_request_is_split_and_comes_back_whole(infer: Any, system: Fleet) -> None:
    """Case 14: 10 rows and 33 rows on an executor that takes 4."""
    for rows in (10, 33):
        system.records["large"].forget()
        inputs = {"X": numbers(rows, 4), "TEXT": np.array([[b"%d" % row] for row in range(rows)], object)}
        # Of the most urgent class, whose dispatches are full whatever the router has learned of smaller ones.
        reply = infer("router_large", Call(tag=1, rows=rows, inputs=inputs, traffic_class=INTERACTIVE))
        assert reply.ok, reply.message
        np.testing.assert_array_equal(reply.outputs["Y"], 2 * inputs["X"])
        assert reply.outputs["TEXT_OUT"].tolist() == inputs["TEXT"].tolist()
        assert reply.outputs["ROUTER_QUEUE_US"].shape == (rows, 1)
        assert sum(sum(batch.rows) for batch in system.records["large"].batches()) == rows
        assert max(sum(batch.rows) for batch in system.records["large"].batches()) == 4


def test_neighbours_of_a_split_request_are_whole_too(system: Fleet) -> None:
    system.records["large"].forget()
    calls = [
        Call(tag=tag, rows=(10, 3)[tag % 2], inputs={"X": numbers((10, 3)[tag % 2], 4, 50 * tag)})
        for tag in range(8, 16)
    ]
    for call, reply in zip(calls, at_once(system, "router_large", calls), strict=True):
        assert reply.ok, reply.message
        np.testing.assert_array_equal(reply.outputs["Y"], 2 * call.inputs["X"])
    assert max(sum(batch.rows) for batch in system.records["large"].batches()) <= 4


def test_the_first_failing_part_ends_a_split_request(system: Fleet) -> None:
    tags = np.array([[1]] * 6 + [[7]] + [[1]] * 3, np.int64)
    calls = [Call(tag=2, rows=3), Call(tag=1, rows=10, inputs={"TAG": tags}), Call(tag=2, rows=3)]
    replies = at_once(system, "router_large", calls)
    assert not replies[1].ok
    assert "part broken" in replies[1].message


def test_a_request_above_the_routers_own_limit_is_refused_before_it_queues(infer: Any) -> None:
    reply = infer("router_large", Call(tag=1, rows=65))
    assert reply.code in ("INVALID_ARGUMENT", "400")
    assert "64" in reply.message


@pytest.mark.parametrize("shape", [(4,), (0,), (3,)])
def test_without_a_batch_axis_tensors_pass_as_they_are(infer: Any, shape: tuple[int, ...]) -> None:
    """Case 24."""
    inputs = {"X": np.arange(shape[0], dtype=np.float32), "TEXT": np.array([b"a", b""], object)}
    reply = infer("router_single", Call(tag=5, rows=0, traffic_class=INTERACTIVE, inputs=inputs))
    assert reply.ok, reply.message
    np.testing.assert_array_equal(reply.outputs["Y"], 2 * inputs["X"])
    assert reply.outputs["TEXT_OUT"].tolist() == [b"a", b""]
    assert reply.outputs["ROUTER_QUEUE_US"].shape == (1,)


def test_without_a_batch_axis_nothing_is_joined(system: Fleet) -> None:
    system.records["single"].forget()
    calls = [Call(tag=tag, rows=0, traffic_class=(BULK, INTERACTIVE)[tag % 2]) for tag in range(20)]
    replies = [future.result() for future in [system.client.send("router_single", call) for call in calls]]
    assert all(reply.ok for reply in replies)
    assert [reply.outputs["TAG_OUT"].tolist() for reply in replies] == [[tag] for tag in range(20)]
    assert all(batch.rows == [1] for batch in system.records["single"].batches())


def test_an_ensemble_may_have_the_router_as_a_step(system: Fleet, infer: Any) -> None:
    inputs = {"RAW": numbers(3, 4), "WHO": np.full((3, 1), b"interactive", object)}
    before = system.outcomes("router_rich")[INTERACTIVE, "success"]
    reply = infer("around", Call(rows=3, inputs=inputs, without=("X",)))
    assert reply.ok, reply.message
    np.testing.assert_array_equal(reply.outputs["DONE"], 2 * inputs["RAW"])
    assert reply.outputs["WAITED"].shape == (3, 1)
    eventually(lambda: system.outcomes("router_rich")[INTERACTIVE, "success"] > before)
    refused = infer(
        "around", Call(rows=1, inputs={"RAW": numbers(1, 4), "WHO": np.full((1, 1), b"x", object)}, without=("X",))
    )
    assert "class 'x' is unknown" in refused.message


def test_an_executor_that_loses_rows_is_an_error_and_harms_nobody(system: Fleet) -> None:
    reply = system.client.infer("router_rich", Call(tag=777, rows=2))
    assert not reply.ok
    assert system.client.infer("router_rich", Call(tag=1, rows=2)).ok
