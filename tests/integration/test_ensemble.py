# SPDX-License-Identifier: Apache-2.0
"""The ensemble file_type on the real server: magika's own labels, and nothing lost between client and router."""

from __future__ import annotations

import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tritonclient.grpc
from magika import Magika
from priority_router.ops.demo import files, filetype
from support import made_files
from support.clients import held_by_router
from support.fleet import MODES, PATIENCE_SECONDS, eventually
from support.serving import serving
from support.shipped import MODELS, ROOT, ask, put_door, write_copy
from tritonclient.utils import InferenceServerException

LARGEST = 64
SCRIPT = b"#!/bin/sh\nset -eu\necho hello\n"
EXPLICIT = ["--model-control-mode=explicit", "--load-model=*"]


@pytest.fixture(scope="module")
def many_files(tmp_path_factory):
    """Name to content of files of many types: made ones, odd ones, and some of this repository and of Python."""
    found = {**made_files.made(tmp_path_factory.mktemp("made")), **made_files.odd()}
    folders = [ROOT, Path(sysconfig.get_paths()["stdlib"])]
    for sample in files.collect(folders, 60, 1, filetype.load_rule(MODELS)):
        found[str(sample.path)] = sample.path.read_bytes()
    return found


@pytest.fixture(scope="module")
def expected(many_files):
    """Name to what magika says: label and score."""
    magika = Magika()
    predictions = {name: magika.identify_bytes(content).prediction for name, content in many_files.items()}
    return {name: (str(one.output.label), one.score) for name, one in predictions.items()}


def test_the_files_are_of_many_types(expected):
    labels = {label for label, _ in expected.values()}
    assert len(labels - {"empty", "txt", "unknown"}) >= 45
    assert {"empty", "txt", "unknown"} < labels


@pytest.fixture(scope="module", params=MODES)
def server(request, start_server, tmp_path_factory):
    repository = write_copy(tmp_path_factory.mktemp("ensemble") / "models", request.param)
    return start_server(repository, hooks=request.param == "levels", extra_args=EXPLICIT)


@pytest.fixture
def client(server):
    with tritonclient.grpc.InferenceServerClient(server.grpc) as made:
        yield made


def check_labels(client, many_files, expected):
    """All files one by one, then many to a request."""
    for name, content in many_files.items():
        result = ask(client, [content], parameters={"class": "online"}, client_timeout=PATIENCE_SECONDS)
        label, score = result.as_numpy("label")[0, 0].decode(), result.as_numpy("score")[0, 0]
        assert (label, score) == (expected[name][0], pytest.approx(expected[name][1], abs=1e-4)), name
    names = list(many_files)
    for first in range(0, len(names), LARGEST):
        part = names[first : first + LARGEST]
        result = ask(client, [many_files[name] for name in part], client_timeout=PATIENCE_SECONDS)
        labels = [label.decode() for label in result.as_numpy("label").ravel()]
        assert dict(zip(part, labels, strict=True)) == {name: expected[name][0] for name in part}


class TestLabels:
    """Labels are those of magika, and come out of the executor."""

    def test_they_are_magikas(self, client, many_files, expected):
        check_labels(client, many_files, expected)

    def test_both_ends_of_a_large_file_are_enough(self, client, many_files, expected):
        large = {name: content for name, content in many_files.items() if len(content) > 8192}
        assert len(large) > 20
        ends = [content[:4096] + content[-4096:] for content in large.values()][:LARGEST]
        result = ask(client, ends, client_timeout=PATIENCE_SECONDS)
        labels = [label.decode() for label in result.as_numpy("label").ravel()]
        assert labels == [expected[name][0] for name in large][:LARGEST]

    def test_without_the_executor_there_are_none(self, client, many_files, expected):
        client.unload_model("executor")
        try:
            with pytest.raises(InferenceServerException, match="executor 'executor' is not serving") as refusal:
                check_labels(client, many_files, expected)
            assert refusal.value.status() == "StatusCode.UNAVAILABLE"
            with pytest.raises(InferenceServerException, match="executor 'executor' is not serving"):
                ask(client, [b""])
        finally:
            client.load_model("executor")
        check_labels(client, dict(list(many_files.items())[:2]), expected)


class TestRequests:
    """What a client may ask an ensemble with a router in it."""

    def test_the_routers_times_come_along_and_outputs_may_be_chosen(self, client):
        result = ask(client, [SCRIPT, b""])
        assert {output.name for output in result.get_response().outputs} == {
            "label",
            "score",
            "ROUTER_QUEUE_US",
            "ROUTER_EXECUTOR_US",
        }
        assert result.as_numpy("ROUTER_EXECUTOR_US").shape == (2, 1)
        assert (result.as_numpy("ROUTER_EXECUTOR_US") > 0).all()
        wanted = [tritonclient.grpc.InferRequestedOutput("label")]
        result = ask(client, [SCRIPT], outputs=wanted)
        assert [output.name for output in result.get_response().outputs] == ["label"]

    def test_more_rows_than_the_router_takes_are_refused(self, client):
        with pytest.raises(InferenceServerException, match="batch-size must be <= 64") as refusal:
            ask(client, [SCRIPT] * (LARGEST + 1))
        assert refusal.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_a_server_that_stops_answers_what_is_queued(tmp_path):
    models = write_copy(tmp_path / "models")
    executor = put_door(models)
    with serving(tmp_path, "--model-repository", models) as process:
        _, address, page = process.ready()
        with tritonclient.grpc.InferenceServerClient(address) as client, ThreadPoolExecutor(100) as pool:
            with executor.shut():
                calls = [pool.submit(ask, client, [SCRIPT], client_timeout=PATIENCE_SECONDS) for _ in range(100)]
                eventually(lambda: held_by_router(page) == len(calls))
                process.order()
                eventually(lambda: "draining: new requests are refused" in process.log)
                assert not any(call.done() for call in calls)
            assert {call.result().as_numpy("label")[0, 0] for call in calls} == {b"shell"}
        assert process.ended() == 0
