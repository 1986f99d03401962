# SPDX-License-Identifier: Apache-2.0
"""What is published: wheel and sdist, installed into empty environments that know nothing of this clone.

Needs the package index, like scripts/setup. Every Python of 3.11 and 3.12 that is found is tried.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from priority_router import __version__
from priority_router.ops.cli import COMMANDS
from support.serving import serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NAME = "triton_priority_router"
MINOR_VERSIONS = ((3, 11), (3, 12))
REMEDY = re.compile(r"run: (\S+ -m pip install 'triton-priority-router\[(\w+)\]')\n")

CALL = """
import sys
import numpy as np
import tritonclient.grpc
import tritonclient.http
from priority_router.client import as_class

for triton, address in zip((tritonclient.http, tritonclient.grpc), sys.argv[1:], strict=True):
    content = triton.InferInput("bytes", [1, 2048], "INT32")
    content.set_data_from_numpy(np.zeros((1, 2048), np.int32))
    result = triton.InferenceServerClient(address).infer("router", [content], **as_class("online"))
    print(result.as_numpy("target_label").shape, result.as_numpy("ROUTER_QUEUE_US").shape)
"""


def pythons() -> dict[str, str]:
    """Minor version to interpreter: the running one, and others on PATH or kept by pyenv."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob("*/bin/python3"))
    candidates = [sys.executable, *(f"python{major}.{minor}" for major, minor in MINOR_VERSIONS), *map(str, kept)]
    found: dict[str, str] = {}
    for candidate in candidates:
        question = [candidate, "-c", "import ensurepip, sys; print(*sys.version_info[:2])"]
        try:
            said = subprocess.run(question, capture_output=True, text=True, check=True).stdout.split()
        except (OSError, subprocess.CalledProcessError):
            continue
        if tuple(map(int, said)) in MINOR_VERSIONS:
            found.setdefault(".".join(said), candidate)
    return found


PYTHONS = pythons()


@dataclass(frozen=True)
class Built:
    """The files that would be published, and the wheel that a user gets from the sdist."""

    sdist: Path
    wheel: Path
    wheel_of_sdist: Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment, in a folder of its own."""

    root: Path

    @property
    def python(self) -> Path:
        return self.root / "bin" / "python"

    @property
    def program(self) -> Path:
        return self.root / "bin" / "priority-router"

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, words)], cwd=self.root, env=outside(), capture_output=True, text=True, check=False
        )


def outside() -> dict[str, str]:
    """This process's environment without what leads into the clone."""
    made = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    made["PATH"] = os.pathsep.join(folder for folder in made["PATH"].split(os.pathsep) if str(ROOT) not in folder)
    return made


def checked(*words: object) -> str:
    done = subprocess.run([*map(str, words)], cwd="/", env=outside(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout


def environment(folder: Path, python: str, *requirements: str) -> Environment:
    checked(python, "-m", "venv", folder)
    made = Environment(folder)
    checked(made.python, "-m", "pip", "install", "--quiet", *requirements)
    assert str(ROOT) not in checked(made.python, "-c", "import priority_router; print(priority_router.__file__)")
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-d", folder / "dist"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    checked(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder / "again", sdist)
    (again,) = (folder / "again").glob("*.whl")
    return Built(sdist, wheel, again)


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory):
    """The wheel without extras."""
    return environment(tmp_path_factory.mktemp("bare") / "venv", sys.executable, str(built.wheel))


@pytest.fixture(scope="module", params=list(PYTHONS.values()), ids=list(PYTHONS))
def full(request, built, tmp_path_factory):
    """The wheel with what the README asks for."""
    folder = tmp_path_factory.mktemp("full") / "venv"
    return environment(folder, request.param, f"{built.wheel}[embedded,tools]")


def contents(wheel: Path) -> dict[str, str]:
    """Name to digest."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def test_the_sdist_builds_the_same_wheel(built):
    one, other = contents(built.wheel), contents(built.wheel_of_sdist)
    # The library holds the path it was compiled in, and RECORD the library's digest.
    differ = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    assert {name for name in differ if not name.endswith((".so", "/RECORD"))} == set()
    assert one.keys() == other.keys()


def test_the_wheel_holds_the_package_and_the_backends_and_nothing_else(built):
    found = contents(built.wheel)
    package = {
        f"priority_router/{path.relative_to(ROOT / 'backends/priority_router/priority_router')}"
        for path in (ROOT / "backends/priority_router/priority_router").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    backend = {"libpriority_router_hooks.so", "model.py", "onnxruntime/model.py"}
    assert "priority_router/py.typed" in package
    assert {name for name in found if ".dist-info/" not in name} == package | {
        f"priority_router/_backend/{name}" for name in backend
    }
    assert built.wheel.name.startswith(f"{NAME}-{__version__}-py3-none-linux_")


def test_the_sdist_leaves_out_what_is_copied_in_or_built(built):
    with tarfile.open(built.sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"LICENSE", "README.md", "scripts/hatch_build.py", "model_repository/router/1/policy.toml"} <= set(names)
    assert [
        name for name in names if name.endswith((".so", ".pyc", ".onnx")) or name.startswith((".venv", ".git/"))
    ] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_without_extras_a_command_explains_itself_or_names_what_it_needs(bare, name):
    done = bare.run(bare.program, name, "--help")
    if done.returncode:
        assert (done.returncode, done.stdout) == (1, "")
        assert REMEDY.search(done.stderr), done.stderr
        assert done.stderr.count("\n") == 1
    else:
        assert f"priority-router {name}" in done.stdout


def remedy(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """The command that a failed one tells its user to run, and the extra in it."""
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    found = REMEDY.search(done.stderr.splitlines(keepends=True)[-1])
    assert found, done.stderr
    return found[1], found[2]


def test_bench_without_a_server_names_the_extra(bare):
    assert remedy(bare.run(bare.program, "bench", "overload", "--json", "results.json"))[1] == "embedded"


SKIPPED = re.compile(r"priority-router serve: lint was skipped: it needs the package protobuf; .*\n")


@pytest.mark.parametrize(
    ("words", "extra", "package"),
    [
        (["serve", "--model-repository", ROOT / "model_repository"], "embedded", "nvidia-pytriton"),
        (["probe", "--url", "grpc://127.0.0.1:9"], "tools", "tritonclient"),
    ],
    ids=["serve", "probe"],
)
def test_without_extras_the_printed_remedy_is_one_that_pip_takes(bare, words, extra, package):
    done = bare.run(bare.program, *words)
    before, skipped, _ = done.stderr.rpartition("\n")[0].rpartition("\n")
    assert SKIPPED.fullmatch(before + skipped) if "serve" in words else before == "", done.stderr
    command, named = remedy(done)
    assert named == extra
    pip = bare.run(*shlex.split(command), "--dry-run", "--quiet", "--report", "-")
    assert pip.returncode == 0, pip.stderr
    wanted = {item["metadata"]["name"].lower() for item in json.loads(pip.stdout)["install"]}
    assert package in wanted
    assert "triton-priority-router" not in wanted, "pip would fetch another one from the index"


def test_without_extras_lint_names_its_own_and_says_that_nothing_was_checked(bare):
    done = bare.run(bare.program, "lint", ROOT / "model_repository")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    found = REMEDY.search(done.stderr)
    assert found, done.stderr
    assert found[2] == "tools"
    assert bare.run(bare.program, "lint", "--explain", "PR101").stdout.startswith("PR101: ")


def test_without_extras_the_rest_works(bare):
    assert bare.run(bare.program, "--version").stdout == f"priority-router {__version__}\n"
    folder = bare.root / "backends"
    installed = bare.run(bare.program, "install", folder)
    assert installed.returncode == 0, installed.stderr
    assert f"LD_PRELOAD={folder}/priority_router/hooks/libpriority_router_hooks.so" in installed.stdout
    probe = bare.run(bare.program, "probe", "--url", "http://127.0.0.1:9", "--timeout", "2")
    assert (probe.returncode, probe.stderr.count("\n")) == (1, 1)
    assert "refused" in probe.stderr
    sweep = bare.run(bare.program, "sweep", "--url", "http://127.0.0.1:9")
    assert (sweep.returncode, sweep.stderr.count("\n"), "refused" in sweep.stderr) == (1, 1, True)
    example = ROOT / "examples" / "simulate"
    load = ["--policy", example / "policy.toml", "--profile", example / "profile.json", "--rate", "online=20"]
    simulated = bare.run(bare.program, "simulate", *load, "--seconds", "5")
    assert (simulated.returncode, simulated.stderr, "online" in simulated.stdout) == (0, "", True)
    assert bare.run(bare.python, "-c", "import priority_router.client").stderr == ""


def test_serve_install_and_clients_work(full, tmp_path):
    repository = tmp_path / "model_repository"
    shutil.copytree(ROOT / "model_repository", repository, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    program = [full.program]
    with serving(tmp_path, "--model-repository", repository, environment=outside(), program=program) as command:
        http, grpc, _ = command.ready()
        for url in (f"http://{http}", f"grpc://{grpc}"):
            probe = full.run(full.program, "probe", "--timeout", "60", "--url", url, "--class", "online")
            assert probe.returncode == 0, probe.stderr
        call = full.run(full.python, "-c", CALL, http, grpc)
        assert (call.stdout, call.stderr) == (2 * "(1, 214) (1, 1)\n", "")
    backends = tmp_path / "backends"
    assert full.run(full.program, "install", backends).returncode == 0
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    library = backends / "priority_router" / "hooks" / "libpriority_router_hooks.so"
    assert full.run(full.python, "-c", load, library).stderr == ""
    compiled = full.run(full.python, "-m", "compileall", "-q", backends)
    assert compiled.returncode == 0, compiled.stdout


def test_bench_works(full, tmp_path):
    target = tmp_path / "results.json"
    brief = ["--arms", "router", "--rounds", "1", "--duration", "3", "--warmup", "0.5"]
    done = full.run(full.program, "bench", "overload", "--json", target, *brief)
    assert done.returncode == 0, done.stderr
    assert json.loads(target.read_text())["arms"]["router"]["classes"]["online"]["rows_per_s"]["median"] > 0


def test_type_checkers_see_the_types(full, tmp_path):
    (tmp_path / "user.py").write_text("from priority_router.config import load_policy\n\nreveal_type(load_policy)\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", full.python, "--cache-dir", os.devnull]
    said = subprocess.run(
        [*command, "user.py"], cwd=tmp_path, env=outside(), capture_output=True, text=True, check=False
    )
    assert 'Revealed type is "def (path: ' in said.stdout, said.stdout
    assert "RouterPolicy" in said.stdout
    assert "error" not in said.stdout
