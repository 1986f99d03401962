# SPDX-License-Identifier: Apache-2.0
"""The command ``probe``: exit code 0 when the model answers within the time limit, 1 with a one-line reason if not."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import queue
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from priority_router.errors import PriorityRouterError
from priority_router.ops import command_line
from priority_router.ops.probe.question import Unanswerable, encode, zero_inputs
from priority_router.policy_fields import HEADER_NAME

DEFAULT_URL: Final = "http://127.0.0.1:8000"
DEFAULT_MODEL: Final = "router"
DEFAULT_SECONDS: Final = 5.0


class ProbeFailed(PriorityRouterError):
    """No answer, or an error for an answer; the text is the reason in one line."""


def main(words: Sequence[str]) -> int:
    """Asks once.

    Args:
        words: options.

    Returns:
        0.

    Raises:
        ProbeFailed: no real answer.
    """
    options = _parser().parse_args(words)
    started = time.monotonic()
    try:
        probe(options.url, options.model, options.timeout, options.class_name, dict(options.headers))
    except ProbeFailed as reason:
        raise ProbeFailed(f"{options.model} at {options.url}: {reason}") from reason
    command_line.remark(f"{options.model} at {options.url} answered in {(time.monotonic() - started) * 1e3:.0f} ms")
    return 0


def probe(
    url: str,
    model: str,
    timeout: float,
    class_name: str | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Sends one request of zeros and waits for a real answer.

    Args:
        url: ``http://HOST:PORT``, ``https://...`` or ``grpc://...``; the last needs the package tritonclient.
        model: the model to ask, normally a router.
        timeout: seconds for everything: connecting, reading the configuration, the answer.
        class_name: class to ask as, sent as the input ``CLASS`` and as a parameter; None is the policy's default class.
        headers: sent with both requests, over gRPC as metadata; where a header names the class, the one to ask as.

    Raises:
        ProbeFailed: with the reason.
    """
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        raise ProbeFailed(f"not an address ({error}); write http://HOST:PORT or grpc://HOST:PORT") from None
    if parts.scheme not in ("http", "https", "grpc") or not parts.hostname:
        raise ProbeFailed("not an address; write http://HOST:PORT or grpc://HOST:PORT")
    try:
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        raise ProbeFailed("not an address: the port is not a number from 0 to 65535") from None
    ask = _ask_grpc if parts.scheme == "grpc" else _ask_http
    _within(timeout, lambda: ask(parts, model, timeout, class_name, headers))


def _within(timeout: float, ask: Callable[[], None]) -> None:
    # Time limits of sockets restart with every byte; a thread that is left behind does not.
    outcome: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            ask()
        except BaseException as error:  # noqa: BLE001 - carried to the caller's thread
            outcome.put(error)
        else:
            outcome.put(None)

    threading.Thread(target=run, name="probe", daemon=True).start()
    try:
        error = outcome.get(timeout=timeout)
    except queue.Empty:
        raise ProbeFailed(f"no answer within {timeout:g} s") from None
    if isinstance(error, TimeoutError):
        raise ProbeFailed(f"no answer within {timeout:g} s") from error
    if isinstance(error, http.client.HTTPException):
        raise ProbeFailed(f"no HTTP answer ({type(error).__name__}); is this Triton's HTTP port?") from error
    if isinstance(error, Unanswerable | OSError):
        raise ProbeFailed(_one_line(str(error))) from error
    if error is not None:
        raise error


def _ask_http(
    address: urllib.parse.SplitResult, model: str, timeout: float, class_name: str | None, given: Mapping[str, str]
) -> None:
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=timeout)
    path = f"{address.path.rstrip('/')}/v2/models/{urllib.parse.quote(model, safe='')}"
    try:
        config = _json_object(_request(connection, "GET", f"{path}/config", headers=given))
        body, header_length = encode(zero_inputs(config, class_name), class_name)
        headers = {
            **given,
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(header_length),
        }
        answer = _json_object(_request(connection, "POST", f"{path}/infer", body, headers))
    finally:
        connection.close()
    if not answer.get("outputs"):
        raise ProbeFailed("the answer has no outputs")


def _request(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise ProbeFailed(f"HTTP {response.status}: {_error_text(content) or response.reason}")
    length = response.getheader("Inference-Header-Content-Length")
    return content[: int(length)] if length and length.isdigit() else content


def _json_object(content: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    raise ProbeFailed("the answer is not one of the inference protocol; is this Triton's HTTP port?")


def _error_text(content: bytes) -> str:
    try:
        said: Any = json.loads(content)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return _one_line(str(said))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _ask_grpc(
    address: urllib.parse.SplitResult, model: str, timeout: float, class_name: str | None, given: Mapping[str, str]
) -> None:
    # Optional: the wire needs a package that NVIDIA's server image does not have.
    from priority_router.ops import grpc_probe

    error = grpc_probe.ask(address.netloc, model, timeout, class_name, given)
    if error:
        raise ProbeFailed(_one_line(error))


def _header(word: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in word.partition(":"))
    if colon and HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable():
        return name, value
    raise argparse.ArgumentTypeError(f"{word!r} is not a header; write 'NAME: VALUE'")


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router probe",
        "Asks for one real answer: exit code 0 when it comes in time, 1 with the reason when not. Unlike the health "
        "endpoints it notices a router whose process has died.",
    )
    parser.add_argument(
        "--url", default=DEFAULT_URL, help="http://, https:// or (with tritonclient) grpc:// (default %(default)s)"
    )
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model to ask (default %(default)s)")
    parser.add_argument(
        "--class",
        dest="class_name",
        metavar="NAME",
        help="class to ask as, so that a backlog of others does not hold the answer up (default the policy's "
        "default_class)",
    )
    parser.add_argument(
        "--header",
        dest="headers",
        metavar="'NAME: VALUE'",
        type=_header,
        action="append",
        default=[],
        help="sent along, such as the one that names the class where class_sources has a header; may be repeated",
    )
    parser.add_argument(
        "--timeout",
        type=command_line.seconds,
        default=DEFAULT_SECONDS,
        metavar="SECONDS",
        help="for everything (default %(default)g)",
    )
    return parser
