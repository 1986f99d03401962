# SPDX-License-Identifier: Apache-2.0
"""Compares the routers of a running server with their executors, from the configurations that Triton itself uses."""

from __future__ import annotations

import http.client
import json
import shutil
import urllib.parse
from collections.abc import Collection, Container, Iterator, Sequence
from typing import Any, Final

from priority_router.ops.rules import configs, pair, queues, sharing
from priority_router.ops.rules import router as router_rules
from priority_router.ops.rules.finding import Finding
from priority_router.ops.rules.models import Model
from priority_router.ops.server import memory, readiness
from priority_router.ops.server.routers import Router
from priority_router.policy_fields import LATEST_VERSION

_SHARED_MEMORY: Final = "/dev/shm"


def warnings(
    host: str,
    port: int,
    routers: Sequence[Router],
    said: Container[tuple[str, str]] = frozenset(),
    loaded: Collection[str] | None = None,
    headers: readiness.Headers = readiness.NO_HEADERS,
) -> list[str]:
    """What is wrong between the routers that serve and their executors, and which routers nobody asked to be loaded.

    Args:
        host: of the HTTP API.
        port: likewise.
        routers: with their policies; one that does not serve though it was to be loaded is left out.
        said: what the user knows already: codes of rules, each with the model whose file is to be mended.
        loaded: the models that the server was told to load; None for all.
        headers: for requests to the HTTP API.

    Returns:
        One sentence for each fault.
    """
    found = []
    for router in routers:
        status, own = _config(host, port, router.model, headers)
        if status in (401, 403):
            found.append(
                f"router {router.model!r} cannot be compared with its executor: the API of the models' configurations "
                "is restricted (--http-restricted-api) by a header that another restriction gives another value"
            )
        if own is None:
            if status in (400, 404) and loaded is not None and router.model not in loaded:
                found.append(_not_loaded(router, loaded))
            continue
        status, called = _config(host, port, router.executor, headers, router.policy.executor_version)
        model = Model(router.model, own, completed=True, policy=router.policy)
        if called is not None:
            executor = Model(router.executor, called, completed=True)
            new = list(findings(model, executor))
            if short := memory.warning(router.model, own, called, shutil.disk_usage(_SHARED_MEMORY).free):
                found.append(short)
        elif status in (400, 404):
            new = [sharing.missing_executor(model, router.policy, readiness.served(host, port, headers), {})]
        else:
            continue
        found += [
            f"router {router.model!r}: {finding.sentence()}"
            for finding in new
            if (finding.rule.code, finding.place.model) not in said
        ]
    return found


def findings(router: Model, executor: Model) -> Iterator[Finding]:
    """What is wrong between two models that both serve, and with their queues.

    Args:
        router: as Triton has configured it, with its policy.
        executor: likewise.
    """
    yield from pair.check(router, executor)
    yield from router_rules.queue(router)
    if not configs.is_ensemble(executor):
        yield from queues.delay(executor)


def _not_loaded(router: Router, loaded: Collection[str]) -> str:
    options = [f"--load-model={model}" for model in (router.model, router.executor) if model not in loaded]
    return (
        f"router {router.model!r} is not loaded: with --model-control-mode=explicit add {' '.join(options)}, or load "
        "it later"
    )


def _config(
    host: str, port: int, model: str, headers: readiness.Headers, version: int = LATEST_VERSION
) -> tuple[int, dict[str, Any] | None]:
    """The answer's status, 0 without an answer, and the configuration where there is one."""
    path = f"/v2/models/{urllib.parse.quote(model, safe='')}"
    if version != LATEST_VERSION:
        path += f"/versions/{version}"
    try:
        status, body = readiness.request(host, port, "GET", f"{path}/config", headers=headers)
        config = json.loads(body) if status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
    return status, config if isinstance(config, dict) else None
