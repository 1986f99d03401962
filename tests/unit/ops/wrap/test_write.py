# SPDX-License-Identifier: Apache-2.0
"""All or nothing: whatever call to the file system fails, and wherever Ctrl-C comes, a repository is as it was."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops.command_line import Terminated
from priority_router.ops.wrap import copying, write
from priority_router.ops.wrap.write import NewContent, NewFolder
from support.bare_models import IDENTITY, model, snapshot

CALLS = (
    *((os, name) for name in ("mkdir", "chmod", "rename", "replace", "link", "unlink", "open", "chown", "symlink")),
    (shutil, "copy2"),
)
"""Everything that changes a file system here."""


def world(folder):
    """A repository with a model and a router in it, and another model outside of it."""
    model(folder / "repository" / "executor", files={"labels.txt": "a\n"})
    (folder / "repository" / "executor" / "config.pbtxt").chmod(0o640)
    model(folder / "repository" / "router", "old", {"1/policy.toml": "old"})
    source = model(folder / "outside" / "model", files={"1/weights": "0123456789"})
    (source / "2").symlink_to("1")
    (source / "1" / "shared").symlink_to(folder / "outside" / "elsewhere")
    (folder / "outside" / "elsewhere").write_text("elsewhere")
    return folder / "repository"


def carry_out(repository, into=None):
    """Every kind of change at once."""
    into = into or repository
    source = repository.parent / "outside" / "model"

    def fill(folder):
        copying.copy(source, folder, {copying.place_of(source, "config.pbtxt"): b"new"})

    def fill_router(folder):
        copying.place_files(folder, {}, {Path("config.pbtxt"): b"r", Path("1/policy.toml"): b"p"})

    files = [
        NewContent(into / "executor" / "config.pbtxt", b"changed", IDENTITY.encode()),
        NewContent(into / "router" / "1" / "policy.toml", b"changed", b"old"),
        NewContent(into / "router" / "2" / "new.toml", b"new", None),
    ]
    folders = [NewFolder(into / "model", fill), NewFolder(into / "model_router", fill_router)]
    write.carry_out(into, folders, files if into == repository else [])


def refusing(*_):
    raise OSError(13, "Permission denied", "model")


class Failing:
    """Counts calls that change a file system, and fails one of them, before or after it did its work."""

    def __init__(self, monkeypatch, at=-1, error=None, late=False):
        self.calls = 0
        for module, name in CALLS:
            monkeypatch.setattr(module, name, self._wrapped(getattr(module, name), at, error, late))

    def _wrapped(self, real, at, error, late):
        def call(*args, **kwargs):
            number, self.calls = self.calls, self.calls + 1
            if number == at and not late:
                raise error
            result = real(*args, **kwargs)
            if number == at:
                if isinstance(result, int):
                    os.close(result)
                raise error
            return result

        return call


def count(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        repository = world(tmp_path / "counted")
        failing = Failing(patch)
        carry_out(repository)
    return failing.calls


def test_everything_is_written_and_nothing_else_is_left(tmp_path):
    repository = world(tmp_path)
    before = snapshot(tmp_path)
    carry_out(repository)
    after = snapshot(tmp_path)
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed == {"repository/executor/config.pbtxt", "repository/router/1/policy.toml"}
    new = {name.removeprefix("repository/") for name in after.keys() - before.keys()}
    assert new == {
        *("model", "model/1", "model/1/model.py", "model/1/shared", "model/1/weights", "model/2", "model/config.pbtxt"),
        *("model_router", "model_router/1", "model_router/1/policy.toml", "model_router/config.pbtxt"),
        *("router/2", "router/2/new.toml"),
    }
    assert (repository / "model" / "config.pbtxt").read_bytes() == b"new"
    assert (repository / "executor" / "config.pbtxt").read_bytes() == b"changed"


ERRORS = [OSError(28, "No space left on device", "somewhere"), KeyboardInterrupt(), Terminated()]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_failure_at_any_call_leaves_everything_as_it_was(tmp_path, error, late):
    calls = count(tmp_path)
    assert calls > 40
    undone = 0
    for at in range(calls):
        repository = world(tmp_path / f"{at}")
        before = snapshot(tmp_path / f"{at}")
        with pytest.MonkeyPatch.context() as patch:
            Failing(patch, at, error, late)
            try:
                carry_out(repository)
            except (SetupError, KeyboardInterrupt):
                undone += 1
                assert snapshot(tmp_path / f"{at}") == before, f"call {at}"
            else:  # only what tidies up afterwards, or is worth no failure, may fail without a word
                after = snapshot(tmp_path / f"{at}")
                assert after["repository/executor/config.pbtxt"][1] == b"changed", f"call {at}"
        shutil.rmtree(tmp_path / f"{at}")
    assert undone > calls - 20


@pytest.mark.parametrize("error", [SetupError("no"), ValueError("a fault of ours")])
def test_whatever_else_is_raised_is_passed_on_and_nothing_is_left(tmp_path, error):
    def fill(folder):
        raise error

    repository = world(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(type(error)) as raised:
        write.carry_out(repository, [NewFolder(repository / "new", fill)], [])
    assert raised.value is error
    assert snapshot(tmp_path) == before


def test_the_reason_is_told(tmp_path, monkeypatch):
    repository = world(tmp_path)
    monkeypatch.setattr(os, "rename", refusing)
    with pytest.raises(SetupError, match="nothing is changed: model: Permission denied"):
        carry_out(repository)


def test_a_full_disk_is_told_with_the_file_that_found_no_room(tmp_path, monkeypatch):
    repository = world(tmp_path)
    before = snapshot(tmp_path)
    real = write.write_file

    def full(place, content, *rest):
        if content == b"changed":
            monkeypatch.setattr(os, "open", lambda *_: real_open("/dev/full", os.O_WRONLY))
        try:
            real(place, content, *rest)
        finally:
            monkeypatch.setattr(os, "open", real_open)

    real_open = os.open
    monkeypatch.setattr(write, "write_file", full)
    with pytest.raises(SetupError, match=r"nothing is changed: .*/executor/config.pbtxt: No space left on device"):
        carry_out(repository)
    assert snapshot(tmp_path) == before
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/file'"):
        full(tmp_path / "file", b"changed")


def test_a_second_interrupt_only_delays_what_undoes(tmp_path):
    calls = count(tmp_path)
    for at, distance in itertools.product(range(calls - 25, calls), range(1, 6)):
        folder = tmp_path / f"{at}.{distance}"
        repository = world(folder)
        before = snapshot(folder)
        with pytest.MonkeyPatch.context() as patch:
            Failing(patch, at, KeyboardInterrupt(), late=True)
            Failing(patch, at + distance, KeyboardInterrupt(), late=True)
            try:
                carry_out(repository)
            except KeyboardInterrupt:
                assert snapshot(folder) == before
            else:
                assert not [name for name in snapshot(folder) if ".priority-router-wrap-" in name]
        shutil.rmtree(folder)


def test_where_undoing_fails_it_says_what_is_left_and_keeps_the_old_file(tmp_path, monkeypatch):
    repository = world(tmp_path)
    real, calls = os.replace, []

    def replace(old, new):
        calls.append(new)
        if len(calls) > 1:
            raise OSError(5, "Input/output error", str(old), None, str(new))
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(SetupError, match=r"Input/output error; undoing it failed, which leaves .*config.pbtxt: Input"):
        carry_out(repository)
    (kept,) = repository.glob("executor/.priority-router-wrap-*.old")
    assert kept.read_bytes().startswith(b"# The owner's own words.")


def test_a_repository_is_made_with_the_folders_above_it_and_unmade(tmp_path, monkeypatch):
    repository = world(tmp_path)
    made = tmp_path / "a" / "b" / "c"
    before = snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refusing)
        with pytest.raises(SetupError):
            carry_out(repository, made)
    assert snapshot(tmp_path) == before
    carry_out(repository, made)
    assert sorted(path.name for path in made.iterdir()) == ["model", "model_router"]


def test_modes_and_links_stay(tmp_path):
    repository = world(tmp_path)
    config = repository / "executor" / "config.pbtxt"
    config.rename(repository / "executor" / "base.pbtxt")
    config.symlink_to("base.pbtxt")
    source = tmp_path / "outside" / "model"
    (source / "1" / "weights").chmod(0o400)
    (source / "config.pbtxt").chmod(0o604)
    umask = os.umask(0o077)
    try:
        carry_out(repository)
    finally:
        os.umask(umask)
    assert config.is_symlink()
    assert (repository / "executor" / "base.pbtxt").read_bytes() == b"changed"
    modes = {
        path: stat.S_IMODE((repository / path).stat().st_mode)
        for path in ("executor/base.pbtxt", "model/1/weights", "model/config.pbtxt", "model_router/1", "router/2")
    }
    assert modes == {
        "executor/base.pbtxt": 0o640,
        "model/1/weights": 0o400,
        "model/config.pbtxt": 0o604,
        "model_router/1": 0o755,
        "router/2": 0o755,
    }
    assert stat.S_IMODE((repository / "model_router" / "config.pbtxt").stat().st_mode) == 0o644
    assert (repository / "model" / "2").readlink() == Path("1")
    assert not (repository / "model" / "1" / "shared").is_symlink()


def test_a_server_that_polls_meanwhile_sees_no_folder_that_is_no_model(tmp_path, monkeypatch):
    """Triton takes every folder of a repository for a model, hidden or not."""
    repository = world(tmp_path)
    seen: set[str] = set()

    def watching(real):
        def call(*args, **kwargs):
            seen.update(path.name for path in repository.iterdir() if path.is_dir())
            return real(*args, **kwargs)

        return call

    for module, name in CALLS:
        monkeypatch.setattr(module, name, watching(getattr(module, name)))
    carry_out(repository)
    assert seen == {"executor", "router", "model", "model_router"}


def test_a_repository_that_is_a_file_system_of_its_own_is_built_inside(tmp_path, monkeypatch):
    repository = world(tmp_path)
    real = os.rename

    def rename(old, new):
        if (repository in Path(old).parents) != (repository in Path(new).parents):
            raise OSError(18, "Invalid cross-device link", str(old), None, str(new))
        real(old, new)

    monkeypatch.setattr(os, "rename", rename)
    carry_out(repository)
    assert sorted(path.name for path in repository.iterdir()) == ["executor", "model", "model_router", "router"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "repository"]


def test_without_hard_links_the_old_file_is_copied(tmp_path, monkeypatch):
    repository = world(tmp_path)
    monkeypatch.setattr(os, "link", refusing)
    before = snapshot(tmp_path)
    done = []

    def replace(old, new, real=os.replace):
        done.append(new)
        if len(done) == 2:
            raise OSError(1, "no", "x")
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(SetupError):
        carry_out(repository)
    assert snapshot(tmp_path) == before


def test_what_somebody_else_made_meanwhile_is_left_alone(tmp_path, monkeypatch):
    repository = world(tmp_path)
    real = write.make_folder

    def make(place):
        (repository / "model").mkdir(exist_ok=True)
        real(place)

    monkeypatch.setattr(write, "make_folder", make)
    with pytest.raises(SetupError, match="model: was made by somebody else meanwhile"):
        carry_out(repository)
    assert (repository / "model").is_dir()
    assert not (repository / "model_router").exists()


@pytest.mark.parametrize("name", ["executor/config.pbtxt", "router/2/new.toml"])
def test_what_somebody_edited_meanwhile_is_left_alone(tmp_path, monkeypatch, name):
    repository = world(tmp_path)
    before = snapshot(tmp_path)
    real = write.write_file

    def edit(place, *rest):
        real(place, *rest)
        if not (repository / name).exists() or (repository / name).read_bytes() == IDENTITY.encode():
            (repository / name).parent.mkdir(exist_ok=True)
            (repository / name).write_bytes(b"edited")

    monkeypatch.setattr(write, "write_file", edit)
    with pytest.raises(SetupError, match=f"nothing is changed: .*{name}: was changed by somebody else meanwhile; run"):
        carry_out(repository)
    after = snapshot(tmp_path)
    assert after.pop(f"repository/{name}")[1] == b"edited"
    before.pop(f"repository/{name}", None)
    after.pop("repository/router/2", None)
    assert after == before
