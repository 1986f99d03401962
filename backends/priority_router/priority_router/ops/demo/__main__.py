# SPDX-License-Identifier: Apache-2.0
"""``scripts/demo``: real files, a real model, two classes of traffic on one executor, with and without priority."""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops import command_line, result_file
from priority_router.ops.demo import experiment, files, filetype, record, report, verdict
from priority_router.ops.demo.measurements import Results
from priority_router.ops.demo.progress import Progress

PROGRAM: Final = "scripts/demo"
DEFAULT_SECONDS: Final = 25.0
"""Some 600 online requests per arm on two small cores, and all arms together in under three minutes."""

DEFAULT_SEED: Final = 1
FILES: Final = 200
SHOWN_KINDS: Final = (".py", ".md", ".json", ".sh", ".html", ".png", ".wav", ".zip")
"""One file of each is classified at the end, as far as the sample has them."""

RESULTS: Final = "demo-results"
PAGE: Final = "demo.html"
CHART: Final = "demo.png"


def main(words: Sequence[str] | None = None) -> int:
    """Runs the demonstration; returns the exit status."""
    options = _parser().parse_args(words)
    with command_line.interrupted_by_sigterm():
        return command_line.exit_status(PROGRAM, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    output: Path = options.output or options.model_repository.resolve().parent / RESULTS
    missing = _prepare(output)
    if options.json is not None:
        result_file.check_writable(options.json)
    folders = [options.model_repository.resolve().parent, Path(sysconfig.get_paths()["stdlib"])]
    rule = filetype.load_rule(options.model_repository)
    with Progress(sys.stdout) as progress:
        samples = files.collect(folders, FILES, options.seed, rule)
        progress.say(f"{len(samples)} files of this repository and of Python's library: {files.kinds(samples)}")
        first_of_kind = {sample.kind: sample for sample in samples}
        shown = [first_of_kind[kind] for kind in SHOWN_KINDS if kind in first_of_kind]
        results = experiment.run(options.model_repository, samples, shown, options.seconds, options.seed, progress)
        progress.say("done\n")
    judged = verdict.judge(results)
    print(report.as_text(results, judged))
    written = [] if missing else _write(output, results, judged)
    if missing:
        print(f"\nno page and no chart: {missing}")
    if options.json is not None:
        document = record.as_json(record.Run(results, judged, progress.said, written), options.seconds, options.seed)
        result_file.write(options.json, document)
        written.append(options.json)
    for path in written:
        print(report.written(path))
    return 0


def _prepare(output: Path) -> str | None:
    """Refuses before minutes of measuring what could not be written after them.

    Returns:
        What to install before there can be a page, or None.

    Raises:
        SetupError: the folder cannot be written to.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"--output {output}: {error.strerror}; name a folder that is yours to write") from error
    if not os.access(output, os.W_OK):
        raise SetupError(f"--output {output}: cannot be written to; name a folder that is yours to write")
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as error:
        return command_line.remedy(error)
    return None


def _write(output: Path, results: Results, judged: verdict.Verdict) -> list[Path]:
    """Page and chart, each whole or not at all."""
    # Here and not above: they need matplotlib, and the text does not.
    from priority_router.ops.demo import chart, page

    created = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    html = page.as_html(results, judged, page.pictures(results), created)
    written = []
    for name, content in ((PAGE, html.encode()), (CHART, chart.png(results))):
        draft = output / f"{name}.new"
        draft.write_bytes(content)
        written.append(draft.replace(output / name))
    return written


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
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"where to write {PAGE} and {CHART} (default {RESULTS} beside the model repository)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
