# SPDX-License-Identifier: Apache-2.0
"""``priority-router simulate --record-profile``: asks a running router and writes what it saw as a profile.

First one request at a time, of each row count in turn, between two readings of the executor's counters: what the
execution took is then known exactly, and what is left of the answer's time are the ways around it. Then requests of one
row at random times, a little more than the executor can serve, for the same under load. With ``--watch`` it sends
nothing and reads the counters only.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from priority_router import __version__
from priority_router.config import load_policy
from priority_router.core.values import SECOND
from priority_router.errors import SetupError
from priority_router.ops import command_line, result_file
from priority_router.ops.bench import model_inputs
from priority_router.ops.simulate import asking, profile
from priority_router.ops.simulate.counted import Counters, Page
from priority_router.ops.simulate.executor import ExecutorShape
from priority_router.ops.simulate.observed import Alone, Loaded, Recording
from priority_router.ops.sweep import powers_of_two

DEFAULT_SECONDS: Final = 30.0
WARM_UPS: Final = 3
"""First requests of each row count, whose times are not kept."""

CYCLES: Final = 6
"""Times that both parts take turns, since a machine is not the same from minute to minute."""

FEWEST_ROUNDS: Final = 1
"""Of every row count that are asked for alone in each cycle, whatever the time."""

MOST_DISTURBED: Final = 10
"""Requests that were not alone, more than those that were, after which a cycle is not gone on with."""

COUNTED_AFTER: Final = 50
COUNTED_SECONDS: Final = 0.002
"""Readings of the counters, and seconds between them, until an execution is among them."""

ALONE_SHARE: Final = 0.5
"""Of the time, for requests one at a time."""

WARM_UP_SHARE: Final = 0.1
"""Of the time under load, at its start: not kept."""

ENOUGH: Final = 10
"""Executions of a row count: of fewer a 90th percentile is the longest that was seen."""

LOAD: Final = 1.05
"""Of what the executor can do in batches of the largest row count, under load: what waits then decides the delays."""

MOST_PER_SECOND: Final = 1000.0
"""Requests under load; more would measure this client and the server's front end."""


def main(words: Sequence[str]) -> int:
    """Records and writes.

    Args:
        words: options.

    Returns:
        0.

    Raises:
        SetupError: the server cannot be asked, or others disturb the recording.
    """
    options = _parser().parse_args(words)
    target: Path = options.record_profile
    result_file.check_writable(target, "--record-profile")
    executor = load_policy(options.policy).executor if options.policy is not None else options.executor
    with command_line.interrupted_by_sigterm(), contextlib.closing(asking.connect(options.url)) as server:
        configs = {model: server.config(model) for model in (options.model, executor)}
        shape = _shape(configs[executor])
        most = max(1, shape.max_batch_size)
        if options.rows and options.rows[-1] > most:
            raise SetupError(f"--rows {options.rows[-1]}: {executor} takes {most} at most; leave it out")
        recording = Recording(shape.instances)
        if options.watch:
            for _ in range(CYCLES):
                before = server.counters(executor)
                time.sleep(options.seconds / CYCLES)
                recording.loads.append(Loaded((), server.counters(executor).since(before)))
            how = "watched: the executor's counters under the traffic of others"
        else:
            config = configs[options.model]
            batched = int(config.get("max_batch_size", 0)) > 0
            inputs = model_inputs.chosen(model_inputs.of_config(config), batched, options.input_data, options.seed)
            questions = {
                rows: asking.Question(options.model, inputs(rows)[0], options.class_name, batched)
                for rows in {1, *(options.rows or powers_of_two(shape.max_batch_size))}
            }
            _warm_up(server, list(questions.values()))
            for cycle in range(CYCLES):
                seconds = options.seconds / CYCLES
                _alone(server, executor, list(questions.values()), seconds * ALONE_SHARE, recording)
                seed = f"{options.seed}/{cycle}"
                seconds *= 1 - ALONE_SHARE
                _together(server, executor, questions[1], seconds, seed, shape, recording, lambda: _page(options))
            how = "asked: requests one at a time, then many"
    execution = recording.execution_us()
    if not execution:
        raise SetupError(f"{options.url}: {executor} ran nothing within {options.seconds:g} s; send it some traffic")
    document = profile.as_json(
        shape,
        execution,
        recording.overhead_us(),
        recording.delays_us(),
        {
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "priority_router": __version__,
            "how": how,
            "model": options.model,
            "executor": executor,
            "seconds": options.seconds,
            "seed": options.seed,
            "executions": sum(recording.executions.values()) + len(recording.alone),
        },
        int(configs[options.model].get("max_batch_size", 0)),
    )
    result_file.write(target, document)
    seen = {
        rows: sum(each.reply.rows == rows for each in recording.alone) or recording.executions[rows]
        for rows in sorted(execution)
    }
    print("rows  executions  ms, median")
    for rows, count in seen.items():
        print(f"{rows:4}  {count:10}  {float(np.median(execution[rows])) / 1e3:10.3f}")
    if warned := few(seen, options.seconds):
        print(f"warning: {warned}")
    print(f"\n{result_file.shown(target)}: written; use: priority-router simulate --profile {target} --policy …")
    return 0


def few(seen: Mapping[int, int], seconds: float) -> str:
    """What to know of a recording that is too short; empty where it is not.

    Args:
        seen: executions by row count, at least one.
        seconds: that it took.
    """
    rows = min(seen, key=lambda count: seen[count])
    if seen[rows] >= ENOUGH:
        return ""
    longer = max(2, math.ceil(seconds * ENOUGH / max(1, seen[rows])))
    return (
        f"of {rows} row{'s' * (rows != 1)} only {seen[rows]} executions were seen, and fewer than {ENOUGH} tell little "
        f"of how times vary; record with --seconds {longer}, or more"
    )


def _warm_up(server: asking.Server, questions: Sequence[asking.Question]) -> None:
    for _, question in itertools.product(range(WARM_UPS), questions):
        server.ask(question)


def _alone(
    server: asking.Server,
    executor: str,
    questions: Sequence[asking.Question],
    seconds: float,
    recording: Recording,
) -> None:
    """One request at a time, each row count in turn."""
    end = time.monotonic() + seconds
    before = server.counters(executor)
    for number in itertools.count():
        if number >= FEWEST_ROUNDS and time.monotonic() > end:
            break
        for question in questions:
            reply = server.ask(question)
            after = _counted(server, executor, before)
            each = Alone(reply, after.since(before))
            before = after
            if each.undisturbed:
                recording.alone.append(each)
            else:
                recording.disturbed += 1
        if recording.disturbed > len(recording.alone) + MOST_DISTURBED:
            break
    if recording.disturbed > len(recording.alone):
        raise SetupError(
            f"{executor} ran more than what was asked here, {recording.disturbed} times in "
            f"{recording.disturbed + len(recording.alone)}: record while nobody else uses it, or with --watch. Where "
            "nobody does, the router splits what is asked: record in a class that no max_blocking_microseconds bounds "
            "(--class), or with that key taken out"
        )


def _counted(server: asking.Server, executor: str, before: Counters) -> Counters:
    """The counters once something was counted: Triton does that after it has answered, on a busy machine long after."""
    for _ in range(COUNTED_AFTER):
        after = server.counters(executor)
        gained = after.since(before)
        if gained.requests and gained.executions:
            break
        time.sleep(COUNTED_SECONDS)
    return after


def _together(
    server: asking.Server,
    executor: str,
    question: asking.Question,
    seconds: float,
    seed: str,
    shape: ExecutorShape,
    recording: Recording,
    page: Callable[[], Page | None],
) -> None:
    """Requests of one row, at random times, nearly as many as the executor can serve."""
    largest = max(recording.execution_us())
    capacity = shape.instances * largest * 1e6 / recording.usual_us(largest)
    rate = min(MOST_PER_SECOND, LOAD * capacity)
    due = _poisson(rate, seconds * (1 - WARM_UP_SHARE), f"{seed}/load")
    if not due:
        return
    server.many(question, _poisson(rate, seconds * WARM_UP_SHARE, f"{seed}/warm-up") or [0])
    before, first = server.counters(executor), page()
    replies = server.many(question, due)
    recording.loads.append(Loaded(replies, server.counters(executor).since(before)))
    last = page()
    if first is not None and last is not None:
        recording.page = last.since(first).plus(recording.page)


def _poisson(rate: float, seconds: float, seed: str) -> list[int]:
    rng = random.Random(seed)
    gaps = itertools.accumulate(iter(lambda: rng.expovariate(rate), None))
    return [round(at * SECOND) for at in itertools.takewhile(lambda at: at < seconds, gaps)]


def _page(options: argparse.Namespace) -> Page | None:
    return None if options.metrics_url is None else asking.page(options.metrics_url, options.model)


def _shape(config: Mapping[str, Any]) -> ExecutorShape:
    """The executor's shape by its configuration, as the server completed it."""
    groups = config.get("instance_group") or [{}]
    instances = sum(int(group.get("count", 1)) * max(1, len(group.get("gpus") or ())) for group in groups)
    batching = config.get("dynamic_batching") or {}
    return ExecutorShape(
        max(1, instances), int(config.get("max_batch_size", 0)), int(batching.get("priority_levels", 0)) > 0
    )


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router simulate --record-profile",
        "Writes the profile of an executor behind a router that runs. It sends requests to the router: one at a time "
        "for half of the time, then a little more than the executor can serve, so other callers wait behind these; "
        "record before there is traffic, or with --watch, which sends nothing and sees execution times only.",
        usage="%(prog)s FILE --url URL [options]",
    )
    parser.add_argument("--record-profile", type=Path, required=True, metavar="FILE", help="where to write the profile")
    parser.add_argument("--url", required=True, help="http://HOST:PORT or (with tritonclient) grpc://HOST:PORT")
    parser.add_argument(
        "--metrics-url",
        metavar="URL",
        help="of the server's metrics, such as http://127.0.0.1:8002/metrics, where the router tells its own share of "
        "the delays under load; without it that is taken from when nothing else was there",
    )
    parser.add_argument("--model", default="router", help="the router (default %(default)s)")
    named = parser.add_mutually_exclusive_group()
    named.add_argument("--executor", default="executor", help="its executor (default %(default)s)")
    named.add_argument("--policy", type=Path, metavar="FILE", help="the router's policy.toml, which names the executor")
    parser.add_argument("--class", dest="class_name", metavar="NAME", help="class to ask as (default the policy's)")
    parser.add_argument(
        "--rows", type=command_line.row_counts, metavar="A,B", help="row counts (default 1, 2, 4 … to the largest)"
    )
    parser.add_argument(
        "--input-data", type=Path, metavar="FILE", help="requests, in perf_analyzer's form (default: random ones)"
    )
    parser.add_argument("--watch", action="store_true", help="send nothing: read the executor's counters only")
    parser.add_argument(
        "--seconds",
        type=command_line.seconds,
        default=DEFAULT_SECONDS,
        metavar="S",
        help="for all of it (default %(default)g)",
    )
    parser.add_argument(
        "--seed",
        type=command_line.whole_number(0),
        default=1,
        metavar="N",
        help="of inputs and of the times of requests under load (default %(default)s)",
    )
    return parser
