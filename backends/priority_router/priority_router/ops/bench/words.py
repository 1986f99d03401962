# SPDX-License-Identifier: Apache-2.0
"""Differences in words, no more than they bear. Law: comparisons in, text out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from priority_router.ops.bench.paired import Comparison, Finding


def latencies(class_name: str, found: Mapping[str, Comparison]) -> str:
    """What became of a class's latencies: a verb and its numbers by quantile."""
    findings = {one.finding for one in found.values()}
    how = {
        (True, False): f"makes {class_name} requests faster",
        (False, True): f"makes {class_name} requests slower",
        (True, True): f"makes some {class_name} requests faster and others slower",
        (False, False): f"makes no difference to {class_name} requests beyond chance",
    }[Finding.LOWER in findings, Finding.HIGHER in findings]
    return f"{how}: {', '.join(f'{name} {latency(one)}' for name, one in found.items())}"


def latency(one: Comparison) -> str:
    """One quantile on two arms, ms."""
    before, after = (_milliseconds(value) for value in (one.before, one.after))
    match one.finding:
        case Finding.UNKNOWN:
            return "has no answer on either"
        case Finding.SAME:
            return f"no difference ({before} and {after})"
    share = f" ({one.change:+.0%})" if np.isfinite(one.change) else ""
    return f"{after} instead of {before}{share}"


def _milliseconds(value: float) -> str:
    if not np.isfinite(value):
        return "no answer"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.2g} ms"


def rows(one: Comparison) -> str:
    """Rows per second on two arms."""
    if one.finding in (Finding.SAME, Finding.UNKNOWN):
        return f"has no difference in rows/s ({one.after:.1f} and {one.before:.1f})"
    word, of = ("gained", "on") if one.finding is Finding.HIGHER else ("lost", "of")
    share = f" ({abs(one.change):.0%})" if one.before else ""
    return f"{word} {abs(one.after - one.before):.1f} {of} {one.before:.1f} rows/s{share}"


def in_time(one: Comparison, target_ms: float | None) -> str:
    """The share that was answered in time on two arms."""
    of = "" if target_ms is None else f" within {target_ms:g} ms"
    if one.finding in (Finding.SAME, Finding.UNKNOWN):
        return f"no difference in what is answered{of} ({one.after:.0%} and {one.before:.0%})"
    return f"{one.after:.0%} instead of {one.before:.0%} answered{of}"
