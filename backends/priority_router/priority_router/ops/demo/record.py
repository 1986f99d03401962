# SPDX-License-Identifier: Apache-2.0
"""A run of the demonstration as a file, without its single requests, and what it printed, made from that file.

Law: values in, values out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from priority_router import __version__
from priority_router.ops import result_file
from priority_router.ops.bench.paired import Comparison
from priority_router.ops.bench.stats import ClassSummary, RoundSummary
from priority_router.ops.demo import progress, report, verdict
from priority_router.ops.demo.measurements import Capacity, Classified, Results
from priority_router.ops.demo.verdict import Verdict

SCHEMA: Final = "priority-router-demo/1"
"""Changes with every change that a reader of the old form would stumble over."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run printed.

    Attributes:
        results: what was measured; without single requests where it was read from a file.
        verdict: what they say.
        said: what it told while it ran, as seconds from the beginning and text.
        written: its files.
    """

    results: Results
    verdict: Verdict
    said: Sequence[tuple[float, str]]
    written: Sequence[Path]

    def printed(self) -> str:
        """All of its output."""
        told = [progress.line(seconds, text) for seconds, text in self.said]
        files = [report.written(path) for path in self.written]
        return "\n".join([*told, report.as_text(self.results, self.verdict), *files])


def as_json(run: Run, seconds: float, seed: int) -> dict[str, Any]:
    """The run for a file: no single requests, and of paths nothing that tells of the machine.

    Args:
        run: the run.
        seconds: of counted arrivals per arm.
        seed: of the arrivals.
    """
    judged = run.verdict
    return {
        "schema": SCHEMA,
        "versions": {"priority_router": __version__},
        "cores": len(os.sched_getaffinity(0)),
        "seconds": seconds,
        "seed": seed,
        "said": [[round(at, 3), text] for at, text in run.said],
        "capacity": asdict(run.results.capacity),
        "arms": {name: summary.as_json() for name, summary in run.results.arms.items()},
        "classified": [{**asdict(one), "path": one.path.name} for one in run.results.classified],
        "verdict": {
            "sentence": judged.sentence,
            "online": {name: _plain(one) for name, one in judged.online.items()},
            "background": {name: _plain(one) for name, one in judged.background.items()},
        },
        "written": [result_file.shown(path) for path in run.written],
    }


def from_json(document: Mapping[str, Any]) -> Run:
    """The run that `as_json` made a document of; its findings are put into words anew."""
    arms = {
        name: RoundSummary(
            **{**one, "classes": {each: ClassSummary(**summary) for each, summary in one["classes"].items()}}
        )
        for name, one in document["arms"].items()
    }
    classified = [Classified(**{**one, "path": Path(one["path"])}) for one in document["classified"]]
    judged = document["verdict"]
    online, background = (
        {name: Comparison(**{key: float(value) for key, value in one.items()}) for name, one in judged[part].items()}
        for part in ("online", "background")
    )
    words = verdict.sentence(online, background) if online else judged["sentence"]
    return Run(
        Results(Capacity(**document["capacity"]), arms, {}, classified),
        Verdict(words, online, background),
        [(at, text) for at, text in document["said"]],
        [Path(path) for path in document["written"]],
    )


def _plain(one: Comparison) -> dict[str, float | str]:
    """Its numbers; those without end as text, since JSON has none."""
    return {key: value if math.isfinite(value) else str(value) for key, value in asdict(one).items()}
