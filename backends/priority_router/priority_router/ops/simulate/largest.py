# SPDX-License-Identifier: Apache-2.0
"""The most rows that a request to a router may have, which its ``config.pbtxt`` says and its policy does not."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.interface import BACKEND
from priority_router.ops.rules.finding import CONFIG_FILE

OPTION: Final = "--router-config"


@dataclass(frozen=True, slots=True)
class Largest:
    """Most rows of a request.

    Attributes:
        rows: see above; None: not known.
        source: who says so.
    """

    rows: int | None
    source: str = ""


NO_BATCH_AXIS: Final = Largest(1, "the executor has no batch axis")


def add_option(to: argparse._ActionsContainer) -> None:
    """``--router-config``, for `of_router`."""
    to.add_argument(
        OPTION,
        type=Path,
        metavar="FILE",
        help=f"the router's {CONFIG_FILE}, whose max_batch_size is the most rows of a request; default: the one above "
        "the policy's version folder, if it is there",
    )


def of_router(policy: Path, config: Path | None) -> Largest:
    """What a router's configuration says.

    Args:
        policy: the router's file.
        config: its configuration; None: the one above the policy's version folder, if it is there.

    Raises:
        SetupError: the file cannot be read, or is not that of a router.
        PbtxtError: it cannot be used.
        ModuleNotFoundError: protobuf is not installed.
    """
    beside = policy.parent.parent / CONFIG_FILE
    if config is not None and config.suffix == ".toml":
        raise SetupError(f"{OPTION} {config}: that is TOML; name the router's {CONFIG_FILE}")
    path = config or (beside if beside.is_file() else None)
    return Largest(None) if path is None else Largest(_limit(path), f"max_batch_size of {path}")


def _limit(path: Path) -> int:
    """``max_batch_size`` of a router, 1 where it has no batch axis."""
    from priority_router.ops.pbtxt.reading import examine  # needs an extra that nothing else here does

    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise SetupError(f"{path}: cannot be read ({error.strerror}); name the router's {CONFIG_FILE}") from error
    reading = examine(text, str(path))
    if isinstance(reading, list):
        raise reading[0]
    if reading.config.backend != BACKEND:
        raise SetupError(
            f"{path}: its backend is {reading.config.backend!r}, so it is no router; name the {CONFIG_FILE} that has "
            f'backend: "{BACKEND}"'
        )
    return max(1, int(reading.config.max_batch_size))
