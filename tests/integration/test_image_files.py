# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile's own steps, carried out on a stand-in for NVIDIA's image, and the server started from the result.

The stand-in has the folders of NVIDIA's image, with the embedded server in them. What no stand-in can show, an engine
must: tests/docker.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from support.clients import Call, client
from support.dockerfile import build, context
from support.models import write_pair
from support.serving import serving
from support.stand_in import embedded, program, write_server

ROOT = Path(__file__).parents[2]
NVIDIA_IMAGE = "nvcr.io/nvidia/tritonserver:24.12-py3"
PYTHON_IMAGE = "python:3.12-slim-bookworm"
ENTRY = "/opt/nvidia/nvidia_entrypoint.sh"
HOME = "/opt/tritonserver"
LIBRARY = "priority_router/hooks/libpriority_router_hooks.so"


@pytest.fixture(scope="module")
def triton():
    return embedded()


@pytest.fixture(scope="module")
def environment(triton):
    """What the image's commands find: a Python, and a compiler in the build stage."""
    return {"PATH": f"{triton.python.parent}:/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}


@pytest.fixture(scope="module")
def base(triton, tmp_path_factory):
    root = tmp_path_factory.mktemp("base")
    write_server(root / HOME.lstrip("/"), triton)
    program(root / ENTRY.lstrip("/"), '#!/bin/sh\nexec "$@"\n')
    return root


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """The context of a clone whose owner lets nobody else read it."""
    folder = context(ROOT, tmp_path_factory.mktemp("sent"))
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    return folder


@pytest.fixture(scope="module")
def image(base, sent, tmp_path_factory, environment):
    built = build(ROOT / "Dockerfile", sent, {NVIDIA_IMAGE: base}, tmp_path_factory.mktemp("stages"), environment)
    for path in built.root.rglob("*"):
        if path.is_file() and (path.suffix == ".py" or path.parent.name == "bin"):
            path.write_text(path.read_text().replace(HOME, f"{built.root}{HOME}"))
    return built


def test_the_context_is_what_the_images_are_made_of(sent):
    files = {str(path.relative_to(sent)) for path in sent.rglob("*") if path.is_file()}
    backends = {str(path.relative_to(ROOT)) for path in (ROOT / "backends").rglob("*") if path.is_file()}
    sources = {name for name in backends if "__pycache__" not in name and not name.endswith(".so")}
    others = {"LICENSE", "README.md", "pyproject.toml", "scripts/hatch_build.py", "deploy/image/priority-router"}
    assert files == sources | others


def test_whoever_runs_it_may_read_what_was_added(image, base):
    before = {path.relative_to(base) for path in base.rglob("*")}
    added = [path for path in image.root.rglob("*") if path.relative_to(image.root) not in before]
    assert image.root / f"opt/tritonserver/backends/{LIBRARY}" in added
    for path in added:
        wanted = 0o755 if path.is_dir() or path.suffix == ".so" or path.name == "priority-router" else 0o644
        # Folders that COPY makes on the way are the engine's, as open as its own.
        if path.relative_to(image.root).parts[:2] != ("usr", "local") or path.is_file():
            assert (stat.S_IMODE(path.stat().st_mode), path.is_symlink()) == (wanted, False), path


def test_it_starts_nvidias_server_with_the_hooks_of_the_image_and_answers_the_health_check(
    image, environment, tmp_path
):
    assert image.settings["USER"] == "1000:1000"
    (tmp_path / "models").mkdir()
    write_pair(tmp_path / "models")
    path = f"{image.root}/usr/local/bin:{environment['PATH']}"
    entry, *words = image.words("ENTRYPOINT")
    assert (entry, words[:2], words[-1]) == (ENTRY, ["priority-router", "serve"], "--model-repository=/models")
    outside = {**environment, "PATH": path}
    options = [*words[2:-1], "--model-repository", tmp_path / "models"]
    start = [image.inside(entry), words[0]]
    with serving(tmp_path, *options, environment=outside, program=start) as command:
        http, grpc, _ = command.ready()
        maps = Path(f"/proc/{command.tritonserver()}/maps").read_text()
        assert f"{image.root}{HOME}/backends/{LIBRARY}" in maps
        assert f"{image.root}{HOME}/backends/python/libtriton_python.so" in maps
        with client(grpc) as sender:
            assert sender.infer("router", Call(tag=3, traffic_class="interactive")).code == "OK"
            assert "router" in sender.infer("executor", Call(tag=4)).message
        health = [*image.words("HEALTHCHECK"), "--url", f"http://{http}"]
        probe = subprocess.run(health, env=outside, capture_output=True, text=True, check=False)
        assert probe.returncode == 0, probe.stderr
        command.order()
        assert command.ended() == 0


@pytest.mark.slow
def test_the_cpu_image_builds_its_wheel_from_the_context(sent, environment, tmp_path):
    (tmp_path / "python").mkdir()
    (tmp_path / "stages").mkdir()
    first = re.split(r"\n(?=FROM)", (ROOT / "deploy/cpu/Dockerfile").read_text())
    (tmp_path / "Dockerfile").write_text("\n".join(first[:2]))
    bases = {PYTHON_IMAGE: tmp_path / "python"}
    stage = build(tmp_path / "Dockerfile", sent, bases, tmp_path / "stages", {**os.environ, **environment})
    assert len(stage.ran) == 1
    assert [path.suffix for path in (stage.root / "wheels").iterdir()] == [".whl"]
