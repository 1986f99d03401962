# SPDX-License-Identifier: Apache-2.0
"""Carries a Dockerfile out without a container engine: its COPY and RUN steps, in folders that stand for its stages.

Absolute paths in RUN lead into the stage's folder by substitution, so no privileges are needed, and lines for
``apt-get`` are left out: what they install, the machine must have.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from docker.utils.build import exclude_paths

_TOP_FOLDERS = "source|image|wheels|opt|usr"
_ABSOLUTE = re.compile(rf"(?<![\w./])/(?={_TOP_FOLDERS})")


@dataclass
class Stage:
    """One stage while it is built, and the image in the end.

    Attributes:
        root: the folder that stands for ``/``.
        settings: the last value of USER, ENTRYPOINT, HEALTHCHECK and the like, as written.
        ran: the commands that were run, as written.
    """

    root: Path
    workdir: str = "/"
    settings: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """Where a path of the image lies here."""
        return self.root / os.path.join(self.workdir, path).lstrip("/")

    def words(self, name: str) -> list[str]:
        """A setting in exec form, as its words; options before it are left out."""
        words: list[str] = json.loads(re.sub(r"^.*?\[", "[", self.settings[name]))
        return words


def context(root: Path, folder: Path) -> Path:
    """Copies what ``.dockerignore`` lets through into ``folder``, as an engine would be sent it."""
    patterns = [
        line for line in (root / ".dockerignore").read_text().splitlines() if line.strip() and not line.startswith("#")
    ]
    for name in exclude_paths(str(root), patterns):
        if (root / name).is_file() and name not in ("Dockerfile", ".dockerignore"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    return folder


def build(
    dockerfile: Path, sent: Path, bases: Mapping[str, Path], scratch: Path, environment: Mapping[str, str]
) -> Stage:
    """Builds every stage in turn and returns the last.

    Args:
        dockerfile: the file.
        sent: the context (`context`).
        bases: folders that stand for the images named after FROM.
        scratch: an empty folder.
        environment: of the commands.
    """
    variables: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    stage = Stage(scratch)
    for name, value in _instructions(dockerfile.read_text()):
        if name == "ARG":
            key, _, default = value.partition("=")
            variables[key] = default
        elif name == "FROM":
            image, _, alias = value.partition(" AS ")
            stage = stages[alias] = Stage(scratch / (alias or "last"))
            shutil.copytree(bases[re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], image)], stage.root)
        elif name == "COPY":
            _copy(value, stage, stages, sent)
        elif name == "WORKDIR":
            stage.workdir = value
        elif name == "RUN":
            _run(value, stage, environment)
        else:
            stage.settings[name] = value
    return stage


def _instructions(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(name, value.strip()) for name, _, value in (line.partition(" ") for line in joined.splitlines())]


def _copy(value: str, stage: Stage, stages: Mapping[str, Stage], sent: Path) -> None:
    *sources, target = value.split()
    origin = sent
    if sources[0].startswith("--from="):
        origin = stages[sources.pop(0).removeprefix("--from=")].root
    for source in sources:
        path, place = origin / source.lstrip("/"), stage.inside(target)
        if path.is_dir():
            shutil.copytree(path, place, dirs_exist_ok=True)
        else:
            place = place / path.name if target.endswith("/") else place
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)


def _run(value: str, stage: Stage, environment: Mapping[str, str]) -> None:
    if "apt-get" in value:
        return
    command = _ABSOLUTE.sub(f"{stage.root}/", value)
    folder = stage.inside(".")
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=dict(environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"RUN {value}\n{done.stdout}{done.stderr}"
    stage.ran.append(value)
