# SPDX-License-Identifier: Apache-2.0
"""The hooks and the fakes, compiled once per run: as shipped, and with address and undefined-behaviour checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.hook_driver import Build, Driver, compile_all


@pytest.fixture(scope="session", params=["shipped", "sanitized"])
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder: Path = tmp_path_factory.mktemp("hooks")
    return compile_all(folder, sanitized=request.param == "sanitized")


@pytest.fixture
def start(build: Build) -> Iterator[Callable[..., Driver]]:
    """Starts a program of the build, with the hooks preloaded unless told otherwise; it ends with the test."""
    with ExitStack() as stack:

        def start(
            program: str = "driver",
            preload: bool = True,
            environment: Mapping[str, str] | None = None,
            **options: Any,
        ) -> Driver:
            driver = Driver(build.folder / program, build.preload if preload else "", environment, **options)
            return stack.enter_context(driver)

        yield start
