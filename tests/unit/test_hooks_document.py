# SPDX-License-Identifier: Apache-2.0
"""docs/hooks.md names what the code names."""

from pathlib import Path

from priority_router import hooks

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "hooks.md").read_text()


def test_every_name_of_the_contract_is_documented_and_in_the_library():
    library = (ROOT / "backends" / "priority_router" / "hooks" / "priority_router_hooks.c").read_text()
    names = [hooks.LEVEL_KEY, hooks.LOADED_ENV, hooks.GUARDED_MODELS_ENV, hooks.SLICE_ENV, *hooks.SWITCHES.values()]
    assert [name for name in names if f'"{name}"' not in library] == []
    assert [name for name in names if f"`{name}`" not in DOCUMENT] == []
