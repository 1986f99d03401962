# SPDX-License-Identifier: Apache-2.0
"""A server that is started by hand, with what `install` wrote and printed."""

import os
import re
import shutil
import subprocess
import time

import pytest
from priority_router.ops import cli
from priority_router.ops.server import children, installation, readiness
from support.clients import Call, client
from support.fleet import PATIENCE_SECONDS
from support.models import write_pair
from support.serving import READY_SECONDS, free_ports

HOST = "127.0.0.1"


@pytest.fixture
def triton():
    found = installation.find()
    if not found.embedded:
        pytest.fail("this test is written for the embedded server")
    return found


def test_the_printed_lines_make_a_working_router(triton, tmp_path, capsys):
    backends = tmp_path / "backends"
    (backends / "python").mkdir(parents=True)
    for part in (triton.backends / "python").glob("*.*"):
        shutil.copy(part, backends / "python")
    shutil.copy(triton.stub, backends / "python")
    record = write_pair(tmp_path / "repository")

    assert cli.main(["install", str(backends)]) == 0
    printed = capsys.readouterr().out
    preload = re.search(r"LD_PRELOAD=(\S+)", printed)
    assert preload is not None
    assert f"--backend-directory={backends}" in printed

    http, grpc, metrics = free_ports()
    environment = {
        **os.environ,
        "PATH": f"{triton.python.parent}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": ":".join(map(str, triton.libraries)),
        "LD_PRELOAD": preload[1],
        "PRIORITY_ROUTER_GUARDED_MODELS": "executor=router",
    }
    prefix = f"priority_router_test_{os.getpid()}_"
    command = [
        triton.binary,
        f"--model-repository={tmp_path / 'repository'}",
        f"--backend-directory={backends}",
        f"--backend-config=python,shm-region-prefix-name={prefix}",
        *(f"--{name}-address={HOST}" for name in ("http", "grpc", "metrics")),
        f"--http-port={http}",
        f"--grpc-port={grpc}",
        f"--metrics-port={metrics}",
    ]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while readiness.ready_status(HOST, http) != 200:
            assert server.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.05)
        with client(f"{HOST}:{grpc}") as sender:
            reply = sender.infer("router", Call(tag=3, traffic_class="interactive"))
            direct = sender.infer("executor", Call(tag=4))
    finally:
        children.kill_all(server.pid, time.monotonic() + PATIENCE_SECONDS)
        server.wait(PATIENCE_SECONDS)
        for name in os.listdir("/dev/shm"):
            if name.startswith(prefix):
                os.unlink(f"/dev/shm/{name}")
    assert reply.code == "OK", reply.message
    assert not direct.ok
    assert "router" in direct.message
    assert record.tags() == [3]
