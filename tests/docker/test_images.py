# SPDX-License-Identifier: Apache-2.0
"""The two images: built, run as a user would, asked, and stopped. Needs a container engine; pulls the base images.

scripts/test --all runs this where an engine answers, and says so where none does.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException
from docker.models.containers import Container
from docker.models.images import Image

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DOCKERFILES = {"gpu": "Dockerfile", "cpu": "deploy/cpu/Dockerfile"}
READY_SECONDS = 600.0
GRACE_SECONDS = 150
"""Ten times what `serve` promises to stop in: then the engine kills it, and its exit code says so."""


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    client, fault = None, None
    try:
        client = docker.from_env(timeout=1800)
        client.ping()
    except DockerException as error:
        fault = error
    if client is None or fault is not None:
        pytest.fail(f"no container engine answers ({fault}); leave these tests out with -m 'not docker'", pytrace=False)
    yield client
    client.close()


@pytest.fixture(scope="module", params=DOCKERFILES)
def image(request: pytest.FixtureRequest, engine: docker.DockerClient) -> Iterator[Image]:
    tag = f"triton-priority-router-test:{request.param}"
    built, _ = engine.images.build(path=str(ROOT), dockerfile=DOCKERFILES[request.param], tag=tag, rm=True)
    yield built
    engine.images.remove(tag, force=True)


@contextmanager
def running(engine: docker.DockerClient, image: Image, **options: Any) -> Iterator[Container]:
    """A container with the shipped models and the restrictions of compose.yaml; gone at the end of the block."""
    options |= {
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "shm_size": "1g",
        "ports": {"8000/tcp": ("127.0.0.1", None)},
        "volumes": {str(ROOT / "model_repository"): {"bind": "/models", "mode": "ro"}},
    }
    container = engine.containers.run(image, detach=True, **options)
    try:
        yield container
    finally:
        container.remove(force=True)


def said(container: Container) -> str:
    return container.logs().decode(errors="replace")


def inside(container: Container, *words: str) -> tuple[int | None, str]:
    status, output = container.exec_run([*words])
    assert isinstance(output, bytes)
    return status, output.decode(errors="replace")


def until_healthy(container: Container) -> None:
    """Asks what the image's own health check asks; not every engine runs that by itself."""
    container.reload()
    kind, *check = container.attrs["Config"]["Healthcheck"]["Test"]
    assert kind == "CMD"
    deadline = time.monotonic() + READY_SECONDS
    while inside(container, *check)[0] != 0:
        container.reload()
        assert container.status == "running", said(container)
        assert time.monotonic() < deadline, said(container)
        time.sleep(0.5)


def ask(container: Container, model: str) -> tuple[int, dict[str, Any]]:
    """One request from outside, as class online: HTTP status and answer."""
    container.reload()
    (place,) = container.ports["8000/tcp"] or []
    assert place["HostIp"] == "127.0.0.1"
    content = {"name": "bytes", "datatype": "INT32", "shape": [1, 2048], "data": [0] * 2048}
    body = json.dumps({"inputs": [content], "parameters": {"class": "online"}}).encode()
    url = f"http://127.0.0.1:{place['HostPort']}/v2/models/{model}/infer"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize("init", [True, False], ids=["init", "no init"])
def test_it_serves_the_mounted_models_without_root_and_stops_in_time(
    engine: docker.DockerClient, image: Image, init: bool
) -> None:
    with running(engine, image, init=init) as container:
        until_healthy(container)
        assert re.search(r"^ready http=\S+:8000 grpc=\S+:8001 metrics=\S+:8002$", said(container), re.MULTILINE)
        status, answer = ask(container, "router")
        assert (status, answer["outputs"][0]["shape"]) == (200, [1, 214]), answer
        status, answer = ask(container, "executor")
        assert (status, "call model 'router' instead" in answer["error"]) == (400, True), answer
        assert inside(container, "id", "-u")[1].strip() == "1000"
        container.stop(timeout=GRACE_SECONDS)
        container.reload()
        assert container.attrs["State"]["ExitCode"] == 0, said(container)
        assert "was killed" not in said(container)


def test_arguments_reach_serve_and_through_it_tritonserver(engine: docker.DockerClient, image: Image) -> None:
    words = ["--metrics-port=0", "--", "--allow-grpc=false"]
    with running(engine, image, command=words) as container:
        until_healthy(container)
        assert re.search(r"^ready http=\S+:8000 grpc=off metrics=\S+$", said(container), re.MULTILINE)


def test_without_models_it_ends_with_the_reason(engine: docker.DockerClient, image: Image) -> None:
    container = engine.containers.run(image, detach=True)
    try:
        assert container.wait(timeout=300)["StatusCode"] == 1
        assert "model repository /models: no such folder" in said(container)
    finally:
        container.remove(force=True)


@pytest.mark.parametrize("image", ["gpu"], indirect=True)
def test_on_nvidias_base_nothing_is_installed_but_the_backend_and_the_command(
    engine: docker.DockerClient, image: Image
) -> None:
    question = "import importlib.util as u; print([n for n in ('pytriton', 'priority_router') if u.find_spec(n)])"
    words = ["-c", f'python3 -c "{question}"; ls /opt/tritonserver/backends/priority_router']
    answer = engine.containers.run(image, words, entrypoint="sh", remove=True).decode()
    assert answer.split() == ["[]", "hooks", "model.py", "priority_router"]
