# SPDX-License-Identifier: Apache-2.0
"""Small policies as text, for tests to which a key or two of them matter."""

from __future__ import annotations


def a_class(name: str, level: int, more: str = "") -> str:
    """One ``[[class]]``, with further lines of it."""
    return "\n".join(filter(None, ["[[class]]", f'name = "{name}"', f"level = {level}", more])) + "\n"


ONLINE = a_class("online", 1)
BULK = a_class("bulk", 2)


def a_policy(*tables: str, top: str = "", instances: int = 1, size: int = 4) -> str:
    """A policy for the executor ``model``.

    Args:
        tables: its classes, and whatever else may follow the shape.
        top: further lines at the top.
        instances: of the executor.
        size: rows that it takes at once.
    """
    head = ["policy_version = 1", 'executor = "model"', top.strip("\n")]
    shape = ["[executor_shape]", f"instances = {instances}", f"max_batch_size = {size}", ""]
    return "\n".join(filter(None, head)) + "\n" + "\n".join(shape) + "".join(tables)
