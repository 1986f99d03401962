# SPDX-License-Identifier: Apache-2.0
"""The command line: picks the command; each module brings its own options and is imported only when it is run.

So ``serve``, ``probe`` and ``install`` need the standard library and numpy alone, whatever the others need.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final

from priority_router import __version__
from priority_router.ops import command_line

COMMANDS: Final = {
    "serve": ("priority_router.ops.server.serve", "run tritonserver with the router's backend and hooks"),
    "probe": ("priority_router.ops.probe.command", "ask for one real answer through the router: exit code 0 or 1"),
    "lint": ("priority_router.ops.lint.command", "check model repositories before a server sees them"),
    "install": ("priority_router.ops.install", "write the backend folder for a server that `serve` does not start"),
    "wrap": ("priority_router.ops.wrap.command", "put a router in front of a model that you have"),
    "sweep": ("priority_router.ops.sweep", "measure rows/s of a model by the rows of a batch"),
    "simulate": ("priority_router.ops.simulate.command", "try a policy on a modelled executor, in virtual time"),
    "bench": ("priority_router.ops.bench.command", "measure the router against stock Triton, side by side"),
}
"""Command to the module whose ``main(words)`` runs it, and one line of help."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        words: arguments without the program's name; default those of the process.

    Returns:
        Exit status, see `command_line`.
    """
    given = list(sys.argv[1:] if words is None else words)
    width = max(map(len, COMMANDS))
    parser = command_line.parser(
        "priority-router",
        "A priority lane for one Triton model shared by several classes of traffic.",
        epilog="commands:\n" + "\n".join(f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"priority-router {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="see below; COMMAND --help says more")
    name = parser.parse_args(given[:1]).command

    def run() -> int:
        status: int = importlib.import_module(COMMANDS[name][0]).main(given[1:])
        return status

    return command_line.exit_status(f"priority-router {name}", run)


if __name__ == "__main__":
    sys.exit(main())
