# SPDX-License-Identifier: Apache-2.0
"""docs/policy.md has every key of the policy, with the kind, default and meaning that the code has."""

import json
from pathlib import Path

import pytest
from priority_router.policy_fields import CLASS, EXECUTOR_SHAPE, LATEST_VERSION, REQUIRED, TOP_LEVEL, Field

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "policy.md").read_text()


def default(field: Field) -> str:
    if field.default is REQUIRED:
        return "required"
    if field.default in (None, LATEST_VERSION):
        return "-"
    return f"`{json.dumps(field.default)}`"


def rows(fields: tuple[Field, ...]) -> str:
    return "".join(f"| `{field.key}` | {field.kind} | {default(field)} | {field.meaning} |\n" for field in fields)


@pytest.mark.parametrize("fields", [TOP_LEVEL, EXECUTOR_SHAPE, CLASS], ids=["top", "executor_shape", "class"])
def test_every_key_is_there(fields: tuple[Field, ...]) -> None:
    assert f"| --- | --- | --- | --- |\n{rows(fields)}\n" in DOCUMENT
