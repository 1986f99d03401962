# SPDX-License-Identifier: Apache-2.0
"""The numbers of the sentences in result_sentences.py, as text, from the files in docs/results.

Law: files in, text out. Where words rest on numbers that they do not state, the function refuses once the numbers say
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import result_policies
import result_tables
from priority_router.core.values import SchedulingPolicy
from priority_router.ops.bench.table import short
from priority_router.ops.loads import BACKGROUND, ONLINE
from result_tables import Document, ResultsError

Values = Mapping[str, str]
"""By the name that a sentence has in a number's place."""

EFFICIENCY: Final = SchedulingPolicy.__dataclass_fields__["batch_efficiency"].default
"""Of batches, unless a policy says otherwise."""

FLOOR: Final = "online p50 / floor of 75 ms (half a batch + its own)"
"""An aim of overload."""

_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def hold(true: bool, claim: str) -> None:
    """Refuses words that the numbers do not bear.

    Raises:
        ResultsError: they are not true.
    """
    if not true:
        raise ResultsError(f"docs/results no longer bears what is written: {claim}; write what it says now")


def word(number: int) -> str:
    """A small number as a word."""
    return _WORDS[number] if number < len(_WORDS) else str(number)


def median(document: Document, arm: str, *keys: str) -> float:
    """An arm's number, over the rounds."""
    value: Any = document["arms"][arm]
    for key in keys:
        value = value[key]
    return float(value["median"])


def aim(document: Document, text: str, arm: str = "router") -> Mapping[str, Any]:
    """What became of an aim on an arm."""
    found: Mapping[str, Any] = next(one for one in document["aims"] if (one["text"], one["arm"]) == (text, arm))
    return found


def demo_cores() -> Values:
    """README.md: the machine of the demonstration."""
    return {"cores": word(result_tables.demo()["cores"])}


def bench_cores() -> Values:
    """README.md: the machine of the benchmark."""
    cores = {result_tables.load(name)["cores"] for name in result_tables.measured()}
    hold(len(cores) == 1, "all scenarios were run on machines alike")
    return {"cores": word(cores.pop())}


def bench_minutes() -> Values:
    """docs/performance.md: how long requests are sent, in all scenarios together."""
    seconds = 0.0
    for document in map(result_tables.load, result_tables.measured()):
        run = document["scenario"]
        steps = len(run["in_flight"]) or 1
        seconds += run["rounds"] * len(run["arms"]) * steps * (run["warmup_seconds"] + run["seconds"])
    return {"minutes": f"{seconds / 60:.0f}"}


def generator_cost() -> Values:
    """docs/performance.md: the load generator at its highest rate."""
    document = result_tables.load("overhead")
    step = f"{max(document['scenario']['in_flight'])} in flight"
    rate = median(document, "levels+hooks", "classes", step, "rows_per_s")
    return {"rate": f"{rate:,.0f}", "percent": f"{100 * median(document, 'levels+hooks', 'client_cpu'):.0f}"}


def _open_load(scenario: Mapping[str, Any]) -> Values:
    executor, rates = scenario["executor"], {one["name"]: one["rate"] for one in scenario["loads"]}
    return {
        "ms": short((executor["batch_us"] or executor["row_us"]) / 1e3),
        "rows": short(executor["max_batch_size"]),
        "online": short(rates[ONLINE]),
        "background": short(rates[BACKGROUND]),
    }


def overload_load() -> Values:
    """docs/performance.md: executor and load of the scenario."""
    scenario = result_tables.load("overload")["scenario"]
    executor, asked = scenario["executor"], sum(one["rate"] for one in scenario["loads"])
    capacity = executor["instances"] * executor["max_batch_size"] * 1e6 / executor["batch_us"]
    return {**_open_load(scenario), "times": f"{asked / capacity:.1f}", "floor": short(scenario["floor_ms"])}


def linear_load() -> Values:
    """docs/performance.md: likewise."""
    return _open_load(result_tables.load("linear")["scenario"])


def fast_load() -> Values:
    """docs/performance.md: likewise."""
    return _open_load(result_tables.load("fast")["scenario"])


def listed_overload() -> Values:
    """README.md: the scenario in a line."""
    return _only(overload_load(), "ms", "rows", "times")


def listed_linear() -> Values:
    """README.md: likewise."""
    return _only(linear_load(), "ms", "rows")


def listed_fast() -> Values:
    """README.md: likewise."""
    return _only(fast_load(), "ms", "rows")


def _only(found: Values, *names: str) -> Values:
    return {name: found[name] for name in names}


def shared_grace() -> Values:
    """docs/performance.md: the wait after the last arrival."""
    return {"seconds": short(result_tables.load("shared")["scenario"]["grace_seconds"])}


def overhead_steps() -> Values:
    """docs/performance.md: the closed loop."""
    scenario = result_tables.load("overhead")["scenario"]
    least, most = map(short, scenario["in_flight"])
    return {"rows": short(scenario["executor"]["max_batch_size"]), "least": least, "most": most}


def missed_aims() -> Values:
    """docs/performance.md: the aims whose being missed is explained, and no others."""
    missed = {
        (name, one["text"], one["arm"])
        for name in result_tables.measured()
        for one in result_tables.load(name)["aims"]
        if one["met"] is False
    }
    both = {"router", "router-plain"}
    explained = {
        ("overload", FLOOR): both,
        ("linear", "online p50 / that of levels+hooks"): both,
        ("fast", "rows/s / those of levels+hooks"): both,
        ("shared", "online p99 / that of levels+hooks"): {"router-plain"},
        ("overhead", "rows/s at 64 in flight / those of levels+hooks"): both,
        ("overhead", "p50 at 1 in flight - that of levels+hooks, ms"): both,
    }
    for scenario, text, arm in sorted(missed):
        hold(arm in explained.get((scenario, text), ()), f"nothing of the aim {text} of {scenario}, missed by {arm}")
    for scenario, text in set(explained) - {(scenario, text) for scenario, text, _ in missed}:
        hold(False, f"that the aim {text} of {scenario} was missed")
    return {}


def missed_floor() -> Values:
    """docs/performance.md: how far the p50 of overload is from what no router can beat."""
    document = result_tables.load("overload")
    oracle = document["oracle"]["classes"][ONLINE]["latency"]["p50_ms"]["median"]
    routed = median(document, "router", "classes", ONLINE, "latency", "p50_ms")
    return {
        "limit": short(aim(document, FLOOR)["limit"]),
        "oracle": short(oracle),
        "router": short(routed),
        "more": short(routed - oracle),
    }


def missed_floor_limit() -> Values:
    """docs/performance.md: the aim as it is."""
    return {"limit": missed_floor()["limit"]}


def missed_floor_reason() -> Values:
    """docs/performance.md: the numbers behind it."""
    return {name: text for name, text in missed_floor().items() if name != "limit"}


def missed_linear_limit() -> Values:
    """docs/performance.md: likewise."""
    return {"limit": short(aim(result_tables.load("linear"), "online p50 / that of levels+hooks")["limit"])}


def missed_linear() -> Values:
    """docs/performance.md: which batches would be efficient by the executor's own times, and which the router made."""
    document = result_tables.load("linear")
    times = {int(rows): time for rows, time in document["oracle"]["rounds"][0]["execution_ms"].items()}
    best = min(time / rows for rows, time in times.items())
    enough = min(rows for rows, time in times.items() if EFFICIENCY * time / rows <= best)
    usual = [max(batches, key=lambda rows: int(rows) * batches[rows]) for batches in router_batches(document)]
    hold(enough < int(min(usual, key=int)), "the router's batches in linear are larger than need be")
    return {
        "one": short(times[1]),
        "full": short(times[max(times)] / max(times)),
        "rows": short(max(times)),
        "enough": word(enough),
        "least": word(int(min(usual, key=int))),
        "most": word(int(max(usual, key=int))),
    }


def router_batches(document: Document) -> list[Mapping[str, int]]:
    """Executions by their rows on the arm ``router``, in each round."""
    return [one["router"]["batches"] for one in document["rounds"]]


def missed_shared_limit() -> Values:
    """docs/performance.md: likewise."""
    document = result_tables.load("shared")
    return {"limit": short(aim(document, "online p99 / that of levels+hooks", "router-plain")["limit"])}


def missed_overhead_limit() -> Values:
    """docs/performance.md: likewise."""
    document = result_tables.load("overhead")
    most = short(max(document["scenario"]["in_flight"]))
    return {"most": most, "limit": short(aim(document, f"rows/s at {most} in flight / those of levels+hooks")["limit"])}


def missed_fast_limit() -> Values:
    """docs/performance.md: likewise."""
    return {"limit": short(aim(result_tables.load("fast"), "rows/s / those of levels+hooks")["limit"])}


def missed_fast() -> Values:
    """docs/performance.md: how much of what the way can bear the scenario asks for."""
    fast, overhead = result_tables.load("fast"), result_tables.load("overhead")
    asked = sum(one["rate"] for one in fast["scenario"]["loads"])
    step = f"{max(overhead['scenario']['in_flight'])} in flight"
    most = median(overhead, "router", "classes", step, "rows_per_s")
    hold(asked > most / 2, "fast asks for more than half of what the way through the router bears")
    return {"asked": short(asked), "most": f"{most:,.0f}"}


def missed_way_limit() -> Values:
    """docs/performance.md: likewise, for what the way adds."""
    document = result_tables.load("overhead")
    least = short(min(document["scenario"]["in_flight"]))
    return {
        "least": least,
        "limit": short(aim(document, f"p50 at {least} in flight - that of levels+hooks, ms")["limit"]),
    }


def least_model() -> Values:
    """docs/performance.md: the most that a router in the Python backend could reach."""
    reached = result_tables.overhead_parts()["ways"]["likewise, with two more outputs"]["of_direct"]["median"]
    document = result_tables.load("overhead")
    most = short(max(document["scenario"]["in_flight"]))
    limit = aim(document, f"rows/s at {most} in flight / those of levels+hooks")["limit"]
    hold(reached < limit, "the aim of overhead is out of reach")
    return {"share": short(reached)}


def fast_rows() -> Values:
    """docs/performance.md: throughput with a model that does something."""
    reached = aim(result_tables.load("fast"), "rows/s / those of levels+hooks")["reached"]["median"]
    return {"percent": f"{100 * reached:.0f}"}


def plain_serves_more() -> Values:
    """docs/existing-server.md: the two modes where batches are short."""
    document = result_tables.load("fast")
    levels, plain = (median(document, arm, "classes", BACKGROUND, "rows_per_s") for arm in ("router", "router-plain"))
    hold(1 < plain / levels < 1.1, "in fast, plain serves a little more background than levels")
    return {}


def oracle_serves_less() -> Values:
    """docs/design.md: why the oracle is no measure in one scenario."""
    arms = result_tables.simulated()["scenarios"]["base-and-slope"]
    others = min(one["rows_per_s"] for name, one in arms.items() if name != "oracle")
    hold(arms["oracle"]["rows_per_s"] < others / 2, "in base-and-slope the oracle serves less than half of their rows")
    return {}


def late_load() -> Values:
    """docs/design.md: what keeps the executor busy, and what expires meanwhile."""
    document = result_tables.lateness()
    executor = document["executor"]
    return {
        "ms": short(executor["batch_us"] / 1e3),
        "rows": short(executor["max_batch_size"]),
        "waiting": short(document["waiting"]),
        "rate": short(document["requests_per_s"]),
        "shortest": short(min(document["timeouts_ms"])),
        "longest": short(max(document["timeouts_ms"])),
    }


def late_timeouts() -> Values:
    """docs/design.md: how late the callers of a steady stream hear of their timeouts."""
    document = result_tables.lateness()
    late = document["late"]
    return {
        "runs": word(len(document["modes"]) * document["rounds"]),
        "rounds": word(document["rounds"]),
        "requests": f"{document['requests']:,}",
        "half": short(late["p50_ms"]["median"]),
        "most": short(late["p99_ms"]["median"]),
        "latest": f"{late['max_ms']['high']:.0f}",
        "cores": word(document["cores"]),
    }


def late_bursts() -> Values:
    """docs/design.md: how late the last of many hears of it that were sent at once."""
    document = result_tables.lateness()
    few, many = document["bursts"]
    found = {"few": short(few), "many": short(many)}
    for name, count in (("few", few), ("many", many)):
        spread = document["late"][f"burst_of_{count}_ms"]
        found |= {f"{name}_low": f"{spread['low']:.0f}", f"{name}_high": f"{spread['high']:.0f}"}
    return found


def dispatch_idle() -> Values:
    """docs/hooks.md: the hook with nothing queued."""
    idle = [one["idle_cpu_percent"]["median"] for one in result_tables.hooks()["settings"].values() if len(one) > 4]
    hold(max(idle) - min(idle) < 0.1, "with nothing queued the dispatch hook costs nothing that shows")
    return {}


def dispatch_cost() -> Values:
    """docs/hooks.md: the hook with a queue inside Triton."""
    hooked = result_tables.hooks()["settings"]["levels, slices of 100 us"]
    return {
        "percent": f"{hooked['backlog_of_1_cpu_percent']['median']:.0f}",
        "times": f"{hooked['overload_waits_cut_per_second']['median']:,.0f}",
    }


def dispatch_behind_a_router() -> Values:
    """docs/hooks.md: the hook with the queue in the router."""
    settings = result_tables.hooks()["settings"]
    routed, direct = (
        settings[name]["overload_waits_cut_per_second"]["median"]
        for name in ("router in front, slices of 100 us", "levels, slices of 100 us")
    )
    hold(routed < direct / 100, "with the router in front hardly a wait for an instance is left to cut")
    return {}


def held_memory() -> Values:
    """docs/policies.md: what Triton holds of requests that wait in a router, beside the router's copies."""
    document = result_policies.memory()
    runs = [one for by_size in document["times_of_inputs"].values() for one in by_size.values()]
    totals = [sum(one.values()) for one in runs]
    hold(all(one["server"] > sum(one.values()) / 2 for one in runs), "most of it is tritonserver's own copy")
    sizes = [int(size) for size in document["waiting"]]
    return {
        "least": f"{min(totals):.1f}",
        "most": f"{max(totals):.1f}",
        "small": f"{min(sizes) // 1024}",
        "large": f"{max(sizes) // 1024**2}",
        "in_all": f"{1 + max(totals):.1f}",
    }
