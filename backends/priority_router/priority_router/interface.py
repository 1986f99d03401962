# SPDX-License-Identifier: Apache-2.0
"""The names that clients and model configurations see. Constants only."""

from __future__ import annotations

from typing import Final

BACKEND: Final = "priority_router"
"""The backend of a router's ``config.pbtxt``, and the name of that backend's folder."""

CLASS_TENSOR: Final = "CLASS"
"""Optional input: the class of a request, BYTES, one value per row."""

CLASS_PARAMETER: Final = "class"
"""Request parameter that names the class where there is no tensor."""

PROBE_PARAMETER: Final = "priority_router_probe"
"""Request parameter, of value true: only whether the router lives is asked. It answers without outputs, before it looks
at anything else of the request."""

TENANT_PARAMETER: Final = "tenant"
"""Request parameter that names the tenant, where the policy asks for it."""

QUEUE_OUTPUT: Final = "ROUTER_QUEUE_US"
"""Output: microseconds from ``execute`` to the executor call of the first part, INT64, one value per row."""

EXECUTOR_OUTPUT: Final = "ROUTER_EXECUTOR_US"
"""Output: microseconds between executor call and return, summed over the parts of a split request; likewise."""

TIMING_OUTPUTS: Final = frozenset((QUEUE_OUTPUT, EXECUTOR_OUTPUT))

BATCHES_PER_REQUEST: Final = 16
"""A router is to take requests of so many of its executor's batches; it splits them."""
