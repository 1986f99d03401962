# SPDX-License-Identifier: Apache-2.0
"""What lint says of a plan, before any of it is written.

Law: writes to a temporary folder of its own only. The repository as it would be is put together there, mostly of links,
so that lint looks at it as at any other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from priority_router.ops.lint import check, report
from priority_router.ops.lint.check import Located
from priority_router.ops.rules.backends import ONNX_FILE
from priority_router.ops.rules.finding import CONFIG_FILE
from priority_router.ops.wrap.leftovers import PREFIX
from priority_router.ops.wrap.plan import POLICY, Plan, State
from priority_router.ops.wrap.source import ROUTER_VERSION


@dataclass(frozen=True, slots=True)
class Findings:
    """What is left to be mended.

    Attributes:
        own: of the two models, one line each.
        others: how many other findings the repository has.
    """

    own: tuple[str, ...]
    others: int


def of(plan: Plan) -> Findings:
    """Looks at the repository as it would be.

    Raises:
        ModuleNotFoundError: a package that lint needs is not installed.
    """
    names = {plan.source.name, plan.files.name}
    with tempfile.TemporaryDirectory(prefix=PREFIX[1:]) as scratch:
        folder = Path(scratch)
        _build(folder, plan)
        checked = check.check([folder])
    own = [found for found in checked.found if found.finding.place.model in names]
    return Findings(
        tuple(_line(found, folder, plan.options.repository) for found in own), len(checked.found) - len(own)
    )


def _line(found: Located, folder: Path, repository: Path) -> str:
    text = f"{report.line(found)}; {report.plain(found.finding.fix)}"
    return text.replace(str(folder), str(repository))


def _build(folder: Path, plan: Plan) -> None:
    repository, source = plan.options.repository, plan.source
    ours = {
        source.name: {CONFIG_FILE: plan.merge.text},
        plan.files.name: {CONFIG_FILE: plan.files.config, POLICY: plan.files.policy},
    }
    if repository.is_dir():
        for path in repository.iterdir():
            if path.name not in ours:
                _link(folder / path.name, path)
    new = plan.executor.state is State.NEW
    executor = None if new and not source.folder else source.path if new else plan.executor.place
    _model(folder / source.name, executor, ours[source.name])
    _model(folder / plan.files.name, plan.router.place, ours[plan.files.name])
    if executor is None:
        version = folder / source.name / ROUTER_VERSION
        version.mkdir()
        _link(version / ONNX_FILE, source.path)


def _model(folder: Path, existing: Path | None, texts: Mapping[str, str]) -> None:
    """A model's folder: texts, and links to what else it has; of a folder with one of the texts, to what that has."""
    folder.mkdir()
    inner = {Path(name).parts[0] for name in texts if "/" in name}
    if existing is not None and existing.is_dir():
        for path in existing.iterdir():
            if path.name in inner and path.is_dir():
                (folder / path.name).mkdir()
                for deeper in path.iterdir():
                    if f"{path.name}/{deeper.name}" not in texts:
                        _link(folder / path.name / deeper.name, deeper)
            elif path.name not in texts:
                _link(folder / path.name, path)
    for name, text in texts.items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))


def _link(link: Path, target: Path) -> None:
    os.symlink(target.absolute(), link)
