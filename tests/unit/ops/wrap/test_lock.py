# SPDX-License-Identifier: Apache-2.0
"""One wrap at a time in a repository."""

from __future__ import annotations

import fcntl
import os

import pytest
from priority_router.ops.wrap import command, findings, lock, plan
from support.bare_models import model


def is_locked(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_the_repository_is_locked_from_the_first_look_to_the_last_rename(tmp_path, monkeypatch):
    seen = []

    def watching(real):
        def call(*args):
            seen.append(is_locked(tmp_path))
            made = real(*args)
            seen.append(is_locked(tmp_path))
            return made

        return call

    monkeypatch.setattr(plan, "make", watching(plan.make))
    monkeypatch.setattr(findings, "of", watching(findings.of))
    monkeypatch.setattr(plan.Plan, "carry_out", watching(plan.Plan.carry_out))
    executor = model(tmp_path / "model")
    assert command.main([str(executor), "--into", str(tmp_path)]) == 0
    assert seen == [True] * 6
    assert not is_locked(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model_router"]


def test_it_says_what_it_waits_for(tmp_path, monkeypatch, capfd):
    asked = []

    def flock(_, operation):
        asked.append(operation)
        if operation & fcntl.LOCK_NB:
            raise BlockingIOError

    monkeypatch.setattr(fcntl, "flock", flock)
    with lock.held(tmp_path) as locked:
        assert locked
    assert asked == [fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX]
    assert capfd.readouterr().err == f"priority-router wrap: waiting for another wrap in {tmp_path}\n"


def test_what_cannot_be_locked_is_wrapped_all_the_same(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(37, "No locks available")

    with lock.held(tmp_path / "missing") as locked:
        assert not locked
    monkeypatch.setattr(fcntl, "flock", flock)
    with lock.held(tmp_path) as locked:
        assert not locked
    with pytest.raises(OSError, match="ours"), lock.held(tmp_path):
        raise OSError("ours")
