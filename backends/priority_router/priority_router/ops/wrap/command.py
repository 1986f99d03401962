# SPDX-License-Identifier: Apache-2.0
"""The command ``wrap``: reads the command line, plans, writes, and says what was done and what to do next."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from priority_router.errors import SetupError
from priority_router.ops import command_line
from priority_router.ops.wrap import findings, leftovers, lock, next_steps, options, plan
from priority_router.ops.wrap.findings import Findings
from priority_router.ops.wrap.options import Options, WantedClass
from priority_router.ops.wrap.plan import POLICY, Part, Plan, State
from priority_router.ops.wrap.router_files import instances_warning


def main(words: Sequence[str]) -> int:
    """Wraps a model.

    Args:
        words: options.

    Returns:
        0.

    Raises:
        PriorityRouterError: nothing was written; the text says why.
    """
    wanted = options.parse(words)
    with command_line.interrupted_by_sigterm(), lock.held(wanted.repository) as locked:
        try:
            left = leftovers.of(wanted.repository, time.time(), locked=locked)
            made = plan.make(wanted)
            found = findings.of(made)
        except OSError as error:
            raise SetupError(f"{error.filename}: {error.strerror}; nothing is changed") from error
        if not wanted.dry_run:
            made.carry_out()
    report = "\n".join(_report(made, found, left)).encode("utf-8", "replace").decode()
    if wanted.dry_run:
        _print(made.diff())
        _remark_aside(report)
    else:
        command_line.remark(report)
    return 0


def _print(diff: str) -> None:
    """Prints what may hold bytes of a file that are not UTF-8; whoever reads it may stop reading, as ``head`` does.

    Raises:
        SetupError: it cannot be printed.
    """
    if sys.stdout is None:  # closed by the shell
        raise SetupError("standard output is closed, where --dry-run prints the changes; nothing is changed")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(diff.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
    except OSError as error:
        # Python would try again at its end, and fail the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise SetupError(
                f"standard output: {error.strerror}; --dry-run prints the changes there; nothing is changed"
            ) from error


def _remark_aside(report: str) -> None:
    """Prints on standard error what nobody depends on."""
    if sys.stderr is not None:  # where it is None, `print` would take standard output
        with contextlib.suppress(OSError):
            print(report, file=sys.stderr, flush=True)


def _report(made: Plan, found: Findings, left: Sequence[Path]) -> Iterator[str]:
    wanted = made.options
    yield from _done(made)
    yield f"Classes of {made.files.name}{' (teaching values: replace them)' if wanted.teaching else ''}:"
    yield from (f"  {_class(one, wanted)}" for one in wanted.classes)
    yield from _warnings(made, found)
    if left:
        yield f"Note: {leftovers.note(left)}"
    if found.others:
        yield (
            f"Lint has more to say about other models in {wanted.repository}: priority-router lint {wanted.repository}"
        )
    if wanted.dry_run:
        yield "Nothing was written (--dry-run)."
        return
    yield ""
    yield from next_steps.lines(wanted.repository, made.files.name, made.source, wanted.classes, wanted.plain)


def _done(made: Plan) -> Iterator[str]:
    would = "would be " if made.options.dry_run else ""
    did = {
        State.UNCHANGED: "is as it should be",
        State.EDITED: f"{would}edited",
        State.NEW: f"{would}copied from {made.source.path}",
    }
    yield f"{made.executor.place}: {did[made.executor.state]}"
    if made.executor.state is not State.UNCHANGED:
        yield from (f"  dynamic_batching: {change}" for change in made.merge.changes)
        yield from (f"  dynamic_batching: {kept} stays as it was" for kept in made.merge.kept)
    yield from _links(made.executor)
    did[State.NEW] = f"{would}written"
    yield f"{made.router.place}: {did[made.router.state]}"
    yield from _links(made.router)


def _links(part: Part) -> Iterator[str]:
    """What changes elsewhere."""
    for file in part.files:
        way = (*reversed(file.place.relative_to(part.place).parents), file.place.relative_to(part.place))
        link = next((inner for inner in way if (part.place / inner).is_symlink()), None)
        if link is not None:
            shown = link if link.name else part.place
            yield f"  {shown} is a link: what changes is {file.place.resolve()}"


def _class(one: WantedClass, wanted: Options) -> str:
    parts = [f"level {one.level}", f"{one.max_queue} may wait" if one.max_queue else "any number may wait"]
    if one.timeout_us:
        parts.append(f"{_time(one.timeout_us)} at most{', less if a request asks for it' if one.override else ''}")
    elif one.override:
        parts.append("as long as a request asks for")
    else:
        parts.append("for as long as it takes")
    default = " (default)" if one.name == wanted.default_class else ""
    return f"{one.name}{default}: {', '.join(parts)}"


def _time(microseconds: int) -> str:
    """In the largest unit of which it is a whole number."""
    unit, length = max(
        (item for item in options.UNITS.items() if microseconds % item[1] == 0), key=lambda item: item[1]
    )
    return f"{microseconds // length} {'min' if unit == 'm' else unit}"


def _warnings(made: Plan, found: Findings) -> Iterable[str]:
    wanted, source = made.options, made.source
    if source.instances.open and not source.instances.stated:
        policy = f"into {made.router.place / POLICY}"
        yield f"ATTENTION: {instances_warning(source.name, source.instances, policy)}."
    for note in source.notes:
        yield f"Note: {note}."
    for label in made.missing_labels:
        yield (
            f"Note: {label} is not there: put it beside the config.pbtxt of {source.name} and of {made.files.name}, as "
            "neither loads without it."
        )
    if wanted.executor_policies:
        yield (
            f"Note: the limits and timeouts on the levels of {source.name} count for the router's calls as well. Each "
            "is a dispatch of several requests, so that what Triton refuses or lets expire fails for all of them. The "
            "policy has shared_executor = true, and the guard leaves the model open to clients."
        )
    else:
        yield (
            f"Note: `priority-router serve` refuses clients that call {source.name} directly (the guard): let them "
            f"call {made.files.name}. While some have yet to move: --executor-policies."
        )
    for line in found.own:
        yield f"Lint: {line}"
