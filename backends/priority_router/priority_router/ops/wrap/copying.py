# SPDX-License-Identifier: Apache-2.0
"""A model's folder copied, or compared with a copy.

Law: what is copied is the model's content and never a way back to where it came from: a link that leads out of the
folder becomes what it leads to; one that stays inside stays a link.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops.wrap import write

_OWNER: Final = 0o700


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to copy.

    Attributes:
        source: where its content is.
        place: relative to the folder.
        link: text of a link; None for others.
        folder: it is one.
    """

    source: Path
    place: Path
    link: str | None = None
    folder: bool = False


def items(folder: Path) -> Iterator[Item]:
    """Everything in a model's folder, a folder before what is in it.

    Raises:
        SetupError: something that is no file, folder or link, a link that leads nowhere, or links in a circle.
    """
    whole = folder.resolve()
    yield from _items(whole, whole, Path(), (whole,))


def _items(folder: Path, root: Path, place: Path, within: tuple[Path, ...]) -> Iterator[Item]:
    """``root`` is what a link must stay in; ``within`` are the folders that links have led into so far."""
    for name in sorted(os.listdir(folder)):
        path, here = folder / name, place / name
        if path.is_symlink():
            target = path.resolve()
            if not target.exists():
                raise SetupError(f"{path}: is a link to {os.readlink(path)!r}, which leads nowhere; mend or remove it")
            if _stays(path, here, root):
                yield Item(path, here, link=os.readlink(path))
                continue
            if target.is_dir():
                if any(one.is_relative_to(target) for one in within):
                    raise SetupError(f"{path}: is a link to {target}, which it lies in itself; remove it")
                yield Item(target, here, folder=True)
                yield from _items(target, target, here, (*within, target))
                continue
            path = target
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            yield Item(path, here, folder=True)
            yield from _items(path, root, here, within)
        elif stat.S_ISREG(mode):
            yield Item(path, here)
        else:
            raise SetupError(f"{path}: is neither file nor folder and cannot be copied; move it away")


def _stays(link: Path, place: Path, root: Path) -> bool:
    """Whether a link means the same in a copy, whatever that is called."""
    text = os.readlink(link)
    way = os.path.normpath(place.parent / text)
    return not os.path.isabs(text) and not way.startswith("..") and link.resolve().is_relative_to(root)


def place_of(folder: Path, name: str) -> Path:
    """Where the content of a file in a model's folder will be in a copy: not always under its own name, given links."""
    root, path = folder.resolve(), folder / name
    if path.is_symlink() and _stays(path, Path(name), root):
        return path.resolve().relative_to(root)
    return Path(name)


def copy(folder: Path, into: Path, instead: Mapping[Path, bytes]) -> None:
    """Copies a model's folder with the modes and times of its files.

    Args:
        folder: the model's.
        into: an empty folder.
        instead: content of files, by their place, that are written in place of the model's own.
    """
    os.chmod(into, stat.S_IMODE(folder.stat().st_mode) | _OWNER)
    for item in items(folder):
        place = into / item.place
        if item.link is not None:
            os.symlink(item.link, place)
        elif item.folder:
            os.mkdir(place)
            os.chmod(place, stat.S_IMODE(item.source.stat().st_mode) | _OWNER)
        elif item.place in instead:
            write.write_file(place, instead[item.place], stat.S_IMODE(item.source.stat().st_mode))
        else:
            shutil.copy2(item.source, place)


def differences(folder: Path, existing: Path, instead: Mapping[Path, bytes]) -> list[str]:
    """What of a model's folder is missing in another one or has another content there.

    Args:
        folder: the model's.
        existing: the other one; what it has besides is nobody's fault.
        instead: as in `copy`.

    Returns:
        Places relative to the folder.
    """
    found = []
    for item in items(folder):
        place = existing / item.place
        if item.folder:
            same = place.is_dir()
        elif item.place in instead:
            same = place.is_file() and place.read_bytes() == instead[item.place]
        else:
            same = place.is_file() and filecmp.cmp(item.source, place, shallow=False)
            same = same or (item.link is not None and place.is_dir())
        if not same:
            found.append(str(item.place))
    return found


def place_files(folder: Path, copies: Mapping[Path, Path], contents: Mapping[Path, bytes]) -> None:
    """Fills an empty folder.

    Args:
        folder: it.
        copies: files by their place in it.
        contents: likewise, of files that exist nowhere yet.
    """
    for place in (*copies, *contents):
        for parent in reversed(place.parents[:-1]):
            if not (folder / parent).is_dir():
                write.make_folder(folder / parent)
    for place, path in copies.items():
        shutil.copy2(path, folder / place)
    for place, content in contents.items():
        write.write_file(folder / place, content)


def different_files(folder: Path, copies: Mapping[Path, Path], contents: Mapping[Path, bytes]) -> list[str]:
    """Places of those of the files that a folder does not have, or has with another content."""
    found = [str(place) for place, path in copies.items() if not _same(path, folder / place)]
    return found + [
        str(place)
        for place, content in contents.items()
        if not ((folder / place).is_file() and (folder / place).read_bytes() == content)
    ]


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)
