# SPDX-License-Identifier: Apache-2.0
"""Rules about the server that the repository is started with."""

from __future__ import annotations

from collections.abc import Iterator

from priority_router.config import RouterPolicy
from priority_router.control import thread_pool_size
from priority_router.ops.rules.catalogue import together as rules
from priority_router.ops.rules.configs import in_policy
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model


def check(router: Model, policy: RouterPolicy, size: int | None) -> Iterator[Finding]:
    """The threads that a router has.

    Args:
        router: the router.
        policy: its policy.
        size: threads of each instance of a Python backend; None where nobody starts a server.
    """
    least = thread_pool_size(policy.scheduling.instances)
    if size is None or size >= least:
        return
    yield Finding(
        rules.THREAD_POOL,
        in_policy(router, "executor_shape", "instances"),
        f"the server is started with thread-pool-size={size}, and router {router.name!r} needs {least} threads for "
        f"{policy.scheduling.instances} instances of its executor: urgent calls wait for a thread",
        f"start it with --backend-config=python,thread-pool-size={least}",
    )
