# SPDX-License-Identifier: Apache-2.0
"""A model's folder in another place: its content, its modes, and no way back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from priority_router.errors import SetupError
from priority_router.ops.wrap import copying
from support.bare_models import model, snapshot


def copied(folder, into, instead=None):
    into.mkdir()
    copying.copy(folder, into, instead or {})
    return snapshot(into)


def test_a_copy_is_equal_and_has_nothing_of_the_original(tmp_path):
    folder = model(tmp_path / "model", files={"1/deep/er/weights": "w", "labels.txt": "a"})
    (folder / "1" / "deep").chmod(0o750)
    (folder / "labels.txt").chmod(0o600)
    before = snapshot(folder)
    assert copied(folder, tmp_path / "copy") == before
    (tmp_path / "copy" / "labels.txt").write_text("changed")
    assert snapshot(folder) == before
    assert copying.differences(folder, tmp_path / "copy", {}) == ["labels.txt"]


def test_links_that_stay_inside_stay_links_and_others_become_what_they_lead_to(tmp_path):
    folder = model(tmp_path / "model", files={"1/weights": "w"})
    (tmp_path / "blobs" / "inner").mkdir(parents=True)
    (tmp_path / "blobs" / "inner" / "f").write_text("blob")
    (tmp_path / "blobs" / "same").symlink_to("inner")
    (folder / "2").symlink_to("1")
    (folder / "1" / "up").symlink_to("../config.pbtxt")
    (folder / "3").symlink_to(folder / "1")
    (folder / "4").symlink_to("../blobs")
    (folder / "f").symlink_to("../blobs/inner/f")
    (folder / "5").symlink_to("../model/1")
    copied(folder, tmp_path / "copy")
    copy = tmp_path / "copy"
    links = {path.name: str(path.readlink()) for path in copy.rglob("*") if path.is_symlink()}
    assert links == {"2": "1", "up": "../config.pbtxt", "same": "inner"}
    assert (copy / "3" / "weights").read_text() == (copy / "5" / "weights").read_text() == "w"
    assert (copy / "4" / "same" / "f").read_text() == (copy / "f").read_text() == "blob"
    assert copying.differences(folder, copy, {}) == []


@pytest.mark.parametrize("target", ["..", "../..", "."])
def test_links_in_a_circle_are_refused(tmp_path, target):
    folder = model(tmp_path / "a" / "model")
    (folder / "1" / "loop").symlink_to((folder / "1" / target).resolve())
    with pytest.raises(SetupError, match=r"1/loop: is a link to .*; remove it"):
        list(copying.items(folder))


def test_a_link_that_leads_nowhere_and_what_is_no_file_are_refused(tmp_path):
    folder = model(tmp_path / "a")
    (folder / "1" / "gone").symlink_to("nothing")
    with pytest.raises(SetupError, match="gone: is a link to 'nothing', which leads nowhere"):
        list(copying.items(folder))
    (folder / "1" / "gone").unlink()
    os.mkfifo(folder / "1" / "pipe")
    with pytest.raises(SetupError, match="pipe: is neither file nor folder"):
        list(copying.items(folder))


def test_content_in_place_of_a_files_own_goes_where_a_link_leads(tmp_path):
    folder = model(tmp_path / "model", files={"configs/base.pbtxt": "base"})
    config = folder / "config.pbtxt"
    config.unlink()
    config.symlink_to("configs/base.pbtxt")
    assert copying.place_of(folder, "config.pbtxt") == Path("configs/base.pbtxt")
    copied(folder, tmp_path / "copy", {copying.place_of(folder, "config.pbtxt"): b"new"})
    assert (tmp_path / "copy" / "config.pbtxt").is_symlink()
    assert (tmp_path / "copy" / "config.pbtxt").read_text() == "new"
    (tmp_path / "outer.pbtxt").write_text("outer")
    config.unlink()
    config.symlink_to("../outer.pbtxt")
    assert copying.place_of(folder, "config.pbtxt") == Path("config.pbtxt")
    copied(folder, tmp_path / "other", {Path("config.pbtxt"): b"new"})
    assert not (tmp_path / "other" / "config.pbtxt").is_symlink()
    assert (tmp_path / "other" / "config.pbtxt").read_text() == "new"
    assert (tmp_path / "outer.pbtxt").read_text() == "outer"


def test_differences_are_what_is_missing_or_has_another_content(tmp_path):
    folder = model(tmp_path / "model", files={"a": "1", "b": "2", "c/d": "3"})
    copied(folder, tmp_path / "copy", {Path("a"): b"new"})
    copy = tmp_path / "copy"
    assert copying.differences(folder, copy, {Path("a"): b"new"}) == []
    (copy / "more").write_text("its own")
    assert copying.differences(folder, copy, {Path("a"): b"new"}) == []
    assert copying.differences(folder, copy, {Path("a"): b"newer"}) == ["a"]
    (copy / "b").write_text("3")
    (copy / "c" / "d").unlink()
    (copy / "c").rmdir()
    (copy / "c").write_text("")
    assert copying.differences(folder, copy, {Path("a"): b"new"}) == ["b", "c", "c/d"]
