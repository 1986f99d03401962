# SPDX-License-Identifier: Apache-2.0
"""What a server holds: memory of its processes, shared memory, threads and descriptors, read again and again.

Law: reads, and keeps what it read; what it means is the checks' affair.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from priority_router.ops.bench.arms import EXECUTOR, ROUTER
from priority_router.ops.server import Server

PERIOD_SECONDS: Final = 1.0
PARTS: Final = 20
MIB: Final = 1 << 20
REGIONS: Final = "/dev/shm"
_TIMEOUT_SECONDS: Final = 10.0
_SAMPLE: Final = re.compile(r"^priority_router_(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')

SERVER_MEMORY: Final = "server MiB"
ROUTER_MEMORY: Final = "router MiB"
EXECUTOR_MEMORY: Final = "executor MiB"
SHARED_MEMORY: Final = "/dev/shm MiB"
THREADS: Final = "threads"
DESCRIPTORS: Final = "descriptors"
SOCKETS: Final = "sockets"
FIGURES: Final = (SERVER_MEMORY, ROUTER_MEMORY, EXECUTOR_MEMORY, SHARED_MEMORY, THREADS, DESCRIPTORS, SOCKETS)
"""Descriptors are those of anything but sockets: as many of these are open as callers have connections."""

UNACCOUNTED: Final = "unaccounted_requests"
"""A metric of the router."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A reading.

    Attributes:
        at: monotonic ns.
        figures: by name, see FIGURES.
        unaccounted: requests that the router has lost sight of, by its own audit.
    """

    at: int
    figures: Mapping[str, float]
    unaccounted: float


@dataclass(slots=True)
class Watch:
    """Reads from a thread of its own.

    Attributes:
        samples: so far.
    """

    server: Server
    samples: list[Sample] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def between(self, begin: int, end: int) -> dict[str, float]:
        """Each figure's median over the readings between two monotonic times in ns; empty without readings."""
        chosen = [one.figures for one in self.samples if begin <= one.at < end]
        return {name: round(median(one[name] for one in chosen), 2) for name in FIGURES} if chosen else {}

    def course(self, begin: int, end: int) -> dict[str, list[float]]:
        """Each figure's median in equal parts of a time, which tells growth that goes on from one that has ended."""
        edges = [begin + (end - begin) * part // PARTS for part in range(PARTS + 1)]
        parts = [found for pair in itertools.pairwise(edges) if (found := self.between(*pair))]
        return {name: [part[name] for part in parts] for name in FIGURES}

    def unaccounted(self) -> float | None:
        """The most that the router ever lost sight of; None without readings."""
        return max((abs(one.unaccounted) for one in self.samples), default=None)

    def run(self) -> None:
        """Reads until stopped."""
        while not self._stopped.wait(PERIOD_SECONDS):
            # A server that has died is the business of whoever started it.
            with contextlib.suppress(OSError, ValueError, StopIteration, KeyError):
                self.samples.append(read(self.server))

    def stop(self) -> None:
        """Ends `run`."""
        self._stopped.set()


@contextlib.contextmanager
def watched(server: Server) -> Iterator[Watch]:
    """A server under watch while the block lasts."""
    watch = Watch(server)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.stop()
        thread.join()


def read(server: Server) -> Sample:
    """One reading.

    Raises:
        OSError: the server does not live.
        StopIteration: one of its models does not.
        KeyError: its router has no metrics.
    """
    stubs = server.stub_pids()
    of = {name: next(pid for stub, pid in stubs.items() if stub.startswith(f"{name}_")) for name in (ROUTER, EXECUTOR)}
    pids = [server.pid, *stubs.values()]
    opened = [target.startswith("socket:") for pid in pids for target in descriptors(pid)]
    figures = {
        SERVER_MEMORY: own_bytes(server.pid) / MIB,
        ROUTER_MEMORY: own_bytes(of[ROUTER]) / MIB,
        EXECUTOR_MEMORY: own_bytes(of[EXECUTOR]) / MIB,
        SHARED_MEMORY: shared_bytes(of[ROUTER], of[EXECUTOR]) / MIB,
        THREADS: float(sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)),
        DESCRIPTORS: float(opened.count(False)),
        SOCKETS: float(opened.count(True)),
    }
    return Sample(time.monotonic_ns(), figures, page(server)[UNACCOUNTED, frozenset()])


def descriptors(pid: int) -> Iterator[str]:
    """What each open descriptor of a process leads to."""
    for entry in Path("/proc", str(pid), "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            yield os.readlink(entry)


def own_bytes(pid: int) -> int:
    """Memory of one process that it shares with no other."""
    lines = Path("/proc", str(pid), "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024


def shared_bytes(*pids: int) -> int:
    """Memory of the regions that some processes have mapped."""
    regions = set()
    for pid in pids:
        for words in map(str.split, Path("/proc", str(pid), "maps").read_text().splitlines()):
            if len(words) > 5 and words[5].startswith(f"{REGIONS}/"):
                regions.add(Path(words[5]))
    return sum(os.stat(region).st_blocks * 512 for region in regions if region.exists())


def page(server: Server) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """The samples of the server's router on the metrics page: name without prefix, and labels without the model.

    Raises:
        OSError: there is no answer.
    """
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=_TIMEOUT_SECONDS) as reply:
        text = reply.read().decode()
    found = {}
    for name, labels, value in _SAMPLE.findall(text):
        kept = dict(_LABEL.findall(labels))
        if kept.pop("model", ROUTER) == ROUTER:
            found[name, frozenset(kept.items())] = float(value)
    return found
