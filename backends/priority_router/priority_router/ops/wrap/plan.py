# SPDX-License-Identifier: Apache-2.0
"""Everything that is to be written, decided before any of it is.

Law: reads only; whatever stands in the way is refused here.
"""

from __future__ import annotations

import difflib
import enum
import io
import os
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.config import POLICY_FILE
from priority_router.errors import SetupError
from priority_router.interface import BACKEND
from priority_router.ops.pbtxt.document import Document
from priority_router.ops.pbtxt.edit import Merge, merge_batching
from priority_router.ops.pbtxt.error import PbtxtError
from priority_router.ops.rules import queues
from priority_router.ops.rules.backends import ONNX_FILE
from priority_router.ops.rules.finding import CONFIG_FILE
from priority_router.ops.rules.models import Model
from priority_router.ops.wrap import copying, reading, write
from priority_router.ops.wrap import source as sources
from priority_router.ops.wrap.options import Options
from priority_router.ops.wrap.router_files import RouterFiles, batching, router_files
from priority_router.ops.wrap.source import ROUTER_VERSION, Source
from priority_router.ops.wrap.texts import is_sealed
from priority_router.ops.wrap.write import NewContent, NewFolder

POLICY: Final = f"{ROUTER_VERSION}/{POLICY_FILE}"
"""Of a router, relative to its folder."""

_MOST_NAMED: Final = 5


class State(enum.Enum):
    """What becomes of a model's folder."""

    UNCHANGED = "unchanged"
    EDITED = "edited"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text file before and after.

    Attributes:
        old: path of the file before; None for a new one.
        before: its text; empty for a new one.
        new: its path after.
        after: its text.
    """

    old: Path | None
    before: str
    new: Path
    after: str


@dataclass(frozen=True, slots=True)
class Part:
    """One model's folder.

    Attributes:
        place: of the folder.
        state: what becomes of it.
        folders: to be written.
        files: likewise.
        texts: what changes, for people.
    """

    place: Path
    state: State
    folders: tuple[NewFolder, ...] = ()
    files: tuple[NewContent, ...] = ()
    texts: tuple[TextChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, and about what.

    Attributes:
        options: what was asked for.
        source: the model.
        merge: its configuration with the block that the router needs.
        executor: its folder in the repository.
        router: its router's.
        files: of the router.
        missing_labels: files with labels that neither model nor repository has.
    """

    options: Options
    source: Source
    merge: Merge
    executor: Part
    router: Part
    files: RouterFiles
    missing_labels: tuple[str, ...]

    def carry_out(self) -> None:
        """Writes it.

        Raises:
            SetupError: nothing is changed.
        """
        parts = (self.executor, self.router)
        write.carry_out(
            self.options.repository,
            [folder for part in parts for folder in part.folders],
            [file for part in parts for file in part.files],
        )

    def diff(self) -> str:
        """The text files' changes, as ``diff -u`` has them."""
        return "".join(_diff(change) for part in (self.executor, self.router) for change in part.texts)


def make(options: Options) -> Plan:
    """Looks at the model and the repository, and decides.

    Raises:
        PriorityRouterError: something stands in the way; the text says what to do.
    """
    source = sources.read(options.model, options.instances)
    repository = options.repository
    _check_repository(repository, source)
    name = options.router_name if options.router_name is not None else f"{source.name}_router"
    sources.check_name(name, "--router-name:", "take")
    if name == source.name:
        raise SetupError(f"--router-name {name}: is the model's own name; take another")
    _check_order(source.document, source.name, options)
    merge = merge_batching(source.document, batching(options))
    files = router_files(name, source, options)
    executor = _executor(source, repository / source.name, merge.text)
    labels = {label: found for label in source.labels if (found := _label(source, executor.place, label)) is not None}
    router = _router(source, repository / name, files, labels, options)
    missing = tuple(label for label in source.labels if label not in labels)
    return Plan(options, source, merge, executor, router, files, missing)


def _check_repository(repository: Path, source: Source) -> None:
    sources.check_local(repository)
    if os.path.lexists(repository) and not repository.is_dir():
        raise SetupError(f"--into {repository}: is no folder; name a model repository, or one to be made")
    if (repository / CONFIG_FILE).exists():
        raise SetupError(f"--into {repository}: is the folder of one model; name the folder above it")
    if source.folder and repository.resolve().is_relative_to(source.path.resolve()):
        raise SetupError(f"--into {repository}: lies inside the model's own folder; name a repository outside of it")
    folder = Path(os.path.abspath(source.path))
    if source.folder and folder.parent.resolve() == repository.resolve() and folder.name != source.name:
        raise SetupError(
            f"{source.document.path}: name is {source.name!r} in a folder {folder.name!r}, which Triton "
            "refuses; give both the same name, or leave name out"
        )


def _check_order(document: Document, name: str, options: Options) -> None:
    """Nothing that Triton refuses beside ``preserve_ordering`` is to come, or to be there already."""
    conflicts = queues.order_conflicts(Model(name, document.as_json()), options.levels)
    if conflicts and not options.plain:
        position = document.position(("dynamic_batching", "preserve_ordering"))
        raise SetupError(
            f"{document.path}:{position.line}:{position.column}: Triton does not load a model with preserve_ordering "
            f"and {conflicts[0]}; remove it (the router answers each request by itself), or wrap with --plain"
        )


def _in_place(source: Source, place: Path) -> bool:
    return source.folder and place.is_dir() and os.path.samefile(source.path, place)


def _executor(source: Source, place: Path, text: str) -> Part:
    content = text.encode("utf-8", "surrogateescape")
    file = place / CONFIG_FILE
    if _in_place(source, place):
        if text == source.document.text:
            return Part(place, State.UNCHANGED)
        change = TextChange(file, source.document.text, file, text)
        return Part(
            place,
            State.EDITED,
            files=(NewContent(file, content, source.document.text.encode("utf-8", "surrogateescape")),),
            texts=(change,),
        )
    if os.path.lexists(place):
        if not place.is_dir():
            raise SetupError(f"{place}: is in the way of the model and is no folder; move it away")
        if not (different := _differences(source, place, content)):
            return Part(place, State.UNCHANGED)
        raise SetupError(
            f"{place} exists and is not what wrap would write: {_some(different)} differ or are missing; wrap that one "
            f"in its place (priority-router wrap {_quoted(place)} --into {_quoted(place.parent)} ...), or move it away"
        )
    old = Path(source.document.path) if source.folder else None
    change = TextChange(old, source.document.text if source.folder else "", file, text)
    return Part(place, State.NEW, folders=(NewFolder(place, _filler(source, content)),), texts=(change,))


def _filler(source: Source, config: bytes) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        if source.folder:
            copying.copy(source.path, folder, {copying.place_of(source.path, CONFIG_FILE): config})
        else:
            copying.place_files(folder, _bare_files(source), {Path(CONFIG_FILE): config})

    return fill


def _bare_files(source: Source) -> dict[Path, Path]:
    """Where the files of a bare model go in its folder, and where they are."""
    beside = {Path(ROUTER_VERSION, name): source.path.parent / name for name in source.external}
    return {Path(ROUTER_VERSION, ONNX_FILE): source.path, **beside}


def _differences(source: Source, place: Path, config: bytes) -> list[str]:
    if source.folder:
        return copying.differences(source.path, place, {copying.place_of(source.path, CONFIG_FILE): config})
    return copying.different_files(place, _bare_files(source), {Path(CONFIG_FILE): config})


def _label(source: Source, place: Path, label: str) -> Path | None:
    """A file with labels: the model's, or the one that lies where the model goes already."""
    folders = (source.path, place) if source.folder else ()
    return next((folder / label for folder in folders if (folder / label).is_file()), None)


def _router(source: Source, place: Path, files: RouterFiles, labels: Mapping[str, Path], options: Options) -> Part:
    wanted = {CONFIG_FILE: files.config.encode(), POLICY: files.policy.encode()}
    wanted |= {label: reading.content(path, reading.MOST_LABEL_BYTES) or b"" for label, path in labels.items()}
    texts = {CONFIG_FILE: files.config, POLICY: files.policy}
    if not os.path.lexists(place):
        changes = tuple(TextChange(None, "", place / name, text) for name, text in texts.items())

        def fill(folder: Path) -> None:
            copying.place_files(folder, {}, {Path(name): content for name, content in wanted.items()})

        return Part(place, State.NEW, folders=(NewFolder(place, fill),), texts=changes)
    _check_router(place)
    before = {name: _content(place, name) for name in wanted}
    changed = [name for name, content in wanted.items() if before[name] != content]
    if not changed:
        return Part(place, State.UNCHANGED)
    if not options.force:
        _check_ours(place, {name: before[name] for name in changed})
        _check_policy(place, before[POLICY], source.name, files.policy if options.teaching else None)
    return Part(
        place,
        State.EDITED,
        files=tuple(NewContent(place / name, wanted[name], before[name]) for name in changed),
        texts=tuple(_changed(place / name, before[name], texts[name]) for name in changed if name in texts),
    )


def _check_router(place: Path) -> None:
    """Refuses what stands in the router's place and is none, and what Triton would serve instead of it."""
    policies = sorted(place.glob(f"*/{POLICY_FILE}"))
    if not (place.is_dir() and (policies or _is_router(place / CONFIG_FILE))):
        raise SetupError(f"{place}: exists and is no router; take another --router-name")
    for policy in policies:
        version = policy.parent.name
        if version.isdigit() and version != ROUTER_VERSION:
            raise SetupError(
                f"{policy}: Triton serves the highest version, and wrap writes {ROUTER_VERSION}; remove the folder "
                f"{version}, or take another --router-name"
            )


def _is_router(config: Path) -> bool:
    text = _text(reading.content(config))
    try:
        return bool(Document.parse(text, str(config)).config.backend == BACKEND)
    except PbtxtError:
        return is_sealed(text)


def _check_ours(place: Path, changed: Mapping[str, bytes | None]) -> None:
    """Refuses to overwrite what somebody else has written."""
    edited = [name for name, before in changed.items() if before is not None and not is_sealed(_text(before))]
    if edited:
        raise SetupError(
            f"{place}: {_some(edited)} was edited, or not written by this command; --force overwrites (--dry-run "
            "--force shows what), another --router-name leaves it alone"
        )


def _check_policy(place: Path, policy: bytes | None, executor: str, teaching: str | None) -> None:
    """Refuses to lose what an earlier run was told.

    Args:
        place: of the router.
        policy: that it has; None: none.
        executor: that it is to call.
        teaching: its new policy where that has teaching values.
    """
    try:
        before = tomllib.loads(_text(policy))
    except tomllib.TOMLDecodeError:
        return
    if before.get("executor", executor) != executor:
        raise SetupError(
            f"{place}: is the router of {before['executor']!r}; --force turns it into one of {executor!r}, another "
            "--router-name leaves it alone"
        )
    if teaching is not None and "class" in before and before["class"] != tomllib.loads(teaching)["class"]:
        raise SetupError(
            f"{place / POLICY}: has classes of its own, and without --class they would become the teaching ones; "
            "repeat the options that they were written with, or add --force"
        )


def _content(router: Path, name: str) -> bytes | None:
    if name in (CONFIG_FILE, POLICY):
        return reading.content(router / name)
    return reading.content(router / name, reading.MOST_LABEL_BYTES)


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "surrogateescape")


def _changed(path: Path, before: bytes | None, after: str) -> TextChange:
    return TextChange(None if before is None else path, _text(before), path, after)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _diff(change: TextChange) -> str:
    old = "/dev/null" if change.old is None else str(change.old)
    lines = difflib.unified_diff(_lines(change.before), _lines(change.after), old, str(change.new))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Ends of lines are LF alone here: what else `str.splitlines` splits at stays in its line."""
    return list(io.StringIO(text, newline="\n"))
