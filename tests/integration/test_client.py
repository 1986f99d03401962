# SPDX-License-Identifier: Apache-2.0
"""How people call it: as_class with every kind of client, the examples, and the lines of docs/clients.md."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from magika import Magika
from numpy.typing import NDArray
from priority_router.client import as_class
from priority_router.ops.demo import filetype
from support import clients
from support.fleet import eventually
from support.shipped import MODELS, ROOT
from tritonclient.utils import InferenceServerException

SCRIPT = b"#!/bin/sh\nset -eu\necho hello\n"
KINDS = {
    "http": tritonclient.http,
    "grpc": tritonclient.grpc,
    "http.aio": tritonclient.http.aio,
    "grpc.aio": tritonclient.grpc.aio,
}

# For machines without curl: what the example and the guide ask of it, and nothing else.
CURL = """#!{python}
import sys, urllib.error, urllib.request
words = sys.argv[1:]
url = next(word for word in words if word.startswith("http://"))
headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "--header")
data = next(words[at + 1] for at, word in enumerate(words) if word in ("--data", "--data-binary"))
body = sys.stdin.buffer.read() if data == "@-" else data.encode()
try:
    answer = urllib.request.urlopen(urllib.request.Request(url, body, headers))
except urllib.error.HTTPError as error:
    print(error.read().decode())
    sys.exit(22)
print(answer.read().decode())
"""


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    return start_server(MODELS, log=tmp_path_factory.mktemp("shipped") / "server.log")


def answered(server):
    """Class to requests answered by the router."""
    found = {}
    for sample, value in clients.metrics(server.metrics).items():
        if sample.startswith("priority_router_requests_total") and 'outcome="success"' in sample:
            (name,) = re.findall('class="([^"]*)"', sample)
            found[name] = value
    return found


def tensors(module, model):
    """One row for the router or for the ensemble around it, without a class."""
    if model == "router":
        features = filetype.load_rule(MODELS).features_of_bytes(SCRIPT)
        assert features is not None
        row: NDArray[Any] = features[None]
        tensor = module.InferInput("bytes", list(row.shape), "INT32")
    else:
        row = np.array([[SCRIPT]], object)
        tensor = module.InferInput("content", [1, 1], "BYTES")
    tensor.set_data_from_numpy(row)
    return [tensor]


def infer(server, kind, model, **arguments):
    """One call with a client of its own; the result's id."""
    address = server.http if kind.startswith("http") else server.grpc

    async def awaited():
        async with KINDS[kind].InferenceServerClient(address) as client:
            return await client.infer(model, tensors(KINDS[kind], model), **arguments)

    if kind.endswith("aio"):
        result = asyncio.run(awaited())
    else:
        with KINDS[kind].InferenceServerClient(address) as client:
            result = client.infer(model, tensors(KINDS[kind], model), **arguments)
    response = result.get_response()
    return response.get("id", "") if isinstance(response, dict) else response.id


@pytest.mark.parametrize("model", ["router", "file_type"])
@pytest.mark.parametrize("kind", KINDS)
class TestAsClass:
    """The class arrives with every client, at the router itself and through an ensemble (case of docs/clients.md)."""

    def test_it_counts_as_that_class_and_comes_back_with_its_id(self, server, kind, model):
        before = answered(server)
        call = as_class("online")
        assert infer(server, kind, model, **call) == call["request_id"]
        eventually(lambda: answered(server)["online"] == before["online"] + 1)
        assert answered(server)["background"] == before["background"]

    def test_an_unknown_class_is_refused_by_its_name(self, server, kind, model):
        with pytest.raises(InferenceServerException, match="class 'vip' is unknown"):
            infer(server, kind, model, **as_class("vip"))

    def test_without_it_the_default_class_counts(self, server, kind, model):
        before = answered(server)
        assert infer(server, kind, model) == ""
        eventually(lambda: answered(server)["background"] == before["background"] + 1)


@pytest.fixture
def path_with_curl(tmp_path):
    if shutil.which("curl") is None:
        (tmp_path / "curl").write_text(CURL.format(python=sys.executable))
        (tmp_path / "curl").chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def run(*words, path=None):
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment, timeout=300)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    large = tmp_path_factory.mktemp("files") / "large.py"
    script = (ROOT / "scripts" / "results.py").read_bytes()
    large.write_bytes(script * (1 + 3 * 8192 // len(script)))
    assert large.stat().st_size > 3 * 8192
    return [ROOT / "LICENSE", ROOT / "scripts" / "setup", ROOT / "pyproject.toml", large]


@pytest.fixture(scope="module")
def expected(files):
    magika = Magika()
    predictions = [magika.identify_path(path).prediction for path in files]
    return [f"{path}: {one.output.label} {one.score:.1%}" for path, one in zip(files, predictions, strict=True)]


class TestExamples:
    """examples/: each as it stands."""

    @pytest.mark.parametrize("kind", ["http", "grpc"])
    def test_clients_print_what_magika_says(self, server, files, expected, kind):
        command = [sys.executable, ROOT / "examples" / f"{kind}_client.py", "--address", getattr(server, kind)]
        before = answered(server)
        done = run(*command, *files)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == expected
        asked = len(files) if kind == "http" else 1
        eventually(lambda: answered(server)["online"] == before["online"] + asked)

        refused = run(*command, "--class", "vip", files[0])
        assert refused.returncode == 1
        assert "class 'vip' is unknown" in refused.stderr

    def test_curl(self, server, files, expected, path_with_curl):
        for path, line in zip(files, expected, strict=True):
            done = run(ROOT / "examples" / "curl.sh", path, "online", server.http, path=path_with_curl)
            assert done.returncode == 0, done.stderr
            answer = {output["name"]: output["data"][0] for output in json.loads(done.stdout)["outputs"]}
            assert f"{path}: {answer['label']} {answer['score']:.1%}" == line
        refused = run(ROOT / "examples" / "curl.sh", files[0], "vip", server.http, path=path_with_curl)
        assert refused.returncode == 22
        assert "class 'vip' is unknown" in refused.stdout

    def test_perf_analyzers_file_is_one_row_of_every_input_for_each_request(self, server):
        document = json.loads((ROOT / "examples" / "perf_analyzer.json").read_text())
        magika = Magika()
        with tritonclient.http.InferenceServerClient(server.http) as client:
            inputs = {entry["name"]: entry for entry in client.get_model_config("file_type")["input"]}
            for row in document["data"]:
                assert set(row) == set(inputs)
                made = []
                for name, values in row.items():
                    assert len(values) == np.prod(inputs[name]["dims"])
                    made.append(tritonclient.http.InferInput(name, [1, len(values)], "BYTES"))
                    made[-1].set_data_from_numpy(np.array([values], object))
                label = client.infer("file_type", made).as_numpy("label")[0, 0].decode()
                assert label == str(magika.identify_bytes(row["content"][0].encode()).output.label)


def blocks(language, document="docs/clients.md"):
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert found
    return found


class TestGuide:
    """The lines of docs/clients.md, as they stand but for the server's ports."""

    def test_python(self, server):
        said = []
        for block in blocks("python"):
            script = block.replace("127.0.0.1:8000", server.http).replace("127.0.0.1:8001", server.grpc)
            done = run(sys.executable, "-c", script)
            assert (done.returncode, done.stderr) == (0, "")
            said.append(done.stdout)
        assert re.match(r"[0-9a-f]{32} \[\[b'shell'\]\]", said[0])
        assert re.fullmatch(r"\[b'\w+', b'\w+'\]\n", said[1])

    def test_curl(self, server, path_with_curl):
        for block in blocks("console"):
            command = block.removeprefix("$ ").replace("127.0.0.1:8000", server.http)
            done = run("bash", "-c", command, path=path_with_curl)
            assert done.returncode == 0, done.stderr
            answer = {output["name"]: output["data"] for output in json.loads(done.stdout)["outputs"]}
            assert answer["label"] == ["shell"]
            assert answer["score"][0] > 0.5


class TestReadme:
    """Likewise of README.md."""

    def test_python(self, server):
        (block,) = blocks("python", "README.md")
        done = run(sys.executable, "-c", block.replace("127.0.0.1:8000", server.http))
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"\[\[b'shell'\]\] \[\[\d+\]\]\n", done.stdout)

    def test_curl_and_what_it_prints(self, server, path_with_curl):
        (block,) = [block for block in blocks("console", "README.md") if block.startswith("$ curl ")]
        command, printed = block.removeprefix("$ ").replace("127.0.0.1:8000", server.http).rstrip("\n").rsplit("\n", 1)
        done = run("bash", "-c", command, path=path_with_curl)
        assert done.returncode == 0, done.stderr
        pattern = ".*?".join(re.escape(part) for part in printed.split("…"))
        assert re.fullmatch(pattern, done.stdout.rstrip("\n")), done.stdout

    def test_probe_and_what_it_prints(self, server):
        (printed,) = re.findall(
            r"\$ priority-router probe --class online\n *(\S.*)\n", (ROOT / "README.md").read_text()
        )
        url = f"http://{server.http}"
        done = run(sys.executable, "-m", "priority_router.ops.cli", "probe", "--class", "online", "--url", url)
        assert done.returncode == 0
        before, after = printed.replace("http://127.0.0.1:8000", url).split("…")
        assert re.fullmatch(rf"{re.escape(before)}\d+{re.escape(after)}", (done.stdout + done.stderr).rstrip("\n"))
