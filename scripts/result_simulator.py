# SPDX-License-Identifier: Apache-2.0
"""What stands in docs/simulate.md of the simulator's own numbers: an example's output, its agreement with a server.

Law: files in, Markdown out. The example is simulated here, which gives the same numbers everywhere.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from priority_router.ops import result_file
from priority_router.ops.bench.table import cell, short
from priority_router.ops.simulate import command
from result_tables import ROOT, Document, ResultsError, read, table

EXAMPLE: Final = (
    "priority-router simulate --policy examples/simulate/policy.toml --profile examples/simulate/profile.json "
    "--rate online=16 --rate background=110,timeout=3000000 --seconds 20 --rounds 3",
    "priority-router simulate --policy examples/simulate/policy.toml --profile examples/simulate/profile.json "
    "--arrivals examples/simulate/arrivals.csv",
)
"""Commands, run at the root of the repository."""

_QUANTILES: Final = {"p50_ms": "p50", "p95_ms": "p95"}


def agreement() -> Document:
    """What scripts/agreement.py wrote."""
    return read("agreement.json", "scripts/agreement.py", result_file.AGREEMENT_SCHEMA)


def simulator() -> Document:
    """What scripts/measure_simulator.py wrote."""
    return read("simulator.json", "scripts/measure_simulator.py", result_file.SIMULATOR_SCHEMA)


def example_section() -> Iterator[str]:
    """What the commands of the example print."""
    yield "```console"
    for place, line in enumerate(EXAMPLE):
        if place:
            yield ""
        first, *more = line.split(" --")
        pairs = [" ".join(f"--{word}" for word in more[at : at + 2]) for at in range(0, len(more), 2)]
        yield f"$ {first} " + " \\\n    ".join(pairs)
        yield printed(line).rstrip("\n")
    yield "```"


def printed(line: str) -> str:
    """What a command of the example prints."""
    out = io.StringIO()
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(out):
            status = command.main(shlex.split(line)[2:])
    finally:
        os.chdir(before)
    if status:
        raise ResultsError(f"{line}: exit status {status}")
    return out.getvalue()


def agreement_section() -> Iterator[str]:
    """Server and simulator side by side, by load, class and quantile."""
    document = agreement()
    rows = []
    for name, one in document["loads"].items():
        for at, class_name in enumerate(one["differences"]):
            for step, (what, shown) in enumerate(_QUANTILES.items()):
                measured, predicted = (
                    cell(one["arms"][arm]["classes"][class_name]["latency"][what]) for arm in ("server", "simulator")
                )
                difference = one["differences"][class_name][what]
                first = name if at == step == 0 else ""
                rows.append(
                    [first, class_name if step == 0 else "", shown, measured, predicted, f"{100 * difference:+.1f} %"]
                )
    yield from table(["load", "class", "", "server, ms", "simulator, ms", "difference"], rows)
    yield ""
    beyond = [row for row in rows if abs(float(row[-1].removesuffix(" %"))) > 100 * document["limit"]]
    verdict = "all are" if not beyond else f"{len(rows) - len(beyond)} of {len(rows)} are"
    yield (
        f"Medians of {document['rounds']} rounds (lowest-highest) of {document['seconds']:g} s after "
        f"{document['warmup_seconds']:g} s of warm-up, {document['cores']} cores; the simulator draws each round "
        f"{document['draws']} times. The aim is {100 * document['limit']:.0f} %: {verdict} within it. "
        "`scripts/agreement.py`"
    )


SECTIONS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "simulate": example_section,
    "agreement": agreement_section,
}


def section(name: str) -> str | None:
    """The text of one of these sections; None for a name of others."""
    made = SECTIONS.get(name)
    return None if made is None else "\n".join(made()) + "\n"


def speed() -> Mapping[str, str]:
    """docs/simulate.md: what the simulator costs."""
    document = simulator()
    queued = max(map(int, document["queued"]))
    cost: Mapping[str, Any] = document["queued"][str(queued)]
    return {
        "requests": f"{document['requests']:,}",
        "seconds": short(document["seconds"]),
        "decision": short(cost["decision"]),
        "queued": f"{queued:,}",
    }
