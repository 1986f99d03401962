# SPDX-License-Identifier: Apache-2.0
"""``scripts/demo``: real files, a real model, two classes of traffic on one executor, with and without priority."""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from priority_router.ops import command_line
from priority_router.ops.demo import experiment, files, filetype, report

PROGRAM: Final = "scripts/demo"
DEFAULT_SECONDS: Final = 25.0
"""Some 600 online requests per arm on two small cores, and all arms together in under three minutes."""

DEFAULT_SEED: Final = 1
FILES: Final = 200
SHOWN_KINDS: Final = (".py", ".md", ".toml", ".c", ".html", ".png", ".wav", ".zip")
"""One file of each is classified at the end, as far as the sample has them."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the demonstration; returns the exit status."""
    options = _parser().parse_args(words)
    with command_line.interrupted_by_sigterm():
        return command_line.exit_status(PROGRAM, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    began = time.monotonic()

    def progress(text: str) -> None:
        print(f"[{time.monotonic() - began:4.0f} s] {text}", flush=True)

    folders = [options.model_repository.resolve().parent, Path(sysconfig.get_paths()["stdlib"])]
    rule = filetype.load_rule(options.model_repository)
    samples = files.collect(folders, FILES, options.seed, rule)
    progress(f"{len(samples)} files of this repository and of Python's library: {files.kinds(samples)}")
    first_of_kind = {sample.kind: sample for sample in samples}
    shown = [first_of_kind[kind] for kind in SHOWN_KINDS if kind in first_of_kind]
    results = experiment.run(options.model_repository, samples, shown, options.seconds, options.seed, progress)
    progress("done\n")
    print(report.as_text(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        PROGRAM, "Real files, a real model, two classes of traffic, with and without priority."
    )
    parser.add_argument("--model-repository", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--seconds",
        type=command_line.seconds,
        default=DEFAULT_SECONDS,
        help="of counted arrivals per arm (default %(default)g)",
    )
    parser.add_argument(
        "--seed", type=command_line.whole_number(0), default=DEFAULT_SEED, help="of the arrivals (default %(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
