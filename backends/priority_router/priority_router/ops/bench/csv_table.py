# SPDX-License-Identifier: Apache-2.0
"""A run as a table: a row for each arm in each round and each of its classes. Law: document in, text out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

_ENDS: Final = ("low", "high")
_QUANTILES: Final = ("p50_ms", "p95_ms", "p99_ms")
_SEEN: Final = (*_QUANTILES, "max_ms")
_OF_ARM: Final = ("busy", "mean_batch", "waiting_share", "late_p99_ms", "late_max_ms", "client_cpu")


def as_csv(document: Mapping[str, Any]) -> str:
    """The table, the names of the columns first; what is not known is empty.

    Args:
        document: in the form of docs/bench.schema.json.
    """
    columns = [
        *("round", "arm", "class", "window_s"),
        *document["outcomes"],
        *_SEEN,
        *(f"{quantile}_{end}" for quantile in _QUANTILES for end in _ENDS),
        *(f"queue_{quantile}" for quantile in _SEEN),
        *("offered_rows_per_s", "rows_per_s", "rows_per_s_low", "rows_per_s_high"),
        *("target_ms", "in_time", "in_time_share", "in_time_per_s"),
        *_OF_ARM,
    ]
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, lineterminator="\n")
    writer.writeheader()
    for number, finished in enumerate(document["rounds"], 1):
        for arm, told in finished.items():
            shared = {"round": number, "arm": arm, "window_s": told["window_s"], **{key: told[key] for key in _OF_ARM}}
            writer.writerows(shared | dict(_of_class(name, one)) for name, one in told["classes"].items())
    return written.getvalue()


def _of_class(name: str, one: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The columns of a class."""
    yield "class", name
    yield from one["outcomes"].items()
    yield from one["latency"].items()
    for quantile, ends in one["latency_interval"].items():
        yield from ((f"{quantile}_{end}", ends[end]) for end in _ENDS)
    yield from ((f"queue_{quantile}", value) for quantile, value in one["queue_ms"].items())
    yield from ((key, one[key]) for key in ("offered_rows_per_s", "rows_per_s"))
    yield from ((f"rows_per_s_{end}", one["rows_per_s_interval"][end]) for end in _ENDS)
    goodput = one["goodput"]
    yield from ((key, goodput[key]) for key in ("target_ms", "in_time"))
    yield from ((f"in_time_{key}", goodput[key]) for key in ("share", "per_s"))
