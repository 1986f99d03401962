# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from priority_router.runtime import shared_memory


def test_a_system_that_does_not_say_is_taken_for_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "FOLDER", "/nowhere")
    assert shared_memory.room() is None
    assert not shared_memory.is_tight(1 << 40)
    assert "/nowhere is full" in str(shared_memory.shortage("a reply", 1 << 20))


def test_room_is_that_of_the_system() -> None:
    found = shared_memory.room()
    assert found is not None
    assert 0 <= found.free <= found.total


@pytest.mark.parametrize(("size", "tight"), [(0, False), (1 << 20, False), ((2 << 20) + 1, True)])
def test_what_is_tight(monkeypatch: pytest.MonkeyPatch, size: int, tight: bool) -> None:
    monkeypatch.setattr(shared_memory, "room", lambda: shared_memory.Room(64 << 20, 16 << 20))
    assert shared_memory.is_tight(size) is tight


def test_only_tritons_own_words_are_a_shortage() -> None:
    assert not shared_memory.is_shortage("No space left on device")
    assert shared_memory.is_shortage("Failed to increase the shared memory pool size for key 'x' to 9 bytes.")
