# SPDX-License-Identifier: Apache-2.0
"""Samples of the rules about what a policy promises, and about times: PR5xx."""

from __future__ import annotations

from typing import Final

from priority_router.ops.rules.models import Recorded

from support.lint_samples.sample import LANE_POLICY, Edit, Sample, policy, sample

_PROFILE: Final = Recorded("profile.json", "lane", {1: 60_000_000, 4: 80_000_000}, {1: 65_000_500, 4: 90_000_000})
"""Of an executor that takes 60 ms for one row, and nearly always at most 65."""

_ONLINE: Final = "level = 1\n"
_RULE: Final = '[[tenant]]\nname = "%s"\nmost_urgent_class = "online"'
_TOP: Final = 'executor = "scorer"\n'


def _online(code: str, name: str, line: str, *, mended: str = "", profile: Recorded | None = None) -> Sample:
    """One more line in the urgent class, which goes, or becomes another."""
    new = f"{mended}\n" if mended else ""
    return sample(
        code,
        name,
        policy(_ONLINE, f"{_ONLINE}{line}\n"),
        fix=(policy(f"{line}\n", new),),
        profile=profile,
    )


def _background(code: str, name: str, lines: str, *, fix: Edit) -> Sample:
    """More lines at the end of the other class."""
    return sample(code, name, Edit(LANE_POLICY, "", lines), fix=(fix,))


SAMPLES: Final = (
    _background(
        "PR501",
        "",
        'order = "deadline"\nallow_timeout_override = false',
        fix=policy('order = "deadline"', 'order = "arrival"'),
    ),
    _background("PR502", "", 'order = "deadline"', fix=Edit(LANE_POLICY, "", "default_timeout_microseconds = 1000000")),
    _background(
        "PR503",
        "",
        "default_timeout_microseconds = 300_000\nmax_wait_microseconds = 300_000",
        fix=policy("max_wait_microseconds = 300_000", "max_wait_microseconds = 150000"),
    ),
    _online("PR504", "", "max_wait_microseconds = 10000"),
    _background(
        "PR505", "", "max_blocking_microseconds = 20000", fix=policy("max_blocking_microseconds = 20000\n", "")
    ),
    _online("PR506", "", "min_share = 0.5"),
    _background("PR507", "", "min_share = 0.95", fix=policy("min_share = 0.95", "min_share = 0.5")),
    _background(
        "PR508",
        "",
        "reject_predicted_late = true\nallow_timeout_override = false",
        fix=Edit(LANE_POLICY, "", "default_timeout_microseconds = 1000000"),
    ),
    sample(
        "PR509",
        "",
        policy("max_queue_size = 128", 'max_queue_size = 7\nfair_by = "tenant"'),
        fix=(policy("max_queue_size = 7", "max_queue_size = 64"),),
    ),
    _background(
        "PR510", "one", _RULE % "acme", fix=policy(_RULE % "acme" + "\n", "", 'the [[tenant]] with name = "acme"')
    ),
    _background("PR510", "all", _RULE % "*", fix=policy(_RULE % "*" + "\n", "", 'the [[tenant]] with name = "*"')),
    sample(
        "PR511",
        "declared",
        policy(_TOP, f"{_TOP}max_execution_microseconds = 60000\n"),
        fix=(policy("default_timeout_microseconds = 50_000", "default_timeout_microseconds = 120000"),),
    ),
    sample(
        "PR511",
        "recorded",
        profile=_PROFILE,
        fix=(policy("default_timeout_microseconds = 50_000", "default_timeout_microseconds = 120000"),),
    ),
    sample(
        "PR512",
        "",
        policy("default_timeout_microseconds = 50_000", "max_blocking_microseconds = 20000"),
        fix=(policy("max_blocking_microseconds = 20000", "max_blocking_microseconds = 65001"),),
        profile=_PROFILE,
    ),
    sample(
        "PR513",
        "",
        policy(_TOP, f"{_TOP}max_execution_microseconds = 40000000\n"),
        policy("default_timeout_microseconds = 50_000\n", ""),
        fix=(
            policy(
                "max_execution_microseconds = 40000000\n",
                "max_execution_microseconds = 40000000\nexecutor_timeout_microseconds = 80000000\n",
                "executor_timeout_microseconds = 80000000",
            ),
        ),
    ),
    _online("PR514", "class", "max_queue_bytes = 1000", mended="max_queue_bytes = 1024"),
    sample(
        "PR514",
        "all",
        policy(_TOP, f"{_TOP}max_queue_bytes = 1000\n"),
        fix=(policy("max_queue_bytes = 1000", "max_queue_bytes = 1024"),),
    ),
    sample(
        "PR515",
        "",
        policy(_TOP, f'{_TOP}tenant_sources = ["header:x-tenant"]\n'),
        fix=(policy('tenant_sources = ["header:x-tenant"]\n', "", "remove tenant_sources"),),
    ),
    sample(
        "PR516",
        "",
        policy(_TOP, f"{_TOP}max_execution_microseconds = 80000\n"),
        policy("default_timeout_microseconds = 50_000\n", ""),
        fix=(policy("max_execution_microseconds = 80000", "max_execution_microseconds = 90000"),),
        profile=_PROFILE,
    ),
    sample(
        "PR517",
        "",
        policy(_TOP, f"{_TOP}max_queue_bytes = 8000\n"),
        policy(_ONLINE, f"{_ONLINE}max_queue_bytes = 8001\n"),
        fix=(policy("max_queue_bytes = 8001", "max_queue_bytes = 4000"),),
    ),
)
