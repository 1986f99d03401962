# SPDX-License-Identifier: Apache-2.0
"""What lies in the place of a file and is none is told, and never waited for."""

from __future__ import annotations

import os
import re

import pytest
from priority_router.errors import SetupError
from priority_router.ops.wrap import options, plan, reading, source
from support.bare_models import IDENTITY, model

LABELLED = IDENTITY.replace("dims: [ 4 ] } ]\ninst", 'dims: [ 4 ] label_filename: "labels.txt" } ]\ninst')


def pipe(path):
    os.mkfifo(path)
    return "a pipe"


def endless(path):
    path.symlink_to("/dev/zero")
    return "a device"


def folder(path):
    path.mkdir()
    return "a folder"


THINGS = (pipe, endless, folder)


def test_a_file_is_read_and_a_missing_one_is_none(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert reading.content(tmp_path / "link", 5) == b"12345"
    assert reading.content(tmp_path / "missing") is None
    assert reading.content(tmp_path / "file" / "below") is None
    with pytest.raises(SetupError, match="file: has 0 MB, and wrap reads up to 0; correct it"):
        reading.content(tmp_path / "file", 4)


@pytest.mark.parametrize("make", THINGS)
def test_a_configuration_that_is_no_file_is_told(tmp_path, make):
    owner = model(tmp_path / "model")
    (owner / "config.pbtxt").unlink()
    what = make(owner / "config.pbtxt")
    with pytest.raises(SetupError, match=re.escape(f"{owner}/config.pbtxt: is {what} and no file; put a file")):
        source.read(owner)


@pytest.mark.parametrize("make", THINGS)
@pytest.mark.parametrize("name", ["config.pbtxt", "1/policy.toml", "labels.txt"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_routers_file_that_is_none_is_told(tmp_path, make, name, force):
    owner = model(tmp_path / "model", LABELLED, {"labels.txt": "a\n"})
    words = [str(owner), "--into", str(tmp_path), *force]
    plan.make(options.parse(words)).carry_out()
    router = tmp_path / "model_router"
    (router / name).unlink()
    what = make(router / name)
    with pytest.raises(SetupError, match=re.escape(f"{router / name}: is {what} and no file; put a file")):
        plan.make(options.parse(words))


@pytest.mark.parametrize("make", THINGS)
def test_labels_that_are_no_file_are_missing(tmp_path, make):
    owner = model(tmp_path / "somewhere" / "model", LABELLED)
    make(owner / "labels.txt")
    made = plan.make(options.parse([str(owner), "--into", str(owner.parent)]))
    assert made.missing_labels == ("labels.txt",)
