# SPDX-License-Identifier: Apache-2.0
import os

import pytest
from priority_router.ops.server import log as log_module
from priority_router.ops.server.log import FileLog, ForwardedLog

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """It waits no longer for its reader than it must; here it waits until everything has been passed on."""
    monkeypatch.setattr(log_module, "_PASS_ON_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    os.close(writing)


def written(log, *lines):
    with log.writer() as descriptor:
        for line in lines:
            os.write(descriptor if isinstance(descriptor, int) else descriptor.fileno(), line)
    log.close(PATIENCE_SECONDS)


def test_a_file_gets_everything_and_is_remembered_when_it_goes(tmp_path):
    log = FileLog(tmp_path / "log")
    assert log.text() == ""
    written(log, b"one\n", b"tw\xffo\n")
    log.path.unlink()
    assert log.text() == "one\ntw�o\n"


def test_lines_go_on_and_stay_known(pipe):
    reading, writing = pipe
    log = ForwardedLog(writing)
    written(log, b"one\n", b"half", b" a line\n", b"no end")
    assert os.read(reading, 100) == b"one\nhalf a line\nno end"
    assert log.text() == "one\nhalf a line\nno end"


def test_a_reader_that_went_away_does_not_stop_the_server(pipe):
    reading, writing = pipe
    os.close(reading)
    log = ForwardedLog(writing)
    written(log, *[b"x" * 1000 + b"\n"] * 200)
    assert log.text().count("\n") == 200


def test_only_the_end_is_kept(pipe):
    reading, writing = pipe
    os.close(reading)
    log = ForwardedLog(writing)
    written(log, *[b"%d\n" % number for number in range(5000)])
    assert log.text().splitlines()[-1] == "4999"
    assert len(log.text().splitlines()) == 2000
