# SPDX-License-Identifier: Apache-2.0
"""A folder that looks like ``/opt/tritonserver`` of NVIDIA's image, with the embedded server in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from priority_router.ops.server import installation

ARGUMENTS_ENV = "STAND_IN_ARGUMENTS"
"""Further arguments for the server, separated by spaces; before those it is given."""


def embedded() -> installation.Installation:
    """The embedded server; the test fails where NVIDIA's own is found."""
    found = installation.find()
    if not found.embedded:
        pytest.fail("this test is written for the embedded server")
    return found


def program(path: Path, text: str) -> None:
    """Writes an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def write_server(folder: Path, triton: installation.Installation) -> None:
    """Fills ``folder`` with ``bin/tritonserver`` and the Python backend.

    The first finds its libraries by itself, and the interpreter of the models as the first ``python3`` on PATH.
    """
    assert triton.stub is not None
    shutil.copytree(triton.backends / "python", folder / "backends" / "python")
    shutil.copy(triton.stub, folder / "backends" / "python")
    libraries = ":".join(map(str, triton.libraries))
    program(
        folder / "bin" / "tritonserver",
        f'#!/bin/sh\nLD_LIBRARY_PATH={libraries}\nexport LD_LIBRARY_PATH\nexec {triton.binary} ${ARGUMENTS_ENV} "$@"\n',
    )
