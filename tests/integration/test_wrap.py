# SPDX-License-Identifier: Apache-2.0
"""Models as people have them, wrapped, then served by the real server and asked through their routers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from priority_router.ops.lint import check
from priority_router.ops.wrap import command, copying
from support import clients, models, onnx_models
from support.bare_models import IDENTITY, model, snapshot
from support.clients import Call
from support.fleet import MODES, eventually
from support.models import Executor, Record
from support.serving import serving

CLASSES = ("--class", "online:1,max_queue=64,timeout=60s,override", "--class", "background:2,max_queue=256,timeout=90s")
ONE = "instance_group { kind: KIND_CPU count: 1 }\n"
COMPLETED = f'backend: "onnxruntime"\nmax_batch_size: 4\n{ONE}'
LABELLED = f"""{COMPLETED}
input [ < name: 'X', data_type: 11, dims: [ 2, 2 ], reshape: {{ shape: [ 4 ] }} >; ]
output {{ name: "Y" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "names/labels.txt" }}
""".replace(">; ]", "> ];")
ROUTED = ("recorder", "unbatched", "double", "wide", "completed", "labelled", "direct")


def wrap(*words: object, folder: Path | None = None) -> str:
    """Runs the command as a user does, in a folder; gives what it printed, ends of lines untouched."""
    command = [sys.executable, "-m", "priority_router.ops.cli", "wrap", *map(str, words)]
    done = subprocess.run(command, capture_output=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@dataclass(frozen=True)
class Wrapped:
    """A server over wrapped models.

    Attributes:
        mode: of all routers.
        http: its address.
        repository: of the models.
        said: what wrap printed, by the model's name.
        record: what the recorder ran.
        client: over gRPC.
        native: likewise, of tritonclient.
    """

    mode: str
    http: str
    metrics: str
    repository: Path
    said: dict[str, str]
    record: Record
    client: clients.Client
    native: tritonclient.grpc.InferenceServerClient


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wrapped]:
    folder = tmp_path_factory.mktemp("wrapped")
    bare, repository = folder / "bare", folder / "repository"
    record = models.write_executor(bare, Executor("recorder", batch_seconds=0.05, batching=""))
    models.write_executor(bare, Executor("unbatched", max_batch_size=0, batching=""))
    models.write_executor(repository, Executor("direct", batching="# None, so far.\n"))
    onnx_models.doubling(bare / "double.onnx")
    onnx_models.doubling(bare / "wide.onnx", ("n", 2000))
    onnx_models.summing(model(bare / "completed", COMPLETED) / "1" / "model.onnx")
    onnx_models.doubling(model(bare / "labelled", LABELLED, {"names/labels.txt": "a\nb\nc\nd\n"}) / "1" / "model.onnx")
    plain = ["--plain"] if request.param == "plain" else []
    said = {}
    for name in ROUTED:
        bare_file = bare / f"{name}.onnx"
        source = repository / name if name == "direct" else bare_file if bare_file.exists() else bare / name
        more = ["--executor-policies"] if name == "direct" and not plain else plain
        said[name] = wrap(source, "--into", repository, *CLASSES, *more)
    with serving(folder, "--model-repository", repository) as server:
        http, grpc, metrics = server.ready()
        with clients.client(grpc, concurrency=64) as client, tritonclient.grpc.InferenceServerClient(grpc) as native:
            yield Wrapped(request.param, http, metrics, repository, said, record, client, native)


def tensor(name: str, array: clients.Array) -> tritonclient.grpc.InferInput:
    made = tritonclient.grpc.InferInput(name, list(array.shape), "FP32")
    made.set_data_from_numpy(array)
    return made


def test_what_wrap_wrote_is_clean(system):
    assert [str(found) for found in check.check([system.repository]).found] == []
    assert [line for said in system.said.values() for line in said.splitlines() if line.startswith("Lint")] == []


def test_urgent_work_overtakes_the_backlog(system):
    def held() -> float:
        return clients.held_by_router(system.metrics, "recorder_router")

    system.record.forget()
    eventually(lambda: held() == 0)
    with system.record.shut():
        bulk = [system.client.send("recorder_router", Call(tag=tag, traffic_class="background")) for tag in range(40)]
        eventually(lambda: held() == 40)
        fast = [system.client.send("recorder_router", Call(tag=tag, class_parameter="online")) for tag in (1000, 1001)]
        eventually(lambda: held() == 42)
        going_on = time.monotonic()
    replies = [future.result() for future in [*bulk, *fast]]
    assert [reply.message for reply in replies if not reply.ok] == []
    assert sorted(system.record.tags()) == [*range(40), 1000, 1001]
    batches = system.record.batches()
    last = max(batch.start for batch in batches if {1000, 1001} & set(batch.tags))
    assert sum(going_on < batch.start < last and not {1000, 1001} & set(batch.tags) for batch in batches) <= 2


def test_without_a_batch_axis(system):
    reply = system.client.infer("unbatched_router", Call(tag=3, rows=0, traffic_class="online"))
    assert reply.ok, reply.message
    assert reply.outputs["Y"].tolist() == [6.0] * 4
    assert reply.outputs["ROUTER_QUEUE_US"].shape == (1,)


@pytest.mark.parametrize(
    ("name", "rows", "wanted"),
    [("double", 20, [[2.0, 4.0, 6.0, 8.0]]), ("completed", 5, [[10.0]])],
)
def test_onnx_models_bare_and_completed_by_the_server(system, name, rows, wanted):
    row = np.array([[1, 2, 3, 4]], np.float32)
    reply = system.client.infer(f"{name}_router", Call(inputs={"X": np.repeat(row, rows, axis=0)}))
    assert reply.ok, reply.message
    assert reply.outputs["Y"].tolist() == wanted * rows


def test_labels_and_reshaped_inputs(system):
    values = np.array([[[1, 9], [5, 3]]], np.float32)
    asked = [tritonclient.grpc.InferRequestedOutput("Y", class_count=2)]
    result = system.native.infer("labelled_router", [tensor("X", values)], outputs=asked)
    assert result.as_numpy("Y").tolist() == [[b"18.000000:1:b", b"10.000000:2:c"]]


@pytest.mark.parametrize("name", ROUTED)
def test_the_printed_request_works(system, name):
    (line,) = [
        line.strip() for line in system.said[name].splitlines() if "| curl " in line or line.startswith("  curl ")
    ]
    line = line.replace("127.0.0.1:8000", system.http)
    answer = json.loads(subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout)
    assert {"ROUTER_QUEUE_US", "ROUTER_EXECUTOR_US"} <= {output["name"] for output in answer["outputs"]}, answer


def test_the_model_itself_is_closed_unless_its_levels_have_limits_of_their_own(system):
    refused = system.client.infer("recorder", Call())
    assert "call model 'recorder_router' instead" in refused.message
    reply = system.client.infer("direct", Call())
    with urllib.request.urlopen(f"http://{system.http}/v2/models/direct/config") as page:
        batching = json.load(page)["dynamic_batching"]
    if system.mode == "plain":
        assert "call model 'direct_router' instead" in reply.message
        assert int(batching.get("priority_levels", 0)) == 0
        return
    assert reply.ok
    assert (batching["priority_levels"], batching["default_priority_level"]) == (2, 2)
    first = batching["priority_queue_policy"]["1"]
    assert (first["max_queue_size"], int(first["default_timeout_microseconds"])) == (64, 60_000_000)
    assert first["allow_timeout_override"]


def test_a_server_that_polls_takes_the_models_up_and_meets_nothing_else(start_server, tmp_path, monkeypatch):
    """Folders under construction would be models to it, which it fails to load."""
    repository = tmp_path / "repository"
    models.write_executor(repository, Executor("first", priority_levels=0))
    polling = ["--model-control-mode=poll", "--repository-poll-secs=1"]
    server = start_server(repository, log=tmp_path / "log", extra_args=polling)
    place_files = copying.place_files

    def slowly(*arguments: Any) -> None:
        place_files(*arguments)
        time.sleep(2.5)  # long enough for a poll

    monkeypatch.setattr(copying, "place_files", slowly)
    command.main([str(onnx_models.doubling(tmp_path / "double.onnx")), "--into", str(repository), *CLASSES])
    with clients.client(server.grpc) as client:
        call = Call(inputs={"X": np.ones((1, 4), np.float32)})
        eventually(lambda: client.infer("double_router", call).ok)
    log = (tmp_path / "log").read_text()
    assert [fault for fault in ("Poll failed", "failed to load", ".priority-router-wrap-") if fault in log] == []


def test_the_printed_diff_is_what_would_be_written(tmp_path):
    """With CRLF, without a final line end, over a block that is there already."""
    text = (IDENTITY + "dynamic_batching {\n  max_queue_delay_microseconds: 9\n}").replace("\n", "\r\n")
    for name in ("shown", "written"):
        model(tmp_path / name / "model", text)
    diff = wrap("shown/model", "--into", "shown", *CLASSES, "--dry-run", folder=tmp_path)
    wrap("written/model", "--into", "written", *CLASSES, folder=tmp_path)
    subprocess.run(["patch", "--binary", "-p0"], input=diff.encode(), check=True, capture_output=True, cwd=tmp_path)

    def contents(folder: Path) -> dict[str, bytes]:
        return {name: item[1] for name, item in snapshot(folder).items() if not name.endswith(".orig")}

    assert contents(tmp_path / "shown") == contents(tmp_path / "written")
