# SPDX-License-Identifier: Apache-2.0
"""The demonstration's results as text. Law: results in, text out."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Final

from priority_router.ops.bench.stats import RoundSummary
from priority_router.ops.demo import tables
from priority_router.ops.demo.measurements import Classified, Results
from priority_router.ops.demo.verdict import Verdict

WIDTH: Final = 100
_ROW: Final = "{:14}{:12}{:>9}{:>9}{:>8}{:>9}{:>10}{:>10}{:>10}"


def as_text(results: Results, verdict: Verdict) -> str:
    """Tables of what each class experienced on each arm and of the classified files, what to beware of, the verdict."""
    lines = [tables.LATENCY_MEANS, "", _ROW.format("arm", "class", *tables.OUTCOMES, *tables.TIMES)]
    for name, summary in results.arms.items():
        lines += _arm(name, summary)
    lines += ["", "What the executor did:", *(_executor(name, one) for name, one in results.arms.items())]
    lines += ["", *(f"  {name:14}{meaning}" for name, meaning in tables.meanings(results).items())]
    lines += [f"warning: {text}" for text in tables.warnings(results)]
    lines += ["", f"Files classified {tables.files_mean(results)}:"]
    lines += [_classified(one) for one in results.classified]
    lines += ["", *textwrap.wrap(verdict.sentence, WIDTH), *textwrap.wrap(tables.ROUTER_ADDS, WIDTH)]
    return "\n".join(lines)


def written(path: Path) -> str:
    """The line about a file that was written, with its path from the current folder on where that is shorter."""
    return f"{min(os.path.relpath(path), os.path.abspath(path), key=len)}: written"


def _arm(name: str, summary: RoundSummary) -> list[str]:
    return [
        _ROW.format(name if position == 0 else "", class_name, *tables.of_class(one).values())
        for position, (class_name, one) in enumerate(summary.classes.items())
    ]


def _executor(name: str, summary: RoundSummary) -> str:
    return "  {:14}busy {}, {} rows per batch, {} ms per row".format(name, *tables.of_executor(summary).values())


def _classified(one: Classified) -> str:
    cells = tables.of_file(one)
    return "  {file:44}{label:14}{score:>6}   router {router:>5} ms, executor {executor:>5} ms".format(**cells)
