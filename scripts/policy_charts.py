# SPDX-License-Identifier: Apache-2.0
"""Draws what each policy does and what it costs, by the simulator: docs/charts, from docs/results/policy-charts.json.

The same scheduler as the router's, on a virtual clock; every run has its seed, so the same files come out. Runs with
the Python of .venv, in about half a minute; scripts/results.py then renews the texts around the charts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import chart_svg
from priority_router.core.scheduler import Scheduler
from priority_router.core.values import MILLISECOND, SECOND, FairBy, Order, Request, SchedulingPolicy, TrafficClass
from priority_router.errors import Outcome
from priority_router.ops import command_line, result_file
from priority_router.ops.simulate.arrivals import Stream, rows_up_to, traffic
from priority_router.ops.simulate.executor import Call, ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import Setup, Simulation
from priority_router.ops.simulate.summary import percentile

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
RESULT: Final = DOCS / "results" / "policy-charts.json"
FOLDER: Final = DOCS / "charts"
SEED: Final = 1
SECONDS: Final = 60
WARM_UP: Final = 5 * SECOND
"""Not counted: the scheduler learns, queues fill."""

MEGABYTE: Final = 1_000_000
MS: Final = MILLISECOND
FLAT: Final = ServiceTimes(50 * MS, spread=0.02)
ROWS: Final = 4
FLAT_CAPACITY: Final = ROWS * SECOND / FLAT.base
FLAT_WORDS: Final = f"The executor takes {FLAT.base // MS} ms per batch of up to {ROWS} rows."
SINGLE: Final = ServiceTimes(10 * MS, spread=0.02)
SINGLE_WORDS: Final = f"The executor takes {SINGLE.base // MS} ms per request."


class Sized(Scheduler):
    """The scheduler, with requests of one megabyte per row.

    Attributes:
        most_held: bytes that waited at most.
    """

    most_held = 0

    def submit(self, requests: Sequence[Request], now: int) -> None:
        """Take in requests, given their sizes."""
        super().submit([replace(each, size=each.rows * MEGABYTE) for each in requests], now)

    def advance(self, now: int) -> list[Any]:
        """Decide, and note what waits then."""
        actions = super().advance(now)
        self.most_held = max(self.most_held, sum(self.waiting_bytes.values()))
        return actions


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run; requests that arrived during the warm-up are not counted.

    Attributes:
        simulation: as it ended.
        until: ns at which the last request arrived.
        tenants: whom each request was for.
        taken: ns that the executor ran rows of each class.
        rows: rows that the executor finished, by class.
    """

    simulation: Simulation
    until: int
    tenants: Sequence[str]
    taken: Mapping[str, float]
    rows: Mapping[str, int]

    def numbers(self, class_name: str, tenant: str | None = None) -> list[int]:
        """Requests of a class that are counted, or of one tenant in it."""
        sim = self.simulation
        counted = enumerate(zip(sim.class_names, self.tenants, sim.arrived, strict=False))  # some may not have arrived
        return [
            number
            for number, (name, whom, at) in counted
            if name == class_name and tenant in (None, whom) and at >= WARM_UP
        ]

    def latency_ms(self, class_name: str, share: float, tenant: str | None = None) -> float:
        """Percentile of the time from arrival to answer, of those that were answered; a whole number of ms."""
        sim = self.simulation
        answered = [n for n in self.numbers(class_name, tenant) if sim.outcomes[n] is Outcome.SUCCESS]
        ordered = sorted(sim.answered[number] - sim.arrived[number] for number in answered)
        return round(percentile(ordered, share) / MS)

    def mean_refusal_ms(self, class_name: str) -> float:
        """Mean time from arrival to answer of those that were not served; a whole number of ms."""
        sim = self.simulation
        refused = [n for n in self.numbers(class_name) if sim.outcomes[n] not in (Outcome.SUCCESS, None)]
        return round(fmean(sim.answered[number] - sim.arrived[number] for number in refused) / MS)

    def share_of(self, class_name: str, outcome: Outcome) -> float:
        """Percent of a class's requests that ended so."""
        ended = [self.simulation.outcomes[number] for number in self.numbers(class_name)]
        return round(100 * ended.count(outcome) / (len(ended) - ended.count(None)), 1)

    def rows_per_s(self, class_name: str) -> float:
        """Rows that the executor finished per second."""
        return round(self.rows.get(class_name, 0) * SECOND / (self.until - WARM_UP), 1)

    def time_share(self, class_name: str) -> float:
        """Percent of the executor's time."""
        return round(100 * self.taken.get(class_name, 0.0) / (self.until - WARM_UP), 1)


def play(
    classes: Sequence[TrafficClass],
    times: ServiceTimes,
    rows: int,
    streams: Sequence[Stream],
    make: Callable[[SchedulingPolicy], Scheduler] = Scheduler,
    **keys: Any,
) -> Run:
    """One run of these streams on one executor instance of ``rows`` rows; ``keys`` are the policy's."""
    until = SECONDS * SECOND
    policy = SchedulingPolicy(tuple(classes), max_batch_size=rows, **keys)
    arrivals = list(traffic(streams, SEED, until))
    simulation = Simulation(make(policy), Setup(ExecutorShape(1, rows), times), arrivals, SEED)
    taken: dict[str, float] = {}
    finished: dict[str, int] = {}
    ended = simulation.executor.on_batch_end

    def note(calls: list[Call]) -> None:
        now = simulation.loop.now
        for call in calls:
            if call.start >= WARM_UP:
                for part in call.owner[1].parts:
                    name = simulation.class_names[part.request_id]
                    finished[name] = finished.get(name, 0) + part.rows
                    taken[name] = taken.get(name, 0.0) + (now - call.start) * part.rows / sum(one.rows for one in calls)
        ended(calls)

    simulation.executor.on_batch_end = note
    simulation.run(until)
    return Run(simulation, until, [each.tenant for each in arrivals], taken, finished)


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.0f} %"


def line(name: str, values: Sequence[float], ink: int = 0) -> dict[str, Any]:
    """One line of a panel; ``ink`` is 1 for class background, and for the policy beside none."""
    return {"name": name, "ink": ink, "y": list(values)}


def chart(x_label: str, x: Sequence[str], does: Any, costs: Any, conditions: str) -> dict[str, Any]:
    """A chart of two panels, each given as its y label and its lines."""
    panels = [{"y_label": y_label, "lines": lines} for y_label, lines in (does, costs)]
    return {"x_label": x_label, "x": list(x), "panels": panels, "conditions": conditions}


def order() -> dict[str, Any]:
    """Who is not served in time, by arrival and by deadline, and what the patient pay for the others."""
    loads, hurried, patient, burst = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1), 100 * MS, 2 * SECOND, 20
    runs: dict[Order, list[Run]] = {}
    for kind in Order:
        for load in loads:
            half = load * SECOND / SINGLE.base / 2
            streams = [Stream("online", half, timeout=hurried), Stream("online", half, timeout=patient, burst=burst)]
            runs.setdefault(kind, []).append(play([TrafficClass("online", 1, order=kind)], SINGLE, 1, streams))

    def lines(figure: Callable[[Run], float]) -> list[dict[str, Any]]:
        return [line(kind.value, [figure(run) for run in runs[kind]], int(kind is Order.DEADLINE)) for kind in Order]

    return chart(
        "load, as a share of the capacity",
        [f"{load:g}" for load in loads],
        ("timed out, %", lines(lambda run: run.share_of("online", Outcome.TIMEOUT))),
        ("p99 of those served, ms", lines(lambda run: run.latency_ms("online", 0.99))),
        f"One class: half of its requests come one by one with a timeout of {hurried // MS} ms, half in bursts of "
        f"{burst} with one of {patient // SECOND} s. {SINGLE_WORDS}",
    )


def reject_predicted_late() -> dict[str, Any]:
    """How soon callers hear that they are not served, and how many are served."""
    times, loads, timeout, burst = replace(SINGLE, spread=0.6), (0.9, 1.0, 1.1, 1.3, 1.6, 2.0), 300 * MS, 10
    runs: dict[bool, list[Run]] = {}
    for early in (False, True):
        for load in loads:
            streams = [Stream("online", load * SECOND / SINGLE.base, burst=burst, timeout=timeout)]
            online = TrafficClass("online", 1, reject_predicted_late=early)
            runs.setdefault(early, []).append(play([online], times, 1, streams))

    def lines(figure: Callable[[Run], float]) -> list[dict[str, Any]]:
        named = ((False, "off"), (True, "on"))
        return [line(name, [figure(run) for run in runs[early]], int(early)) for early, name in named]

    return chart(
        "load, as a share of the capacity",
        [f"{load:g}" for load in loads],
        ("those not served hear of it after, ms", lines(lambda run: run.mean_refusal_ms("online"))),
        ("served, %", lines(lambda run: run.share_of("online", Outcome.SUCCESS))),
        f"One class in bursts of {burst} requests with a timeout of {timeout // MS} ms; the mean of those not served. "
        f"The executor takes {times.base * (1 - times.spread) / MS:g} to {times.base * (1 + times.spread) / MS:g} ms "
        "per request, which nobody can predict.",
    )


def max_blocking() -> dict[str, Any]:
    """How long urgent requests stand behind others, and the rows/s that it costs."""
    times, rows = ServiceTimes(4 * MS, 4 * MS, spread=0.02), 8
    online, background = 30, 300
    bounds = (0, 26, 22, 18, 14, 10)
    streams = [Stream("online", online), Stream("background", background)]
    runs = [
        play([TrafficClass("online", 1, max_blocking=bound * MS), TrafficClass("background", 2)], times, rows, streams)
        for bound in bounds
    ]
    return chart(
        "max_blocking_microseconds, in ms",
        ["off", *(str(bound) for bound in bounds[1:])],
        (
            "online latency, ms",
            [line(f"p{share * 100:.0f}", [run.latency_ms("online", share) for run in runs]) for share in (0.99, 0.5)],
        ),
        ("background, rows/s", [line("background", [run.rows_per_s("background") for run in runs], 1)]),
        f"Online asks for {online} rows/s and background for {background}. The executor takes {times.base // MS} ms "
        f"per batch and {times.per_row // MS} ms per row, of which it takes {rows} at most.",
    )


def max_wait() -> dict[str, Any]:
    """How long the less urgent wait at most, and what it costs the urgent."""
    bounds, online, background, burst = (0, 8, 4, 2, 1), 0.8, 0.1, 10
    capacity = SECOND / SINGLE.base
    streams = [Stream("online", online * capacity, burst=burst), Stream("background", background * capacity)]
    runs = [
        play([TrafficClass("online", 1), TrafficClass("background", 2, max_wait=bound * SECOND)], SINGLE, 1, streams)
        for bound in bounds
    ]
    return chart(
        "max_wait_microseconds, in s",
        ["off", *(str(bound) for bound in bounds[1:])],
        (
            "background latency, s",
            [
                line("longest", [run.latency_ms("background", 1.0) / 1000 for run in runs], 1),
                line("p50", [run.latency_ms("background", 0.5) / 1000 for run in runs], 1),
            ],
        ),
        ("online p99, ms", [line("online p99", [run.latency_ms("online", 0.99) for run in runs])]),
        f"Online asks for {percent(online)} of the capacity, in bursts of {burst} requests, and background for "
        f"{percent(background)}. {SINGLE_WORDS}",
    )


def min_share() -> dict[str, Any]:
    """What a class gets, and what it costs the urgent, who want all there is."""
    shares, online, most = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), 1.2, 40
    streams = [Stream("online", online * FLAT_CAPACITY), Stream("background", FLAT_CAPACITY)]
    runs = [
        play(
            [TrafficClass("online", 1, max_queue_size=most), TrafficClass("background", 2, min_share=share)],
            FLAT,
            ROWS,
            streams,
        )
        for share in shares
    ]
    return chart(
        "min_share of background",
        ["off", *(f"{share:g}" for share in shares[1:])],
        (
            "executor's time, %",
            [
                line(name, [run.time_share(name) for run in runs], ink)
                for ink, name in ((1, "background"), (0, "online"))
            ],
        ),
        ("online p99, ms", [line("online p99", [run.latency_ms("online", 0.99) for run in runs])]),
        f"Online asks for {online:g} times the capacity and background for all of it; at most {most} online requests "
        f"wait. {FLAT_WORDS}",
    )


def fair_by() -> dict[str, Any]:
    """What one tenant that sends ever more costs another, and what that one pays then."""
    modest, greedy = 0.3, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    capacity = SECOND / SINGLE.base
    runs: dict[FairBy, list[Run]] = {}
    for kind in FairBy:
        for share in greedy:
            streams = [
                Stream("online", modest * capacity, tenant="modest"),
                Stream("online", share * capacity, burst=10, tenant="greedy"),
            ]
            runs.setdefault(kind, []).append(play([TrafficClass("online", 1, fair_by=kind)], SINGLE, 1, streams))

    def lines(tenant: str) -> list[dict[str, Any]]:
        return [
            line(kind.value, [run.latency_ms("online", 0.99, tenant) for run in runs[kind]], int(kind is FairBy.TENANT))
            for kind in FairBy
        ]

    return chart(
        "what greedy asks for, as a share of the capacity",
        [f"{share:g}" for share in greedy],
        ("p99 of tenant modest, ms", lines("modest")),
        ("p99 of tenant greedy, ms", lines("greedy")),
        f"Two tenants of one class: modest asks for {percent(modest)} of the capacity, request by request, greedy for "
        f"more and more in bursts of 10. {SINGLE_WORDS}",
    )


def max_queue_bytes() -> dict[str, Any]:
    """What is held at most, and how much is refused for it."""
    limits, load, burst, most_rows = (0, 200, 100, 50, 25, 12), 0.9, 20, 4
    mean = (1 + most_rows) / 2
    streams = [Stream("background", load * FLAT_CAPACITY / mean, rows_up_to(most_rows), burst=burst)]
    runs = [
        play([TrafficClass("background", 1)], FLAT, ROWS, streams, Sized, max_queue_bytes=limit * MEGABYTE)
        for limit in limits
    ]
    held = [run.simulation.scheduler.most_held / MEGABYTE for run in runs]  # type: ignore[attr-defined]
    return chart(
        "max_queue_bytes, in MB",
        ["off", *(str(limit) for limit in limits[1:])],
        ("most held, MB", [line("held", held, 1)]),
        ("refused, %", [line("refused", [run.share_of("background", Outcome.QUEUE_FULL) for run in runs], 1)]),
        f"Requests of 1 to {most_rows} rows of one MB each come in bursts of {burst} and ask for {percent(load)} of "
        f"the capacity. {FLAT_WORDS}",
    )


CHARTS: Final[Mapping[str, Callable[[], dict[str, Any]]]] = {
    "order": order,
    "reject_predicted_late": reject_predicted_late,
    "max_blocking": max_blocking,
    "max_wait": max_wait,
    "min_share": min_share,
    "fair_by": fair_by,
    "max_queue_bytes": max_queue_bytes,
}
"""By the knob, without its unit."""


def main(words: list[str] | None = None) -> int:
    """Runs the script; returns the exit status."""
    parser = command_line.parser("policy_charts", "Draws what each policy does and what it costs, by the simulator.")
    parser.add_argument("knob", nargs="*", help=f"default all: {', '.join(CHARTS)}")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.knob if name not in CHARTS]
    if unknown:
        parser.error(f"no chart {unknown[0]!r}; there are {', '.join(CHARTS)}")
    return command_line.exit_status(parser.prog, lambda: run(asked))


def run(asked: argparse.Namespace) -> int:
    """Simulates and draws."""
    kept = json.loads(RESULT.read_text(encoding="utf-8"))["charts"] if RESULT.exists() else {}
    for name in asked.knob or CHARTS:
        kept[name] = CHARTS[name]()
    charts = {name: kept[name] for name in CHARTS if name in kept}
    document = {
        "schema": result_file.CHARTS_SCHEMA,
        "seed": SEED,
        "seconds": SECONDS,
        "warmup_seconds": WARM_UP // SECOND,
        "charts": charts,
    }
    result_file.write(RESULT, document)
    FOLDER.mkdir(exist_ok=True)
    for name, data in charts.items():
        (FOLDER / f"{name}.svg").write_text(chart_svg.drawn(data), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
