# SPDX-License-Identifier: Apache-2.0
"""Samples of the rules about router, executor and policy together, and about the server: PR3xx, PR4xx."""

from __future__ import annotations

from typing import Final

from support.lint_samples.sample import (
    CLEAN,
    LANE,
    LANE_POLICY,
    LEVELS_BLOCK,
    SCORER_BLOCK,
    WITH_ENSEMBLE,
    Edit,
    Failure,
    Refusal,
    Sample,
    policy,
    sample,
    scorer,
)

_PLAIN: Final = "dynamic_batching { }"
_SECOND: Final = {
    "second/config.pbtxt": LANE.replace('"lane"', '"second"'),
    "second/1/policy.toml": CLEAN[LANE_POLICY],
}

SAMPLES: Final = (
    sample(
        "PR301",
        "misspelt",
        policy('"scorer"', '"score"'),
        fix=(policy('executor = "score"', 'executor = "scorer"'),),
        shows=Failure("score"),
    ),
    sample(
        "PR301",
        "another",
        policy('"scorer"', '"ranker"'),
        fix=(policy('executor = "ranker"', 'executor = "scorer"'),),
        shows=Failure("ranker"),
    ),
    sample(
        "PR301",
        "version",
        policy('executor = "scorer"\n', 'executor = "scorer"\nexecutor_version = 7\n'),
        fix=(policy("executor_version = 7\n", ""),),
        shows=Failure("scorer"),
    ),
    sample(
        "PR302",
        "itself",
        policy('"scorer"', '"lane"'),
        fix=(policy('executor = "lane"', 'executor = "scorer"'),),
        shows=Refusal("lane", "names the router itself"),
    ),
    sample(
        "PR302",
        "another",
        policy('"scorer"', '"second"'),
        files={**CLEAN, **_SECOND},
        fix=(
            policy(
                'executor = "second"',
                'executor = "scorer"\nshared_executor = true',
                'executor = "scorer" in lane/1/policy.toml with shared_executor = true in lane/1/policy.toml',
            ),
            Edit(
                "second/1/policy.toml",
                'executor = "scorer"\n',
                'executor = "scorer"\nshared_executor = true\n',
                "shared_executor = true in second/1/policy.toml",
            ),
        ),
    ),
    sample(
        "PR302",
        "circle",
        policy('"scorer"', '"whole"'),
        Edit("whole/config.pbtxt", '"scorer"', '"lane"'),
        asked=False,
        files=WITH_ENSEMBLE,
        fix=(policy('executor = "whole"', 'executor = "scorer"'),),
    ),
    sample(
        "PR303",
        "ensemble",
        files=WITH_ENSEMBLE,
        fix=(
            policy(
                'executor = "scorer"\n',
                'executor = "scorer"\nshared_executor = true\n',
                "shared_executor = true in lane/1/policy.toml",
            ),
        ),
    ),
    sample(
        "PR303",
        "router",
        Edit("second/1/policy.toml", 'executor = "scorer"\n', 'executor = "scorer"\nshared_executor = true\n'),
        files={**CLEAN, **_SECOND},
        fix=(
            policy(
                'executor = "scorer"\n',
                'executor = "scorer"\nshared_executor = true\n',
                "shared_executor = true in lane/1/policy.toml",
            ),
        ),
    ),
    sample(
        "PR303",
        "plain",
        policy('"levels"', '"plain"'),
        scorer(SCORER_BLOCK, _PLAIN),
        files=WITH_ENSEMBLE,
        fix=(
            policy(
                'mode = "plain"\n',
                'mode = "levels"\nshared_executor = true\n',
                'mode = "levels" and shared_executor = true in lane/1/policy.toml',
            ),
            scorer(_PLAIN, LEVELS_BLOCK),
        ),
    ),
    sample(
        "PR304",
        "",
        policy('"levels"', '"plain"'),
        fix=(
            scorer("  priority_levels: 2\n", ""),
            scorer("  default_priority_level: 2\n", ""),
            scorer("  priority_queue_policy { key: 1 value { } }\n", "", "priority_queue_policy"),
            scorer("  priority_queue_policy { key: 2 value { } }\n", "", "priority_queue_policy"),
        ),
    ),
    sample(
        "PR305",
        "",
        policy("max_batch_size = 4", "max_batch_size = 8"),
        shows=Failure("batch-size", rows=8),
    ),
    sample(
        "PR305",
        "no batches",
        policy("max_batch_size = 4", "max_batch_size = 0"),
        shows=Refusal("lane", "both must be 0"),
    ),
    sample("PR306", "", scorer("count: 1", "count: 2"), fix=(policy("instances = 1", "instances = 2"),)),
    sample("PR307", "", policy("max_queue_size = 128\n", ""), fix=(Edit(LANE_POLICY, "", "max_queue_size = 256"),)),
    sample("PR308", "", policy("max_batch_size = 4", "max_batch_size = 2")),
    Sample(
        "PR401",
        "",
        CLEAN,
        (Edit(LANE_POLICY, "", "", "thread-pool-size=32"),),
        pool=16,
        fixed_pool=32,
    ),
)
