# SPDX-License-Identifier: Apache-2.0
"""What stands in docs/reliability.md of long runs. Law: files of docs/results in, Markdown out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from priority_router.ops import result_file
from priority_router.ops.bench.table import short
from priority_router.ops.loads import BACKGROUND, ONLINE
from result_tables import Document, read, table

_LATENCIES: Final = {"p50_ms": "p50 ms", "p99_ms": "p99 ms"}
_OVERLOAD_COLUMNS: Final = {
    "refused": "refused",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "longest_ms": "longest ms",
    "refused_p99_ms": "p99 of a refusal, ms",
}


def soak() -> Document:
    """What scripts/soak wrote."""
    return read("soak.json", "scripts/soak", result_file.SOAK_SCHEMA)


def overload() -> Document:
    """What scripts/soak overload wrote."""
    return read("soak-overload.json", "scripts/soak overload", result_file.SOAK_OVERLOAD_SCHEMA)


def soak_section() -> Iterator[str]:
    """The beginning of a soak beside its end, in both modes; and the books."""
    document = soak()
    modes = document["modes"]
    rows = [
        [name, *(_number(figures(one[part])[name]) for one in modes.values() for part in ("first", "last"))]
        for name in figures(next(iter(modes.values()))["first"])
    ]
    yield from table(["", *(f"{mode}, {part} minute" for mode in modes for part in ("first", "last"))], rows)
    yield ""
    yield from _verdicts(document, "scripts/soak")


def figures(window: Mapping[str, Any]) -> dict[str, float]:
    """What is compared of a window, as a flat table."""
    found: dict[str, float] = {"requests/s": window["requests_per_s"], "rows/s": window["rows_per_s"]}
    for name, latencies in window["classes"].items():
        found |= {f"{name}, {words}": latencies[key] for key, words in _LATENCIES.items()}
    found.update(window["held"])
    return found


def overload_section() -> Iterator[str]:
    """The phases of an overload, in both modes; and the books."""
    document = overload()
    rows = []
    for mode, one in document["modes"].items():
        for name, phase in one["phases"].items():
            for class_name in (ONLINE, BACKGROUND):
                seen = phase["classes"][class_name]
                first = class_name == ONLINE
                rows.append(
                    [
                        mode if first and name == next(iter(one["phases"])) else "",
                        name if first else "",
                        class_name,
                        _number(phase[class_name]),
                        *(_number(seen[column]) for column in _OVERLOAD_COLUMNS),
                    ]
                )
    yield from table(["mode", "load", "class", "requests/s", *_OVERLOAD_COLUMNS.values()], rows)
    yield ""
    yield from _verdicts(document, "scripts/soak overload")


def _verdicts(document: Document, command: str) -> Iterator[str]:
    """Of each mode, in a sentence, and every limit that was not kept to; then how it was run."""
    for mode, one in document["modes"].items():
        missed = [check for check in one["checks"] if not check["met"]]
        books = one["books"]
        kept = f"{len(one['checks']) - len(missed)} of {len(one['checks'])} limits kept to"
        yield (
            f"- {mode}: {books['requests']:,} requests, {sum(books['unexpected'].values())} that ended as they never "
            f"should, {len(books['differences'])} numbers in which callers and router differ; {kept}."
        )
        for check in missed:
            limit = f"{'at least' if check['least'] else 'at most'} {short(check['limit'])}"
            yield f"  - **missed:** {check['what']}: {_number(check['reached'])}, {limit}"
    triton = next(iter(document["modes"].values()))["triton"]
    yield ""
    yield (
        f"{document['minutes']:g} minutes in each mode, {document['cores']} cores, Triton {triton}, seed "
        f"{document['seed']}. `{command}`"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else short(value)


SECTIONS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {"soak": soak_section, "soak-overload": overload_section}


def section(name: str) -> str | None:
    """The text of one section; None where it is not one of these."""
    return "\n".join(SECTIONS[name]()) + "\n" if name in SECTIONS else None
