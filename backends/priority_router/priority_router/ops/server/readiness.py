# SPDX-License-Identifier: Apache-2.0
"""Does the server serve yet, and if not, why: its HTTP answers and its log."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

Headers = Mapping[str, str]
"""Of a request to an API that may be closed to others."""

NO_HEADERS: Final[Headers] = MappingProxyType({})

_TIMEOUT_SECONDS = 2.0
_TAIL_LINES = 25

_LOG_LINE = re.compile(r"^(?:[EFWI]\d{4} \S+ \d+ \S+\] ?|\d{4}-\d\d-\d\dT\S+ [EFWI] (?:\S+\] ?)?)")
_MODEL_FAILED = re.compile(r"failed to load '(?P<model>[^']+)' version (?P<version>\d+): (?P<reason>.*)")
_ESCAPED = re.compile(r"\\(.)")
_FRAMES = "\n\nAt:\n"
_USAGE = "Usage: tritonserver [options]"
_BAD_OPTION = re.compile(r"^\S*tritonserver: (?P<fault>.*option .*)")
_POLL_FAILED = re.compile(r"Poll failed for model directory '(?P<model>[^']+)': (?P<reason>.*)")


def ready_status(host: str, port: int, headers: Headers = NO_HEADERS) -> int | None:
    """HTTP status of the server's readiness, 200 = every model serves; None while nobody answers."""
    try:
        return request(host, port, "GET", "/v2/health/ready", headers=headers)[0]
    except (OSError, http.client.HTTPException):
        return None


def is_live(host: str, port: int, timeout: float) -> bool:
    """The server answers, whatever it says, within a time limit in seconds."""
    try:
        request(host, port, "GET", "/v2/health/live", timeout)
    except http.client.HTTPException:
        return True
    except OSError:
        return False
    return True


def model_states(host: str, port: int, headers: Headers = NO_HEADERS) -> dict[str, tuple[str, str]]:
    """Model name (with version) to state and reason, as the repository index has them; empty when it cannot be read."""
    return {
        f"{entry['name']} version {entry['version']}" if entry.get("version") else str(entry["name"]): (
            str(entry.get("state", "")),
            str(entry.get("reason", "")),
        )
        for entry in _index(host, port, headers)
    }


def served(host: str, port: int, headers: Headers = NO_HEADERS) -> set[str]:
    """Names of the models that serve; empty when the repository index cannot be read."""
    return {str(entry["name"]) for entry in _index(host, port, headers) if entry.get("state") == "READY"}


def _index(host: str, port: int, headers: Headers) -> list[dict[str, Any]]:
    try:
        status, body = request(host, port, "POST", "/v2/repository/index", headers=headers)
        entries: list[dict[str, Any]] = json.loads(body) if status == 200 else []
    except (OSError, http.client.HTTPException, ValueError):
        return []
    return entries


def explain(log: str) -> str:
    """Why a server did not start, from its log: which model failed and why, else its errors, else its last words."""
    lines = log.splitlines()
    if _USAGE in lines:
        return _explain_usage(lines)
    reasons: dict[str, None] = {}
    for line in lines:
        for pattern in (_MODEL_FAILED, _POLL_FAILED):
            if found := pattern.search(line):
                reason = _message(found["reason"].strip())
                reasons[f"model {found['model']}: {reason}"] = None
    if not reasons:
        reasons = dict.fromkeys(_without_prefix(line) for line in lines if _is_error(line))
    return "\n".join(reasons) or "its last words were:\n" + "\n".join(lines[-_TAIL_LINES:])


def tail(log: str, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log."""
    return "\n".join(log.splitlines()[-lines:])


def _explain_usage(lines: Sequence[str]) -> str:
    """What tritonserver found wrong with its arguments: said before its long usage text or after it, by kind."""
    before = [found["fault"] for line in lines if (found := _BAD_OPTION.match(line))]
    after = [line for line in lines[-_TAIL_LINES:] if line.startswith(("Bad option", "Invalid", "invalid"))]
    return " ".join(before or after) or tail("\n".join(lines))


def _is_error(line: str) -> bool:
    return bool(re.match(r"^(?:[EF]\d{4} |\d{4}-\d\d-\d\dT\S+ [EF] |error: )", line))


def _without_prefix(line: str) -> str:
    return _message(_LOG_LINE.sub("", line).strip())


def _message(text: str) -> str:
    """A log's text as it was meant: without the quotes and escapes around it and the Python frames after it."""
    if text.endswith('"'):
        text = _ESCAPED.sub(lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text.removesuffix('"'))
    return text.removeprefix('"').partition(_FRAMES)[0].strip()


def request(
    host: str,
    port: int,
    method: str,
    path: str,
    timeout: float = _TIMEOUT_SECONDS,
    headers: Headers = NO_HEADERS,
) -> tuple[int, bytes]:
    """One call of the HTTP API: status and body.

    Raises:
        OSError: nobody answers in time.
        http.client.HTTPException: what answers does not speak HTTP.
    """
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
