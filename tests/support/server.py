# SPDX-License-Identifier: Apache-2.0
"""Runs real servers for tests: started once per module, killed at its end, their logs beside their repositories."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from priority_router.ops.server import Server

from support import models

READY_SECONDS = 600.0
"""A busy machine loads many models in minutes."""


@contextlib.contextmanager
def running(repository: Path, **options: Any) -> Iterator[Server]:
    """A server over a repository, ready when the block begins; ended at once, without the seconds of an orderly stop.

    Args:
        repository: the model repository; the log becomes ``<repository>.log``.
        options: keyword arguments of `Server`.
    """
    log = repository.with_name(repository.name + ".log")
    with Server(repository, **{"log": log, "ready_timeout": READY_SECONDS, **options}) as server:
        yield server


@dataclass(frozen=True)
class System:
    """A router, its executor, and the server they run in."""

    server: Server
    record: models.Record
    router: models.Router
    executor: models.Executor


@contextlib.contextmanager
def routed(
    folder: Path, router: models.Router | None = None, executor: models.Executor | None = None, **options: Any
) -> Iterator[System]:
    """A server with one router and one recording executor.

    Args:
        folder: an empty folder.
        router: default one in levels mode with an interactive and a bulk class.
        executor: default one without any delay.
        options: keyword arguments of `Server`.
    """
    router = router or models.Router()
    executor = executor or models.Executor()
    repository = folder / "repository"
    repository.mkdir(parents=True)
    record = models.write_pair(repository, router, executor)
    with running(repository, **{"hooks": router.mode == "levels", **options}) as server:
        yield System(server, record, router, executor)
