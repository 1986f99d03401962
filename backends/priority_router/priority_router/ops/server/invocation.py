# SPDX-License-Identifier: Apache-2.0
"""What tritonserver is given: its arguments and its environment. Pure: values in, values out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.control import CONTROL_DIR_ENV
from priority_router.hooks import GUARDED_MODELS_ENV, format_guarded_models
from priority_router.ops.server.arguments import Passed

EXIT_TIMEOUT_SECONDS: Final = 5
"""How long tritonserver itself waits for requests in flight when it is stopped; the drain comes before."""


@dataclass(frozen=True)
class Addresses:
    """Where a server listens: an IPv4 address, and a port for each of ``http``, ``grpc`` and ``metrics`` that is on."""

    host: str
    ports: Mapping[str, int]

    @property
    def client_host(self) -> str:
        """The address that a client on this machine connects to."""
        return "127.0.0.1" if self.host == "0.0.0.0" else self.host

    def of(self, purpose: str) -> str | None:
        """``host:port`` for clients on this machine; None when that service is off."""
        return f"{self.client_host}:{self.ports[purpose]}" if purpose in self.ports else None


def server_arguments(
    repositories: Sequence[Path],
    backends: Path,
    addresses: Addresses,
    *,
    pool: int,
    region_prefix: str,
    passed: Passed,
    restricted: Sequence[str] = (),
) -> list[str]:
    """Arguments for tritonserver; those of the user come last, and win where both name the same.

    Args:
        repositories: model repositories.
        backends: the folder with every backend.
        addresses: where to listen.
        pool: threads per instance of the Python-based backends.
        region_prefix: how the names of the Python backends' shared memory begin.
        passed: the user's own arguments.
        restricted: arguments that close APIs.
    """
    made = [f"--model-repository={repository}" for repository in repositories]
    made.append(f"--backend-directory={backends}")
    made.append(f"--exit-timeout-secs={EXIT_TIMEOUT_SECONDS}")
    for purpose, port in addresses.ports.items():
        made += [f"--{purpose}-address={addresses.host}", f"--{purpose}-port={port}"]
    # Of a setting given twice the server takes the first, so what the user sets is left out here.
    settings = {"thread-pool-size": str(pool), "shm-region-prefix-name": region_prefix}
    made += [
        f"--backend-config=python,{key}={value}"
        for key, value in settings.items()
        if key not in passed.backend_settings
    ]
    return [*made, *restricted, *passed.words]


def server_environment(
    base: Mapping[str, str],
    *,
    python: Path | None,
    libraries: Sequence[Path],
    control: Path,
    hooks: Path | None,
    guarded: Mapping[str, str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The environment of tritonserver and of all that it starts; this process's own stays as it is.

    Args:
        base: what to begin with.
        python: the interpreter whose folder comes first on PATH, since the stub runs the first `python3`.
        libraries: folders that come first on LD_LIBRARY_PATH.
        control: the control directory.
        hooks: the library to preload, or None.
        guarded: executors that clients may not call, each with its router.
        extra: further variables, which win.

    Raises:
        SetupError: a model's name cannot be written into the list of guarded ones.
    """
    made = dict(base)
    if python is not None:
        _prepend(made, "PATH", python.parent)
    for folder in reversed(libraries):
        _prepend(made, "LD_LIBRARY_PATH", folder)
    made[CONTROL_DIR_ENV] = str(control)
    if hooks is not None:
        _prepend(made, "LD_PRELOAD", hooks)
        made[GUARDED_MODELS_ENV] = format_guarded_models(guarded)
    made.update(extra)
    return made


def _prepend(environment: dict[str, str], name: str, path: Path) -> None:
    earlier = environment.get(name)
    environment[name] = f"{path}{os.pathsep}{earlier}" if earlier else str(path)
