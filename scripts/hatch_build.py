# SPDX-License-Identifier: Apache-2.0
"""Build hook: compiles the preloaded library and puts what a server needs into the wheel.

An editable install compiles in place and leaves everything else where it is.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BACKENDS = Path(__file__).resolve().parents[1] / "backends"
sys.path.insert(0, str(BACKENDS / "priority_router"))

from priority_router.ops.build_hooks import build_hooks  # noqa: E402


class HooksBuildHook(BuildHookInterface[Any]):
    """Compiles, tags the wheel for this platform and fills ``priority_router/_backend``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a wheel is written; ``version`` is ``standard`` or ``editable``."""
        library = build_hooks()
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        if version == "standard":
            carried = {
                library: library.name,
                BACKENDS / "priority_router" / "model.py": "model.py",
                BACKENDS / "onnxruntime": "onnxruntime",
            }
            build_data["force_include"].update(
                {str(source): f"priority_router/_backend/{name}" for source, name in carried.items()}
            )
