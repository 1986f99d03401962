# SPDX-License-Identifier: Apache-2.0
"""The soak: everything at once, a fixed number of requests in flight, its beginning compared with its end."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from priority_router.core.values import SECOND
from priority_router.errors import SetupError
from priority_router.ops.bench import executor_stats, load
from priority_router.ops.bench.arms import ARMS, ClassKeys, write_repository
from priority_router.ops.loads import BACKGROUND, ONLINE, ExecutorShape
from priority_router.ops.server import Server
from priority_router.ops.soak import books, kinds, resources
from priority_router.ops.soak.checks import KEPT, SLOWER, Check, balanced, flat

IN_FLIGHT: Final = (48, 16)
"""Over HTTP and over gRPC."""

MODES: Final = {"levels": "router", "plain": "router-plain"}
"""To arms of the benchmark."""

LONGEST_WARMUP: Final = 30.0
LONGEST_WINDOW: Final = 60.0
_GRACE_SECONDS: Final = 30.0
_LAST_LINES: Final = 20


@contextlib.contextmanager
def serving(
    mode: str, shape: ExecutorShape, levels: Mapping[str, int], class_keys: ClassKeys, *, any_width: bool = False
) -> Iterator[Server]:
    """A router and its executor, ready when the block begins.

    Args:
        mode: of the router.
        shape: the executor.
        levels: class to level.
        class_keys: see `ClassKeys`.
        any_width: rows may have any number of values.

    Raises:
        SetupError: the server does not start, or did not live to the end of the block.
    """
    arm = ARMS[MODES[mode]]
    with tempfile.TemporaryDirectory(prefix="priority-router-soak-") as folder:
        repository = Path(folder, "models")
        repository.mkdir()
        write_repository(repository, arm, shape, levels, class_keys=class_keys)
        for config in repository.glob("*/config.pbtxt") if any_width else ():
            config.write_text(config.read_text().replace("dims: [ 4 ]", "dims: [ -1 ]"))
        with Server(repository, hooks=arm.hooks, log=Path(folder, "server.log")) as server:
            try:
                yield server
            finally:
                if (status := server.wait(0)) is not None:
                    words = "\n".join(server.log_text().splitlines()[-_LAST_LINES:])
                    raise SetupError(f"tritonserver ended by itself with status {status}; its last words:\n{words}")


def windows(duration_s: float) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two that are compared, in ns from the beginning: the first minute after a warm-up, and the last one."""
    warmup = min(LONGEST_WARMUP, duration_s / 6)
    length = min(LONGEST_WINDOW, (duration_s - warmup) / 3)
    edges = (warmup, warmup + length, duration_s - length, duration_s)
    first, second, third, fourth = (int(edge * SECOND) for edge in edges)
    return (first, second), (third, fourth)


def run(mode: str, minutes: float, seed: int) -> tuple[dict[str, Any], list[Check]]:
    """One mode, from start to end.

    Args:
        mode: of the router.
        minutes: during which requests are sent.
        seed: of their order and contents.

    Returns:
        As plain values what both windows were like and the books; and what it is judged by.

    Raises:
        PriorityRouterError: the server did not start or not live, or the load could not be generated.
    """
    duration_s = minutes * 60
    turns = kinds.turns(seed, duration_s)
    with serving(mode, kinds.EXECUTOR, kinds.LEVELS, kinds.CLASS_KEYS, any_width=True) as server:
        triton = executor_stats.get_json(server.http, "/v2")["version"]
        loops = [
            (kinds.target(address, seed), turns, count)
            for address, count in zip((server.http, load.GRPC + server.grpc), IN_FLIGHT, strict=True)
        ]
        with resources.watched(server) as watch, load.begin_turns(loops, grace_s=_GRACE_SECONDS, queue_time=True) as it:
            ledger = it.result()
            counted = books.settled(server)
            final = resources.read(server)
        watch.samples.append(final)
    compared = books.compared(ledger, kinds.KINDS, counted).as_json()
    both = [
        {**books.window(ledger, *edges), "held": watch.between(*(it.start + edge for edge in edges))}
        for edges in windows(duration_s)
    ]
    checks = [*_same(*both), *flat(both[0]["held"], both[1]["held"], "at the end")]
    checks += balanced(compared, watch.unaccounted())
    measured = {
        "triton": triton,
        "windows_s": [[edge / SECOND for edge in edges] for edges in windows(duration_s)],
        "first": both[0],
        "last": both[1],
        "course": watch.course(it.start, it.start + int(duration_s * SECOND)),
        "books": compared,
        "unaccounted": watch.unaccounted(),
        "failures": books.failures(ledger),
    }
    return measured, checks


def _same(first: Mapping[str, Any], last: Mapping[str, Any]) -> Iterator[Check]:
    """The last minute is like the first one."""
    yield Check("rows/s at the end", last["rows_per_s"], KEPT * first["rows_per_s"], least=True)
    for name in (ONLINE, BACKGROUND):
        before, after = (part["classes"].get(name) for part in (first, last))
        for quantile in ("p50_ms", "p99_ms"):
            what = f"{name} {quantile.replace('_', ' ')} at the end"
            if before is None or after is None:
                yield Check(what, None, 0.0)
            else:
                yield Check(what, after[quantile], SLOWER * before[quantile])
