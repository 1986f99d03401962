# SPDX-License-Identifier: Apache-2.0
"""Compares the routers of a running server with their executors, from the configurations that Triton itself uses."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Sequence
from typing import Any

from priority_router.ops import agreement
from priority_router.ops.server import readiness
from priority_router.ops.server.routers import Router
from priority_router.policy_fields import LATEST_VERSION


def warnings(host: str, port: int, routers: Sequence[Router]) -> list[str]:
    """What is wrong between the routers that serve and their executors.

    Args:
        host: of the HTTP API.
        port: likewise.
        routers: with their policies; one that does not serve is left out.

    Returns:
        One sentence for each fault.
    """
    found = []
    for router in routers:
        status, own = _config(host, port, router.model)
        if status in (401, 403):
            found.append(
                f"router {router.model!r} cannot be compared with its executor: the API of the models' configurations "
                "is restricted (--http-restricted-api)"
            )
        if own is None:
            continue
        status, called = _config(host, port, router.executor, router.policy.executor_version)
        if called is not None:
            found += agreement.disagreements(router.policy, own, called)
        elif status in (400, 404):
            found.append(agreement.missing_executor(router.model, router.policy, readiness.served(host, port)))
    return found


def _config(host: str, port: int, model: str, version: int = LATEST_VERSION) -> tuple[int, dict[str, Any] | None]:
    """The answer's status, 0 without an answer, and the configuration where there is one."""
    path = f"/v2/models/{urllib.parse.quote(model, safe='')}"
    if version != LATEST_VERSION:
        path += f"/versions/{version}"
    try:
        status, body = readiness.request(host, port, "GET", f"{path}/config")
        config = json.loads(body) if status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
    return status, config if isinstance(config, dict) else None
