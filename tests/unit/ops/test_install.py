# SPDX-License-Identifier: Apache-2.0
import shutil
import stat
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops import assets, cli, install


@pytest.fixture(autouse=True)
def parts(tmp_path, monkeypatch):
    folder = tmp_path / "parts"
    package = folder / "priority_router"
    (package / "core" / "__pycache__").mkdir(parents=True)
    (package / "_backend").mkdir()
    for name in ("core/a.py", "core/__pycache__/a.pyc", "_backend/model.py"):
        (package / name).touch()
    (folder / "model.py").write_text("new")
    (folder / "hooks.so").touch()
    monkeypatch.setattr(assets, "package_folder", lambda: package)
    monkeypatch.setattr(assets, "model_file", lambda: folder / "model.py")
    monkeypatch.setattr(assets, "hooks_library", lambda: folder / "hooks.so")


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_everything_a_server_needs_and_nothing_else(tmp_path):
    folder = install.install(tmp_path / "deep" / "backends")
    assert folder == tmp_path / "deep" / "backends" / "priority_router"
    assert tree(folder) == [
        ".installed-by-priority-router",
        "hooks/libpriority_router_hooks.so",
        "model.py",
        "priority_router/core/a.py",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["priority_router"], "scratch files were left"


def test_the_path_printed_has_no_detours(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert str(install.install(Path("../b"))) == str(tmp_path / "b" / "priority_router")


@pytest.mark.parametrize("name", ["", "a\nb"])
def test_a_folder_that_cannot_be_meant_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(SetupError, match="no usable folder name"):
        install.main([name])
    assert tree(tmp_path) == before


def test_other_users_may_read_it_whatever_the_umask(tmp_path):
    (tmp_path / "parts" / "model.py").chmod(0o600)
    folder = install.install(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "model.py").stat().st_mode) == 0o644


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
def test_our_own_is_replaced_whole(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(install, "_exchange", lambda one, other: False)
    folder = install.install(tmp_path / "b")
    (folder / "stale.py").touch()
    (folder / "model.py").write_text("old")
    install.install(tmp_path / "b")
    assert "stale.py" not in tree(folder)
    assert (folder / "model.py").read_text() == "new"
    assert [path.name for path in folder.parent.iterdir()] == ["priority_router"]


@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling"])
def test_what_is_not_ours_stays_without_force(tmp_path, kind):
    other = tmp_path / "other"
    other.mkdir()
    (other / "theirs.py").touch()
    taken = tmp_path / "b" / "priority_router"
    taken.parent.mkdir()
    {
        "folder": lambda: taken.mkdir(),
        "file": lambda: taken.touch(),
        "link": lambda: taken.symlink_to(other),
        "dangling": lambda: taken.symlink_to(tmp_path / "nowhere"),
    }[kind]()
    with pytest.raises(SetupError, match="--force"):
        install.install(tmp_path / "b")
    assert not (taken / "model.py").exists()
    install.install(tmp_path / "b", force=True)
    assert (taken / "model.py").read_text() == "new"
    assert tree(other) == ["theirs.py"]


def test_a_failure_halfway_leaves_the_old_one(tmp_path, monkeypatch):
    folder = install.install(tmp_path / "b")
    (folder / "model.py").write_text("old")

    def full(*args, **options):
        raise OSError(28, "No space left on device", "there")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(SetupError, match="No space left on device"):
        install.install(tmp_path / "b")
    assert (folder / "model.py").read_text() == "old"
    assert [path.name for path in folder.parent.iterdir()] == ["priority_router"]


def test_what_to_start_the_server_with_is_printed(tmp_path, capsys):
    assert cli.main(["install", str(tmp_path / "b")]) == 0
    printed = capsys.readouterr().out
    for part in (
        f"LD_PRELOAD={tmp_path}/b/priority_router/hooks/libpriority_router_hooks.so",
        "PRIORITY_ROUTER_GUARDED_MODELS=",
        f"--backend-directory={tmp_path}/b",
        "--backend-config=python,thread-pool-size=",
        "4 x executor instances + 12",
    ):
        assert part in printed
    assert "warning" not in printed


def test_a_path_that_ld_preload_would_split_is_warned_of(tmp_path, capsys):
    assert cli.main(["install", str(tmp_path / "a b")]) == 0
    assert "warning: LD_PRELOAD is split" in capsys.readouterr().out
