# SPDX-License-Identifier: Apache-2.0
"""docs/existing-server.md, as it stands: its commands put a router into a plain tritonserver, in both modes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from priority_router.ops.server import children, ports, readiness
from support import models
from support.clients import Call, client, held_by_router
from support.fleet import PATIENCE_SECONDS, eventually
from support.server import READY_SECONDS
from support.stand_in import ARGUMENTS_ENV, embedded, write_server

DOCUMENT = Path(__file__).parents[2] / "docs" / "existing-server.md"
BLOCK = re.compile(r"<!-- tested: (?P<name>[\w-]+) -->\n```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)
BLOCKS = {found["name"]: found["text"] for found in BLOCK.finditer(DOCUMENT.read_text())}
COMMON = {"places", "backend", "router", "levels", "plain", "plain-policy", "check", "control", "drain"}
HOST = "127.0.0.1"
EXECUTOR = models.Executor("classifier", inputs=(models.X,), priority_levels=0)


class Steps:
    """Runs the document's blocks with places and ports of this test."""

    def __init__(self, folder: Path) -> None:
        triton = embedded()
        self.folder = folder
        self.models = folder / "models"
        self.control = folder / "control"
        self.ports: list[int] = []
        for _ in range(3):
            self.ports.append(ports.pick_free(HOST, self.ports))
        self.prefix = f"priority_router_test_{os.getpid()}_"
        own = [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), self.ports, strict=True)]
        own += [f"--{name}-address={HOST}" for name in ("http", "grpc", "metrics")]
        own.append(f"--backend-config=python,shm-region-prefix-name={self.prefix}")
        # That of NVIDIA's server is its own by default.
        own.append(f"--backend-directory={folder / 'triton' / 'backends'}")
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            ARGUMENTS_ENV: " ".join(own),
        }
        self.models.mkdir()
        write_server(folder / "triton", triton)

    @property
    def http(self) -> str:
        return f"{HOST}:{self.ports[0]}"

    @property
    def grpc(self) -> str:
        return f"{HOST}:{self.ports[1]}"

    def script(self, *names: str) -> list[str]:
        """Blocks, one after the other, in one shell that stops at the first failure."""
        text = "".join(BLOCKS[name] for name in names)
        for documented, port in zip((8000, 8001, 8002), self.ports, strict=True):
            text = text.replace(f":{documented}", f":{port}")
        places = f"TRITON={self.folder / 'triton'}\nMODELS={self.models}\nCONTROL={self.control}\n"
        return ["bash", "-euc", places + text]

    def run(self, *names: str) -> str:
        done = subprocess.run(
            self.script(*names), env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{names}: {done.stdout}{done.stderr}"
        return done.stdout

    def configure(self, executor: models.Executor, mode: str) -> models.Record:
        """Sections 1 to 3, on a repository that already holds the model."""
        record = models.write_executor(self.models, executor)
        self.run("backend", "router")
        config = self.models / "classifier" / "config.pbtxt"
        assert config.read_text().count("dynamic_batching { }\n") == 1
        config.write_text(config.read_text().replace("dynamic_batching { }\n", BLOCKS[mode]))
        if mode == "plain":
            self.run("plain-policy")
        return record

    @contextmanager
    def server(self, *names: str) -> Iterator[int]:
        """The server that the last block starts, serving; gives its process id."""
        with (self.folder / "log").open("wb") as output:
            process = subprocess.Popen(
                self.script(*names), env=self.environment, stdout=output, stderr=output, start_new_session=True
            )
        try:
            deadline = time.monotonic() + READY_SECONDS
            while readiness.ready_status(HOST, self.ports[0]) != 200:
                assert process.poll() is None, self.log
                assert time.monotonic() < deadline, self.log
                time.sleep(0.05)
            yield process.pid
        finally:
            children.kill_all(process.pid, time.monotonic() + PATIENCE_SECONDS)
            process.wait(PATIENCE_SECONDS)
            for name in os.listdir("/dev/shm"):
                if name.startswith(self.prefix):
                    os.unlink(f"/dev/shm/{name}")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://{HOST}:{self.ports[2]}/metrics") as page:
            (value,) = re.findall(rf"^{name}{{[^}}]*}} (\S+)$", page.read().decode(), re.MULTILINE)
        return float(value)


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path)


def test_every_block_is_known_here_and_every_command_of_the_document_is_in_a_block():
    assert set(BLOCKS) == COMMON | {"start-levels", "start-plain"}
    assert len(re.findall(r"^```\w", DOCUMENT.read_text(), re.MULTILINE)) == len(BLOCKS)
    assert set(re.findall(r"\w+(?==/)", BLOCKS["places"])) == {"TRITON", "MODELS", "CONTROL"}


def test_whoever_reads_from_top_to_bottom_has_made_what_a_block_needs():
    before_the_start, after_it = ["places", "backend", "router", "levels", "control"], ["check", "drain"]
    in_order = [name for name in BLOCKS if name in {*before_the_start, "start-levels", *after_it}]
    assert in_order == [*before_the_start, "start-levels", *after_it]
    assert list(BLOCKS).index("control") < list(BLOCKS).index("start-plain")


@pytest.mark.parametrize("mode", ["levels", "plain"])
def test_the_steps_make_a_working_router(steps, mode):
    record = steps.configure(EXECUTOR, mode)
    with steps.server("control", f"start-{mode}") as pid:
        preloaded = "libpriority_router_hooks" in Path(f"/proc/{pid}/maps").read_text()
        checked = steps.run("check")
        with client(steps.grpc) as sender:
            reply = sender.infer("router", Call(traffic_class="online"))
            direct = sender.infer("classifier", Call())
        assert reply.code == "OK", reply.message
        if mode == "levels":
            eventually(lambda: steps.metric("priority_router_hook_priorities_set_total") == 2)
    (guard,) = re.findall(r"^priority_router_guard_active\{.*\} (\d)$", checked, re.MULTILINE)
    assert "answered in" in checked
    if mode == "levels":
        assert (preloaded, guard, direct.ok) == (True, "1", False)
        assert "call model 'router' instead" in direct.message
        assert len(record.batches()) == 2
    else:
        assert (preloaded, guard, direct.ok) == (False, "0", True)
        assert len(record.batches()) == 3


def test_levels_without_the_preloaded_library_is_refused_with_the_reason(steps):
    steps.configure(EXECUTOR, "levels")
    with pytest.raises(AssertionError, match="needs hooks that this server does not have"), steps.server("start-plain"):
        pass


def test_before_the_signal_what_is_queued_is_served_and_new_requests_are_refused(steps):
    record = steps.configure(EXECUTOR, "levels")
    with steps.server("control", "start-levels"), client(steps.grpc) as sender:
        with record.shut():
            calls = [sender.send("router", Call(traffic_class="online")) for _ in range(3)]
            eventually(lambda: held_by_router(f"{HOST}:{steps.ports[2]}") == len(calls))
            draining = subprocess.Popen(steps.script("drain"), env=steps.environment)
            eventually(lambda: "draining: new requests are refused" in steps.log)
            assert sender.infer("router", Call(traffic_class="online")).code == "UNAVAILABLE"
            assert draining.poll() is None, "it did not wait for what is queued"
        assert draining.wait(PATIENCE_SECONDS) == 0
        assert [pending.result().code for pending in calls] == ["OK"] * 3
