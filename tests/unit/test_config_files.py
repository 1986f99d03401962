# SPDX-License-Identifier: Apache-2.0
"""policy.toml as a file: how it is read, and where in it a fault is said to stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from priority_router.config import load_policy
from priority_router.errors import PolicyError
from unit.test_config import LEAST, LEAST_POLICY, TOP


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(LEAST, encoding="utf-8-sig")
    assert load_policy(path) == LEAST_POLICY


def test_a_file_is_read_as_utf8(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("# größer\n" + LEAST, encoding="utf-8")
    assert load_policy(path).executor == "model"
    path.write_bytes(b"# \xff\n")
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(path)
    with pytest.raises(PolicyError, match=r"no such file; a router's version folder must hold policy\.toml"):
        load_policy(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [("level = 2", "level = 0", ":11: "), ("level = 2", "level =", ":11: "), (TOP, "", ": ")],
)
def test_a_fault_in_a_file_has_its_line_where_it_stands_in_one(tmp_path: Path, old: str, new: str, place: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(LEAST.replace(old, new), encoding="utf-8-sig")
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}{place}")
