# SPDX-License-Identifier: Apache-2.0
"""For callers: a class, a tenant and a unique request id on a call of any ``tritonclient`` client.

It works with ``tritonclient.http``, ``tritonclient.grpc`` and the ``aio`` client of either, and imports none of them::

    import tritonclient.http
    from priority_router.client import as_class

    client = tritonclient.http.InferenceServerClient("127.0.0.1:8000")
    result = client.infer("router", inputs, timeout=500_000, **as_class("online"))

A policy whose ``class_sources`` leave ``parameter`` out does not look at what this writes; there the class comes from
where that policy says, such as a header that a gateway sets.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TypedDict

from priority_router.interface import CLASS_PARAMETER, TENANT_PARAMETER

Parameter = str | int | bool
"""What all clients can send as the value of a request parameter."""


class ClassArguments(TypedDict):
    """Keyword arguments of ``infer`` and ``async_infer``.

    Attributes:
        request_id: Triton sends it back with the reply and names it in its log.
        parameters: request parameters, the class among them.
    """

    request_id: str
    parameters: dict[str, Parameter]


def as_class(
    name: str, *, tenant: str = "", request_id: str = "", parameters: Mapping[str, Parameter] | None = None
) -> ClassArguments:
    """The keyword arguments that make a call one of class ``name``.

    Args:
        name: a class of the router's policy.
        tenant: on whose behalf the call is made, where the policy shares a class or has rules by tenant; empty = not
            said.
        request_id: the caller's own; empty makes a unique one, 32 hexadecimal digits.
        parameters: the caller's own request parameters, which are kept.

    Returns:
        Arguments for ``client.infer(model, inputs, **arguments)``, of a router or of an ensemble with one in it.

    Raises:
        TypeError: ``name`` or ``tenant`` is not a text.
        ValueError: ``name`` is empty, or ``parameters`` name another class or tenant.
    """
    if not isinstance(name, str):
        raise TypeError(f"a class is named by a text such as 'online', not by {name!r}")
    if not name:
        raise ValueError("the class is empty; name one of the router's policy, or leave as_class out for its default")
    merged = dict(parameters or {})
    if merged.setdefault(CLASS_PARAMETER, name) != name:
        raise ValueError(f"parameters name the class {merged[CLASS_PARAMETER]!r}, as_class {name!r}; name it once")
    if not isinstance(tenant, str):
        raise TypeError(f"a tenant is named by a text such as 'acme', not by {tenant!r}")
    if tenant and merged.setdefault(TENANT_PARAMETER, tenant) != tenant:
        raise ValueError(f"parameters name the tenant {merged[TENANT_PARAMETER]!r}, as_class {tenant!r}; name it once")
    return {"request_id": request_id or uuid.uuid4().hex, "parameters": merged}
