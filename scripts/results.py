# SPDX-License-Identifier: Apache-2.0
"""Writes the numbers of docs/results into README.md and docs/*.md: marked sections, and numbers within sentences.

A section stands between ``<!-- results: NAME -->`` and ``<!-- end of results -->``; NAME is a scenario (its table),
``aims`` (all aims, reached or not), ``summary`` (one line per scenario and arm), ``beside`` (where the router is faster
than stock Triton with the hook, and where slower), ``modes`` (the router's two modes, beside each other), ``cost`` (of
the way through the router), ``overhead-parts`` (where its time goes), ``file-type`` (scenarios with a real model),
``simulated`` (the scheduling rules on a virtual clock), ``chart-KNOB`` (of a policy), ``wrong-predictions`` (what
policies are worth then), ``ensemble`` (the steps around the router), ``hooks`` (what prompt dispatch costs),
``simulate`` (what an example of it prints), ``agreement`` (simulator and server, beside each other), ``soak`` and
``soak-overload`` (long runs) or ``demo`` (what scripts/demo prints). Sentences are those of result_sentences.py. Runs
with the Python of .venv.
"""

from __future__ import annotations

import re
import sys

import result_bench
import result_policies
import result_sentences
import result_simulator
import result_soak
import result_tables
from priority_router.ops import command_line
from result_tables import ResultsError

SECTION = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
OPENING = re.compile(r"<!-- results: ")


def refreshed(document: str, text: str) -> str:
    """A document, named by its path from the root, with its sections and sentences made anew."""
    if len(OPENING.findall(text)) != len(SECTION.findall(text)):
        raise ResultsError("a section has no end, or an odd name")
    text = SECTION.sub(lambda found: found[1] + section(found["name"]) + found[3], text)
    return result_sentences.refreshed(document, text)


def section(name: str) -> str:
    """The text of one section."""
    for section_of in (result_bench.section, result_simulator.section, result_policies.section, result_soak.section):
        made = section_of(name)
        if made is not None:
            return made
    return result_tables.section(name)


def main(words: list[str] | None = None) -> int:
    """Runs the script; returns the exit status."""
    parser = command_line.parser("results", "Writes the numbers of docs/results into the documents.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit status 1 when a number is not in step"
    )
    check = parser.parse_args(words).check
    return command_line.exit_status(parser.prog, lambda: run(check))


def run(check: bool) -> int:
    """Writes every number anew, or looks whether that would change anything."""
    stale = []
    for path in [result_tables.ROOT / "README.md", *sorted((result_tables.ROOT / "docs").glob("*.md"))]:
        if not path.is_file():
            continue
        name = str(path.relative_to(result_tables.ROOT))
        before = path.read_text(encoding="utf-8")
        try:
            after = refreshed(name, before)
        except ResultsError as error:
            raise ResultsError(f"{name}: {error}") from error
        if after != before:
            stale.append(name)
            if not check:
                path.write_text(after, encoding="utf-8")
    if check and stale:
        raise ResultsError(
            f"numbers not those of docs/results: {', '.join(stale)}; run .venv/bin/python scripts/results.py"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
