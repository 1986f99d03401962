# SPDX-License-Identifier: Apache-2.0
"""Writes new folders and files into a model repository: all of it or, on any error or Ctrl-C, nothing.

Law: everything is first built beside its place, on the same file system, and then renamed. What undoes a step looks at
what is there and not at what was noted, so that it does not matter at which instruction an interrupt came.

A server may watch the repository meanwhile. Triton takes every folder in it for a model, hidden or not, and ignores
files (``LocalFileSystem::GetDirectorySubdirs``); so folders are built beside the repository, and only where that is
another file system (a mounted repository) inside it. Files are built beside their place.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops.wrap import reading
from priority_router.ops.wrap.leftovers import PREFIX

FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o644
"""Of what did not exist before: the server may run as another user, whatever this one's umask is."""


@dataclass(frozen=True, slots=True)
class NewFolder:
    """A folder that does not exist yet.

    Attributes:
        place: where.
        fill: writes its content into an empty folder that is given.
    """

    place: Path
    fill: Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class NewContent:
    """A file, new or changed.

    Attributes:
        place: where; where that is a link, the file that it leads to is changed and the link stays.
        content: all of it.
        before: what it is to replace; None for a new file. Anything else there is left alone.
    """

    place: Path
    content: bytes
    before: bytes | None


def write_file(place: Path, content: bytes, mode: int = FILE_MODE) -> None:
    """A new file with exactly that mode.

    Raises:
        OSError: with its name, also where only the content could not be written.
    """
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with _named(place), open(descriptor, "wb") as file:
        file.write(content)
    os.chmod(place, mode)


@contextlib.contextmanager
def _named(place: Path) -> Iterator[None]:
    """Names the file in errors that name none, such as those of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(place)) from error


def make_folder(place: Path) -> None:
    """A new folder with the mode that every server can read."""
    os.mkdir(place)
    os.chmod(place, FOLDER_MODE)


def carry_out(repository: Path, folders: Sequence[NewFolder], files: Sequence[NewContent]) -> None:
    """Writes everything.

    Args:
        repository: made when missing, with the folders above it.
        folders: each directly in it.
        files: each in a folder of it that exists already, or in one directly below such a folder.

    Raises:
        SetupError: nothing is changed; the text says why. Where it says that undoing failed, it names what is left.
    """
    work = _Work()
    try:
        _carry_out(work, repository, folders, files)
    except BaseException as error:
        # What undoes can be begun anew at any time, so an impatient second Ctrl-C only delays it.
        while True:
            try:
                left = work.undo()
                break
            except KeyboardInterrupt:
                continue
        if left:
            raise SetupError(f"{_reason(error)}; undoing it failed, which leaves {', '.join(left)}") from error
        if isinstance(error, OSError):
            raise SetupError(f"nothing is changed: {_reason(error)}") from error
        raise
    while True:
        try:
            work.clean()
            break
        except KeyboardInterrupt:  # too late: all is written
            continue


def _carry_out(work: _Work, repository: Path, folders: Sequence[NewFolder], files: Sequence[NewContent]) -> None:
    work.make_folders(repository)
    moves: list[_Move] = []
    if folders:
        staging = _staging(work, repository)
        for folder in folders:
            built = staging / folder.place.name
            make_folder(built)
            folder.fill(built)
            moves.append(_FolderMove(built, folder.place))
    for file in files:
        place = file.place.resolve()
        work.make_folders(place.parent)
        moves.append(_draft(work, place, file))
    for move in moves:
        work.moves.append(move)
        move.go()


def _staging(work: _Work, repository: Path) -> Path:
    """A folder from which others can be renamed into the repository; beside it where that is possible."""
    for parent in (repository.resolve().parent, repository.resolve()):
        staging = parent / f"{PREFIX}{secrets.token_hex(8)}"
        probe = repository / f"{staging.name}.probe"
        work.scratch += [staging, probe]
        try:
            os.mkdir(staging, 0o700)
            # Only a rename tells whether one is possible: two mounts of one file system look the same.
            write_file(staging / "probe", b"")
            os.rename(staging / "probe", probe)
            os.unlink(probe)
        except OSError:
            if parent == repository.resolve():
                raise
            _remove(staging)
            continue
        return staging
    raise AssertionError("unreachable")


def _draft(work: _Work, place: Path, file: NewContent) -> _FileMove:
    token = secrets.token_hex(8)
    draft, old = (place.with_name(f"{PREFIX}{token}.{what}") for what in ("new", "old"))
    work.scratch += [draft, old]
    before = os.stat(place) if place.exists() else None
    try:
        write_file(draft, file.content)
    except OSError as error:  # nobody has heard of the draft
        raise OSError(error.errno, error.strerror, str(place)) from error
    if before is not None:
        # Where a file cannot be given to its owner, its new owner can still write it.
        with contextlib.suppress(OSError):
            os.chown(draft, before.st_uid, before.st_gid)
        os.chmod(draft, before.st_mode & 0o7777)
        try:
            os.link(place, old)
        except OSError:  # a file system without hard links
            shutil.copy2(place, old)
    return _FileMove(draft, place, old if before is not None else None, file.before)


class _Move:
    """One rename that makes a change visible."""

    def go(self) -> None:
        """Renames.

        Raises:
            OSError: it did not happen.
        """
        raise NotImplementedError

    def undo(self) -> None:
        """Takes it back where it happened."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _FolderMove(_Move):
    built: Path
    place: Path

    def go(self) -> None:
        if os.path.lexists(self.place):
            raise FileExistsError(None, "was made by somebody else meanwhile", str(self.place))
        os.rename(self.built, self.place)

    def undo(self) -> None:
        if not os.path.lexists(self.built):
            os.rename(self.place, self.built)


@dataclass(frozen=True, slots=True)
class _FileMove(_Move):
    draft: Path
    place: Path
    old: Path | None
    before: bytes | None

    def go(self) -> None:
        if reading.content(self.place, reading.MOST_LABEL_BYTES) != self.before:
            raise FileExistsError(None, "was changed by somebody else meanwhile; run it again", str(self.place))
        os.replace(self.draft, self.place)

    def undo(self) -> None:
        if os.path.lexists(self.draft):
            return
        with contextlib.suppress(FileNotFoundError):  # undone before
            if self.old is None:
                os.unlink(self.place)
            else:
                os.replace(self.old, self.place)


@dataclass(slots=True)
class _Work:
    """What has been begun.

    Attributes:
        made: folders that did not exist, outermost first.
        scratch: what is removed in any case, existing or not.
        moves: begun and not undone, in order.
        left: what could not be undone, in words.
    """

    made: list[Path] = field(default_factory=list)
    scratch: list[Path] = field(default_factory=list)
    moves: list[_Move] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def make_folders(self, path: Path) -> None:
        """A folder and those above it."""
        missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
        for folder in reversed(missing):
            self.made.append(folder)
            make_folder(folder)

    def undo(self) -> list[str]:
        """Takes everything back; once more goes on where an interrupt came.

        Returns:
            `left`.
        """
        while self.moves:
            try:
                self.moves[-1].undo()
            except OSError as error:
                self.left.append(_reason(error))
            self.moves.pop()
        if self.left:
            return self.left  # what lies beside it may be needed to mend it
        self.clean()
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return []

    def clean(self) -> None:
        """Removes what was only needed on the way."""
        for path in self.scratch:
            _remove(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"{error.filename2 or error.filename or 'a file'}: {error.strerror or error}"
    return f"{type(error).__name__}: {error}".rstrip(": ")
