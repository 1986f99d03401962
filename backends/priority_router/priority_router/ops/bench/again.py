# SPDX-License-Identifier: Apache-2.0
"""``priority-router bench report``: page and table of a result that was stored, without measuring again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from priority_router.errors import SetupError
from priority_router.ops import command_line, result_file
from priority_router.ops.bench import document, outputs


def main(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: arguments after ``bench report``.

    Returns:
        0.

    Raises:
        SetupError: the file is no result, or what is asked for cannot be written.
    """
    parser = command_line.parser("priority-router bench report", "Makes a page or a table of a stored result.")
    parser.add_argument("result", type=Path, metavar="RESULT.json", help="what `priority-router bench --json` wrote")
    outputs.add_options(parser)
    options = parser.parse_args(words)
    if not outputs.wanted(options):
        parser.error("name a file to write: --html FILE, --csv FILE, or both")
    outputs.check(options)
    stored = result_file.read(options.result, document.SCHEMA)
    try:
        outputs.write(stored, options)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise SetupError(
            f"{options.result}: has not the form of docs/bench.schema.json ({type(error).__name__}: {error}); "
            "name a file that nobody changed, or measure again"
        ) from error
    return 0
