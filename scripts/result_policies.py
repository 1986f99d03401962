# SPDX-License-Identifier: Apache-2.0
"""What stands in the marked sections of docs/policies.md. Law: files of docs/results in, Markdown out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import chart_svg
from priority_router.ops import result_file
from result_tables import Document, ResultsError, read, table

CHART: Final = "chart-"
"""How the name of a section begins that is the chart of a policy."""


def policy_charts() -> Document:
    """What scripts/policy_charts.py wrote."""
    return read("policy-charts.json", "scripts/policy_charts.py", result_file.CHARTS_SCHEMA)


def policies() -> Document:
    """What scripts/measure_policies.py wrote."""
    return read("policies.json", "scripts/measure_policies.py", result_file.POLICIES_SCHEMA)


def memory() -> Document:
    """What scripts/measure_memory.py wrote."""
    return read("memory.json", "scripts/measure_memory.py", result_file.MEMORY_SCHEMA)


def chart_section(name: str) -> Iterator[str]:
    """The chart of a policy, with what it shows in words and what was simulated."""
    document = policy_charts()
    if name not in document["charts"]:
        raise ResultsError(f"no chart {name!r}; there are {', '.join(document['charts'])}")
    chart = document["charts"][name]
    yield f"![{chart_svg.in_words(chart)}](charts/{name}.svg)"
    yield ""
    yield f"{chart['conditions']} Simulated, {document['seconds']} s. `scripts/policy_charts.py {name}`"


def wrong_predictions_section() -> Iterator[str]:
    """What bounds and shares are worth where predictions are wrong."""
    document = policies()
    low, high = (1 + sign * document["wrong_percent"] / 100 for sign in (-1, 1))
    executors = {
        "accurate": "always as learned",
        "each wrong": f"each execution {low:g} to {high:g} times as long as the mean",
        "drifting": f"slows down to {document['slowdown']:g} times its time and back within a minute",
    }
    rows = []
    for arm, measured in document["arms"].items():
        blocking, age, shares = measured["blocking"], measured["age"], measured["shares"]
        rows.append(
            [
                executors[arm],
                f"{blocking['over_budget_percent']:g} %",
                f"{blocking['longest_in_budgets'] * document['budget_ms']:.0f} ms",
                f"{age['longest_wait_ms']:g} ms",
                f"{age['by_arrival_ms']:g} ms",
                " and ".join(f"{share:.1f} %" for share in shares.values()),
            ]
        )
    asked = " and ".join(f"{share:g} %" for share in document["share_percent"].values())
    budget, bound = document["budget_ms"], document["max_wait_ms"]
    columns = (f"over a budget of {budget:g} ms", "the longest", f"longest wait, age bound {bound:g} ms", "by arrival")
    yield from table(["executor", *columns, f"shares, asked for {asked}"], rows)
    yield ""
    yield (
        "Over a budget: of the less urgent dispatches. By arrival: the longest wait where everybody is served in order "
        f"of arrival. Simulated, {document['seconds']} s each, the first {document['warmup_seconds']} not counted. "
        "`scripts/measure_policies.py`"
    )


SECTIONS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {"wrong-predictions": wrong_predictions_section}


def section(name: str) -> str | None:
    """The text of one section; None where it is none of these."""
    if name.startswith(CHART):
        return "\n".join(chart_section(name.removeprefix(CHART))) + "\n"
    return "\n".join(SECTIONS[name]()) + "\n" if name in SECTIONS else None
