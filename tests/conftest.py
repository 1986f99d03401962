# SPDX-License-Identifier: Apache-2.0
"""Markers come from folders; unit and conformance tests may not touch sockets, processes or the clock's patience."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest
from support import models
from support.server import System, routed, running

_ROOT = Path(__file__).parent
_PURE = {"unit", "conformance"}
_LONGEST_END_SECONDS = 10.0

# How long an example takes, and making it, is the machine's affair.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    # Shells start background jobs with SIGINT ignored, and what a test starts would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for folder in sorted(_ROOT.iterdir()):
        if folder.is_dir() and folder.name not in ("support", "__pycache__"):
            config.addinivalue_line("markers", f"{folder.name}: tests in tests/{folder.name}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_ROOT):
            item.add_marker(item.path.relative_to(_ROOT).parts[0])


@pytest.fixture(autouse=True)
def _pure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes a unit test fail that opens a socket, starts a process, sleeps, or leaves a thread behind."""
    if not _PURE & {marker.name for marker in request.node.iter_markers()}:
        yield
        return

    def forbidden(what: str) -> Callable[..., NoReturn]:
        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            pytest.fail(f"a unit test may not {what}; put the test into tests/integration or tests/hooks", pytrace=True)

        return refuse

    monkeypatch.setattr(socket.socket, "connect", forbidden("open a connection"))
    monkeypatch.setattr(socket.socket, "bind", forbidden("bind a socket"))
    monkeypatch.setattr(subprocess, "Popen", forbidden("start a process"))
    monkeypatch.setattr(time, "sleep", forbidden("sleep"))
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("priority")]
    for thread in left:
        thread.join(_LONGEST_END_SECONDS)
        assert not thread.is_alive(), f"{thread.name} still runs, and would beside every test that follows"


@pytest.fixture(scope="module")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Starts a server over a repository (`support.server.running`); it ends with the module."""
    with ExitStack() as stack:
        yield lambda repository, **options: stack.enter_context(running(repository, **options))


@pytest.fixture(scope="module")
def start_routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., System]]:
    """Starts a router with its executor (`support.server.routed`, without the folder); it ends with the module."""
    with ExitStack() as stack:

        def start(
            router: models.Router | None = None, executor: models.Executor | None = None, **options: Any
        ) -> System:
            folder = tmp_path_factory.mktemp("routed")
            return stack.enter_context(routed(folder, router, executor, **options))

        yield start
