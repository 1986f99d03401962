# SPDX-License-Identifier: Apache-2.0
"""JSON documents of a server's HTTP front end."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final

from priority_router.errors import PriorityRouterError

_LONGEST_SHOWN: Final = 300
"""Bytes of an answer in an error."""


def get(connection: http.client.HTTPConnection, path: str, error: type[PriorityRouterError]) -> Any:
    """Asks for a document; the connection may be used again.

    Args:
        connection: to the server.
        path: of the document.
        error: what to raise with a text: no answer, another status than 200, or no JSON.
    """
    where = f"http://{connection.host}:{connection.port}{path}"
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as fault:
        # What another protocol answers is no text.
        said = ascii(str(fault))[1:-1] or type(fault).__name__
        raise error(f"{where}: {said}; is a server there, and is this its HTTP port?") from fault
    if response.status != 200:
        raise error(f"{where}: status {response.status}: {body[:_LONGEST_SHOWN].decode(errors='replace')}")
    try:
        return json.loads(body)
    except ValueError as fault:
        raise error(f"{where}: no JSON came; is this Triton's HTTP port?") from fault
