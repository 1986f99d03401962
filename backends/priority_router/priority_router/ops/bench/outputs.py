# SPDX-License-Identifier: Apache-2.0
"""What is made of a run's document, after measuring or later: a page, and a table for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from priority_router.ops import result_file
from priority_router.ops.bench import csv_table
from priority_router.ops.bench.page import page

_MADE = {"--html": page.as_html, "--csv": csv_table.as_csv}
"""Option to what makes the text of its file."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds ``--html`` and ``--csv``."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="where to write a page to look at")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="where to write a table: arm, round and class per row")


def wanted(options: argparse.Namespace) -> dict[str, Path]:
    """The files that are asked for, by option."""
    asked = {option: getattr(options, option.removeprefix("--")) for option in _MADE}
    return {option: path for option, path in asked.items() if path is not None}


def check(options: argparse.Namespace) -> None:
    """Refuses what `write` could not write.

    Raises:
        SetupError: as `result_file.check_writable` does.
    """
    for option, path in wanted(options).items():
        result_file.check_writable(path, option)


def write(document: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Writes the files that are asked for, and says so."""
    for option, path in wanted(options).items():
        result_file.write_text(path, _MADE[option](document))
        print(f"{path}: written")
