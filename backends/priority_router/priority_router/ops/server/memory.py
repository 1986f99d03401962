# SPDX-License-Identifier: Apache-2.0
"""Whether the largest request that a router accepts finds room in shared memory. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from priority_router.ops.probe.question import row_bytes

_MIB: Final = 1 << 20


def least_needed(router: Mapping[str, Any], executor: Mapping[str, Any]) -> int:
    """Bytes without which the largest request cannot be served, even alone: what is there at the same time.

    Args:
        router: its configuration as JSON.
        executor: that of the model that it calls.
    """
    rows = max(1, int(router.get("max_batch_size", 0)))
    batch = min(rows, max(1, int(executor.get("max_batch_size", 0))))
    coming, going = (row_bytes(router.get(side) or []) for side in ("input", "output"))
    return max(rows * coming, batch * (coming + going), rows * going)


def warning(name: str, router: Mapping[str, Any], executor: Mapping[str, Any], free: int) -> str | None:
    """What to tell an operator whose server has too little; None where it may be enough.

    Args:
        name: of the router.
        router: its configuration as JSON.
        executor: that of the model that it calls.
        free: bytes.
    """
    needed = least_needed(router, executor)
    if needed <= free:
        return None
    return (
        f"router {name!r} accepts requests of {router.get('max_batch_size', 0)} rows, for which shared memory is too "
        f"small: one needs {needed / _MIB:.1f} MiB at least, /dev/shm has {free / _MIB:.1f} MiB free; give the "
        "container more of it (--shm-size, shm_size), or lower the router's max_batch_size"
    )
