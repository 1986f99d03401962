# SPDX-License-Identifier: Apache-2.0
"""Measured numbers within the documents' sentences: the words, and from which file in docs/results each number comes.

Law: every sentence stands once in its document, broken into lines anyhow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import result_simulator as simulator
import result_values as values
from result_tables import ResultsError
from result_values import Values

_FIELD: Final = re.compile(r"\\\{(\w+)\\\}")
_NUMBER: Final = r"(?:\\d+(?:[.,]\\d+)*|[a-z]+)"


@dataclass(frozen=True, slots=True)
class Sentence:
    """Part of a document's text.

    Attributes:
        words: the text, with ``{name}`` in the place of each number.
        numbers: what stands there, by name; raises ResultsError where the words do not hold.
    """

    words: str
    numbers: Callable[[], Values]

    def found_in(self, text: str) -> list[re.Match[str]]:
        """Where the words stand, whatever their numbers are."""
        pattern = r"\s+".join(re.escape(word) for word in self.words.split())
        return list(re.finditer(_FIELD.sub(rf"(?P<\1>{_NUMBER})", pattern), text))


def refreshed(document: str, text: str) -> str:
    """A document with the numbers of its sentences put in anew.

    Args:
        document: its path from the root of the repository.
        text: the whole of it.

    Raises:
        ResultsError: a sentence is not there, or twice, or its file cannot be used, or it does not hold.
    """
    for sentence in SENTENCES.get(document, ()):
        found = sentence.found_in(text)
        if len(found) != 1:
            raise ResultsError(
                f"{sentence.words!r} stands there {len(found)} times and not once; the words must be those of "
                "scripts/result_sentences.py"
            )
        numbers = sentence.numbers()
        for name in sorted(numbers, key=found[0].start, reverse=True):
            text = text[: found[0].start(name)] + numbers[name] + text[found[0].end(name) :]
    return text


def spans(document: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a document's sentences begin and end."""
    for sentence in SENTENCES.get(document, ()):
        yield from (found.span() for found in sentence.found_in(text))


SENTENCES: Final[Mapping[str, Sequence[Sentence]]] = {
    "README.md": (
        Sentence("This run was on {cores} small cores,", values.demo_cores),
        Sentence("the router's own work takes place on the same {cores} cores.", values.demo_cores),
        Sentence("the same arrivals on each, on {cores} small cores; the model sleeps", values.bench_cores),
        Sentence(
            "`overload`: {ms} ms per batch of up to {rows} rows, however full it is, and {times} times the capacity",
            values.listed_overload,
        ),
        Sentence("`linear`: {ms} ms per row, batches of up to {rows} rows.", values.listed_linear),
        Sentence("`fast`: {ms} ms per batch of up to {rows} rows, so that the server's", values.listed_fast),
    ),
    "docs/design.md": (
        Sentence("serves less than half of their rows", values.oracle_serves_less),
        Sentence(
            "with an executor of {ms} ms for each batch of {rows}, {waiting} urgent batches waiting, and beside them "
            "{rate} requests per second with timeouts of {shortest} to {longest} ms",
            values.late_load,
        ),
        Sentence(
            "in the median of {runs} runs, {rounds} in each mode and {requests} requests in all, half were answered "
            "within {half} ms of their timeout and 99 % within {most} ms, the latest of all {latest} ms after it. That "
            "is on {cores} small cores",
            values.late_timeouts,
        ),
        Sentence(
            "of {few} such requests sent at once the last caller heard of it {few_low} to {few_high} ms after the "
            "timeout, of {many} {many_low} to {many_high} ms after it.",
            values.late_bursts,
        ),
    ),
    "docs/existing-server.md": (
        Sentence("where batches are short (`fast`), plain serves a little more background", values.plain_serves_more),
    ),
    "docs/hooks.md": (
        Sentence("With nothing queued the hook costs nothing that shows", values.dispatch_idle),
        Sentence(
            "it costs {percent} % of a core with one such model on this machine, and in overload it wakes a thread "
            "{times} times a second",
            values.dispatch_cost,
        ),
        Sentence("hardly a wait for an instance is left to cut", values.dispatch_behind_a_router),
    ),
    "docs/simulate.md": (
        Sentence(
            "{requests} requests take {seconds} s on one core, and a decision {decision} us with {queued} requests "
            "waiting",
            simulator.speed,
        ),
    ),
    "docs/performance.md": (
        Sentence("which took {minutes} minutes of load and the starts of the servers", values.bench_minutes),
        Sentence("at {rate} requests/s in closed loop it used {percent} % of a core", values.generator_cost),
        Sentence(
            "{ms} ms per batch of up to {rows} rows, online {online} and background {background} rows/s: {times} times "
            "the capacity. Half a batch and one's own, {floor} ms,",
            values.overload_load,
        ),
        Sentence(
            "{ms} ms per row, batches of up to {rows} rows, online {online} and background {background} rows/s.",
            values.linear_load,
        ),
        Sentence(
            "{ms} ms per batch of up to {rows} rows, online {online} and background {background} rows/s: the server's",
            values.fast_load,
        ),
        Sentence("after the last arrival, for up to {seconds} s.", values.shared_grace),
        Sentence(
            "batches of up to {rows} rows, closed loop with {least} and with {most} requests in flight.",
            values.overhead_steps,
        ),
        Sentence("## The aims that were missed, and why", values.missed_aims),
        Sentence("**overload, online p50 at most {limit} of the floor.**", values.missed_floor_limit),
        Sentence(
            "The oracle's is {oracle} ms, the router's {router} ms: the {more} ms between them are",
            values.missed_floor_reason,
        ),
        Sentence("**linear, online p50 at most {limit} of that of `levels+hooks`.**", values.missed_linear_limit),
        Sentence(
            "A row alone takes {one} ms here, a row of {rows} {full} ms. By the executor's own times batches of "
            "{enough} rows would be efficient enough for the background; most of its rows came in batches of {least} "
            "to {most}, since the router",
            values.missed_linear,
        ),
        Sentence("**fast, rows/s at least {limit} of those of `levels+hooks`.**", values.missed_fast_limit),
        Sentence(
            "It asks for {asked} requests/s, more than half of the {most} that the way alone bore on this machine",
            values.missed_fast,
        ),
        Sentence(
            "**shared, online p99 of `router-plain` at most {limit} of that of `levels+hooks`.**",
            values.missed_shared_limit,
        ),
        Sentence(
            "**overhead, rows/s at {most} in flight at least {limit} of those of `levels+hooks`.**",
            values.missed_overhead_limit,
        ),
        Sentence("as many outputs as the router reaches {share} of the direct rate,", values.least_model),
        Sentence("**overhead, p50 at {least} in flight at most {limit} ms more.**", values.missed_way_limit),
        Sentence("even in `fast` the router serves {percent} % of the rows/s of `levels+hooks`.", values.fast_rows),
    ),
    "docs/policies.md": (
        Sentence(
            "on the embedded server {least} to {most} times its input bytes, with inputs of {small} KiB to {large} MiB "
            "over HTTP and gRPC, most of it tritonserver's own copy. A full queue thus takes up to {in_all} times the "
            "limit",
            values.held_memory,
        ),
    ),
}
"""All of them, by document."""
