# SPDX-License-Identifier: Apache-2.0
"""Model repositories from the disk: what rules look at, and what keeps a file from being read.

Law: a folder is read as Triton does it, every folder a model, hidden ones and links included, a configuration or none;
whatever lies there, nothing waits, nothing large is read, and nothing but a missing package is raised.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from priority_router.config import POLICY_FILE, load_policy
from priority_router.errors import PolicyError, SetupError
from priority_router.ops.lint import model_files
from priority_router.ops.pbtxt import scan
from priority_router.ops.pbtxt.document import Document, Position, faults, read_text
from priority_router.ops.pbtxt.error import PbtxtError
from priority_router.ops.rules import configs
from priority_router.ops.rules.catalogue import files as rules
from priority_router.ops.rules.finding import CONFIG_FILE, Finding, Place
from priority_router.ops.rules.models import Model, Recorded, Repository

MOST_BYTES: Final = 1_000_000
"""Of a file that is read as text: many times what anybody writes, and still read within seconds."""

MOST_DOTS: Final = 100
"""In a line of a policy, whose keys have one at most; the time that TOML takes grows with their square."""

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_RULES: Final = {"unknown_field": rules.UNKNOWN_FIELD, "placeholder": rules.PLACEHOLDER}
"""Of the kinds of faults that have a rule of their own."""

_OF_PARAMETER: Final = re.compile(r" in parameters(\[\d+\])?\.value\.string_value$")
_NO_PLACEHOLDER: Final = "__"
"""In place of the two characters that a placeholder begins with, so that all else is read where it stands."""


@dataclass(slots=True)
class Contents:
    """What was read.

    Attributes:
        models: by name; those whose configuration can be read.
        unreadable: names of the others.
        folders: of all models, by name.
        documents: configurations that can be read, by the model's name.
        found: faults of files, each with its place in the file; None for the file as a whole.
        remarks: one line for each thing that was left out.
    """

    models: dict[str, Model] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    folders: dict[str, Path] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    found: list[tuple[Finding, Position | None]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def repository(self, thread_pool_size: int | None, profile: Recorded | None) -> Repository:
        """For rules; ``thread_pool_size`` and ``profile`` as there."""
        return Repository(self.models, frozenset(self.unreadable), thread_pool_size, profile)


def is_address(path: Path) -> bool:
    """Whether Triton would take a path for one of another machine, which Python takes for a relative path."""
    return _ADDRESS.match(str(path)) is not None


def check_repositories(repositories: Sequence[Path]) -> None:
    """Refuses what cannot be a repository.

    Raises:
        SetupError: not a folder of this machine, one model's own folder, or named twice.
    """
    seen: set[Path] = set()
    for repository in repositories:
        if is_address(repository):
            raise SetupError(f"model repository {repository}: only folders of this machine are read; copy it to one")
        try:
            if not repository.is_dir():
                raise SetupError(
                    f"model repository {repository}: no such folder; name the folder that the models' own lie in"
                )
            if (repository / CONFIG_FILE).exists():
                raise SetupError(f"{repository} is the folder of one model; name the folder above it")
            os.scandir(repository).close()
        except OSError as error:
            raise SetupError(f"model repository {repository} cannot be read ({error.strerror})") from error
        if repository.resolve() in seen:
            raise SetupError(f"model repository {repository} is named twice; name each one once")
        seen.add(repository.resolve())


def read(repositories: Sequence[Path]) -> Contents:
    """Reads every model of some repositories.

    Raises:
        SetupError: see `check_repositories`.
        ModuleNotFoundError: tritonclient or protobuf is not installed.
    """
    check_repositories(repositories)
    contents = Contents()
    for repository in repositories:
        for name, folder in _folders(repository, contents):
            if name in contents.folders:
                first = contents.folders[name].parent
                what = f"model {name} lies in {first} and in {folder.parent} as well: Triton loads neither"
                _add(contents, Finding(rules.DUPLICATE, Place(name, ""), what, "rename or remove one of the two"))
                continue
            contents.folders[name] = folder
            _look_at(name, folder, contents)
    return contents


def _folders(repository: Path, contents: Contents) -> Iterator[tuple[str, Path]]:
    for path in sorted(repository.iterdir()):
        try:
            if stat.S_ISDIR(path.stat().st_mode):
                yield path.name, path
        except OSError as error:
            contents.folders.setdefault(path.name, path)
            contents.unreadable.add(path.name)
            _add(contents, _not_there(path.name, "", path, error, "no model of this repository"))


def _look_at(name: str, folder: Path, contents: Contents) -> None:
    """Reads a model; whatever keeps that from being done concerns no other model."""
    try:
        _read_model(name, folder, contents)
    except (OSError, ValueError, RecursionError) as error:
        contents.models.pop(name, None)
        contents.unreadable.add(name)
        reason = getattr(error, "strerror", None) or str(error)
        what = f"the folder of {name} cannot be read ({reason})"
        _add(contents, Finding(rules.UNPARSABLE, Place(name, ""), what, "let the server's user read it"))


def _read_model(name: str, folder: Path, contents: Contents) -> None:
    files = frozenset(_files(name, folder, contents))
    config: Mapping[str, object] = {}
    if CONFIG_FILE in files:
        document = _read_config(name, folder / CONFIG_FILE, contents)
        if document is None:
            contents.unreadable.add(name)
            return
        contents.documents[name] = document
        contents.found += _oddities(name, document)
        config = document.as_json()
    versions = tuple(sorted(int(version) for version in _versions(folder)))
    if not versions and CONFIG_FILE not in files:
        contents.unreadable.add(name)
        what = (
            f"folder {name} has neither {CONFIG_FILE} nor a version folder, and Triton takes every folder of a "
            "repository, hidden ones too, for a model: it refuses to load it"
        )
        _add(contents, Finding(rules.NO_VERSION, Place(name, ""), what, "move the folder out of the repository"))
        return
    model = Model(name, config, versions=versions, files=files)
    served = configs.served_versions(model)
    if served:
        model = _with_version(model, folder, str(served[-1]), contents)
    contents.models[name] = model


def _with_version(model: Model, folder: Path, version: str, contents: Contents) -> Model:
    """What lies in the version that is looked at: the highest that serves."""
    if not model.is_router:
        for finding in model_files.check(model, folder):
            _add(contents, finding)
        found = model_files.onnx(model, folder / version)
        if isinstance(found, Finding):
            _add(contents, found)
        elif isinstance(found, str):
            contents.remarks.append(found)
        else:
            return replace(model, onnx=found)
        return model
    name = f"{version}/{POLICY_FILE}"
    model = replace(model, policy_file=name)
    path, where = folder / name, f"{model.name}/{name}"
    if name not in (model.files or ()):
        return model
    if link := model_files.dead_link(model.name, name, path, "the router does not load"):
        _add(contents, link)
        return model
    if reason := model_files.not_opened(path):
        return replace(model, policy_error=f"{where} {reason}; write it as a file that the server's user may read")
    if _is_large(path, where, contents):
        return model
    if number := _dotted_line(path):
        error = f"{where}: not valid for a policy: more than {MOST_DOTS} dots in a line (at line {number}, column 1)"
        return replace(model, policy_error=f"{error}; write each key on a line of its own")
    try:
        return replace(model, policy=load_policy(path))
    except PolicyError as error:
        fault = str(error).removeprefix(str(path)).partition(": ")[2]  # a finding says the line itself
        return replace(model, policy_error=f"{where}: {fault}")


def _dotted_line(path: Path) -> int:
    """The first line of a policy that would take long to read, 0 where there is none."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.count(b".") > MOST_DOTS and not line.lstrip().startswith(b"#"):
                return number
    return 0


def _read_config(name: str, path: Path, contents: Contents) -> Document | None:
    where = f"{name}/{CONFIG_FILE}"
    if reason := model_files.not_opened(path):
        _add(contents, Finding(rules.UNPARSABLE, Place(name), f"{where} {reason}", "write it as a file"))
        return None
    if _is_large(path, where, contents):
        return None
    try:
        text = read_text(path)
    except PbtxtError as error:
        _add_faults(name, [error], contents)
        return None
    try:
        return Document.parse(text, str(path))
    except PbtxtError:
        found = faults(text, str(path))
    harmless = _in_parameters(text, found)
    for fault in harmless:
        finding = Finding(rules.PARAMETER_PLACEHOLDER, Place(name), fault.what, fault.fix)
        _add(contents, finding, Position(fault.line, fault.column))
    if harmless:
        starts = sorted(harmless.values())
        ends = [*starts[1:], len(text)]
        pieces = [f"{_NO_PLACEHOLDER}{text[a + len(_NO_PLACEHOLDER) : b]}" for a, b in zip(starts, ends, strict=True)]
        text = "".join([text[: starts[0]], *pieces])
        found = faults(text, str(path))
    _add_faults(name, found, contents)
    return None if found else Document.parse(text, str(path))


def _add_faults(name: str, found: Sequence[PbtxtError], contents: Contents) -> None:
    for fault in found:
        finding = Finding(_RULES.get(fault.kind, rules.UNPARSABLE), Place(name), fault.what, fault.fix)
        _add(contents, finding, Position(fault.line, fault.column) if fault.line else None)


def _in_parameters(text: str, found: Sequence[PbtxtError]) -> dict[PbtxtError, int]:
    """Placeholders in strings that Triton hands on as they are, each with its place in the text."""
    suspects = [fault for fault in found if fault.kind == "placeholder" and _OF_PARAMETER.search(fault.what)]
    if not suspects:
        return {}
    lines = scan.Lines(text)
    starts = {
        lines.place(placeholder.start): placeholder.start
        for token in scan.tokens(text)
        if token.sort is scan.Sort.STRING
        for placeholder in scan.quoted_placeholders(token)
    }
    places = {fault: starts.get((fault.line, fault.column)) for fault in suspects}
    return {fault: start for fault, start in places.items() if start is not None}


def _oddities(name: str, document: Document) -> Iterator[tuple[Finding, Position]]:
    """What protobuf takes, and its writer hardly means."""
    for repeat in document.repeats():
        *dropped, last = (f"{position.line}:{position.column}" for position in repeat.positions)
        at = configs.joined(dropped)
        what = f"{_dotted(repeat.path)} is written at {at} and again at {last}, which wins"
        fix = f"remove the entry at {at}, or that at {last}"
        yield Finding(rules.REPEATED_KEY, Place(name, path=repeat.path), what, fix), repeat.positions[-1]
    for octal in document.octals():
        what = f"{octal.text} in {_dotted(octal.path)} is octal and means {octal.value}"
        fix = f"write {octal.text.lstrip('0') or '0'}, or {octal.value} if that is meant"
        yield Finding(rules.OCTAL, Place(name, path=octal.path), what, fix), octal.position


def _dotted(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _files(name: str, folder: Path, contents: Contents) -> Iterator[str]:
    """What lies in a model's folder, and in the folders in that; deeper ones may have any number of files."""
    for path in sorted(folder.iterdir()):
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            _add(contents, _not_there(name, path.name, path, error, f"{name}"))
            continue
        yield path.name
        if is_folder:
            yield from (f"{path.name}/{inner}" for inner in sorted(os.listdir(path)))


def _versions(folder: Path) -> Iterator[str]:
    """Names of version folders, as Triton takes them: without leading zeros."""
    for path in folder.iterdir():
        name = path.name
        if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and os.path.isdir(path):
            yield name


def _is_large(path: Path, where: str, contents: Contents) -> bool:
    """Whether a text is left out for its size."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        contents.remarks.append(f"{where}: it has {size / 1e6:.0f} MB, and lint reads up to {MOST_BYTES / 1e6:.0f}")
    return size > MOST_BYTES


def _not_there(model: str, file: str, path: Path, error: OSError, lost: str) -> Finding:
    """What is in a folder and cannot be looked at, by which Triton gives up the folder."""
    if link := model_files.dead_link(model, file, path, f"Triton gives up and loads {lost}"):
        return link
    what = f"{path.name} cannot be looked at ({error.strerror}): Triton gives up and loads {lost}"
    return Finding(rules.UNPARSABLE, Place(model, file), what, "let the server's user read it")


def _add(contents: Contents, finding: Finding, position: Position | None = None) -> None:
    contents.found.append((finding, position))
