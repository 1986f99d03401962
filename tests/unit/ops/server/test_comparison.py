# SPDX-License-Identifier: Apache-2.0
"""Routers that no one asked the server to load; what they say against executors is told in tests of the rules."""

import pytest
from priority_router.config import parse_policy
from priority_router.ops.server import comparison, readiness
from priority_router.ops.server.routers import Router

POLICY = parse_policy(
    """policy_version = 1
    executor = "executor"
    executor_shape = { instances = 1, max_batch_size = 4 }
    class = [{ name = "online", level = 1 }]
    """
)
ROUTER = Router("router", POLICY)


def warned(monkeypatch, status, loaded):
    monkeypatch.setattr(readiness, "request", lambda *_, **__: (status, b""))
    return comparison.warnings("127.0.0.1", 8000, [ROUTER], loaded=loaded)


@pytest.mark.parametrize(
    ("loaded", "options"),
    [
        (frozenset(), "--load-model=router --load-model=executor"),
        (frozenset({"executor", "other"}), "--load-model=router"),
    ],
)
@pytest.mark.parametrize("status", [400, 404])
def test_a_router_that_was_not_to_be_loaded_is_named_with_what_loads_it(monkeypatch, status, loaded, options):
    assert warned(monkeypatch, status, loaded) == [
        f"router 'router' is not loaded: with --model-control-mode=explicit add {options}, or load it later"
    ]


@pytest.mark.parametrize(
    ("status", "loaded"),
    [
        pytest.param(400, None, id="all were to be loaded, and the server has said why one failed"),
        pytest.param(400, frozenset({"router"}), id="it was to be loaded"),
        pytest.param(500, frozenset(), id="no answer to the question"),
    ],
)
def test_nothing_is_said_of_a_router(monkeypatch, status, loaded):
    assert warned(monkeypatch, status, loaded) == []
