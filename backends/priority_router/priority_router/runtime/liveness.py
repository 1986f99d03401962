# SPDX-License-Identifier: Apache-2.0
"""Requests that only ask whether the router lives.

Law: recognised by one parameter, before anything else of the request is read; answered by a reply thread, without the
scheduler and the executor; not counted, since they are nobody's traffic.
"""

from __future__ import annotations

import json

from priority_router.interface import PROBE_PARAMETER


def asked(parameters: str) -> bool:
    """Whether a request of Triton's is such a question, by its parameters; ones that are no JSON are none."""
    try:
        # Nearly every request ends here, and pays for no more than the search.
        return PROBE_PARAMETER in parameters and json.loads(parameters).get(PROBE_PARAMETER) is True
    except Exception:  # noqa: BLE001 - whoever reads it next says what is wrong
        return False
