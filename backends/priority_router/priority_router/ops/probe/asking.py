# SPDX-License-Identifier: Apache-2.0
"""Asks a model one question over HTTP or gRPC, within one time limit for everything."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from priority_router.errors import PriorityRouterError
from priority_router.ops.probe.question import (
    Unanswerable,
    ZeroTensor,
    encode,
    parameters,
    zero_inputs,
    zero_inputs_of_metadata,
)

DEAD_PROCESS: Final = "is not healthy"
"""Triton's words for a model whose process has died or stands still."""


class ProbeFailed(PriorityRouterError):
    """No answer, or an error for an answer; the text is the reason in one line.

    Attributes:
        answered: somebody answered, so that it is no silence.
    """

    def __init__(self, reason: str, *, answered: bool = False) -> None:
        super().__init__(reason)
        self.answered = answered


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        live: whether the model's process lives, which a router answers at once and without its executor; else one
            real answer is wanted.
        class_name: class to ask as, sent as the input ``CLASS`` and as a parameter; None is the policy's default class.
        headers: sent with every request, over gRPC as metadata; where a header names the class, the one to ask as.
    """

    live: bool = False
    class_name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """What the question is made from: the model's ``config``, or its metadata, which the API has without a name."""
        return "" if self.live else "/config"

    @property
    def parameters(self) -> dict[str, str | bool]:
        """Of the request."""
        return parameters(self.class_name, live=self.live)

    def inputs(self, about: Mapping[str, Any]) -> list[ZeroTensor]:
        """Of the request.

        Args:
            about: the model's configuration or metadata, as JSON.

        Raises:
            Unanswerable: none can be made.
        """
        return zero_inputs_of_metadata(about) if self.live else zero_inputs(about, self.class_name)


def ask(url: str, model: str, timeout: float, question: Question) -> None:
    """Sends one request of zeros and waits for its answer.

    Args:
        url: ``http://HOST:PORT``, ``https://...`` or ``grpc://...``; the last needs the package tritonclient.
        model: the model to ask, normally a router.
        timeout: seconds for everything: connecting, reading about the model, the answer.
        question: what is asked.

    Raises:
        ProbeFailed: with the reason.
    """
    parts = address(url, ("http", "https", "grpc"))
    wire = _ask_grpc if parts.scheme == "grpc" else _ask_http
    within(timeout, lambda: wire(parts, model, timeout, question))


def address(url: str, schemes: tuple[str, ...]) -> urllib.parse.SplitResult:
    """The parts of an address.

    Raises:
        ProbeFailed: it is none.
    """
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        raise ProbeFailed(f"not an address ({error}); write http://HOST:PORT or grpc://HOST:PORT") from None
    if parts.scheme not in schemes or not parts.hostname:
        raise ProbeFailed("not an address; write http://HOST:PORT or grpc://HOST:PORT")
    try:
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        raise ProbeFailed("not an address: the port is not a number from 0 to 65535") from None
    return parts


def within(timeout: float, act: Callable[[], None]) -> None:
    """Does something that may hang, for so many seconds at most.

    Raises:
        ProbeFailed: it took longer, or failed on its way.
    """
    # Time limits of sockets restart with every byte; a thread that is left behind does not.
    outcome: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            act()
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
    if isinstance(error, Unanswerable):
        raise ProbeFailed(one_line(str(error)), answered=True) from error
    if isinstance(error, OSError):
        raise ProbeFailed(one_line(str(error))) from error
    if error is not None:
        raise error


def connection(parts: urllib.parse.SplitResult, timeout: float) -> http.client.HTTPConnection:
    """To a server that speaks HTTP, not opened yet."""
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=timeout)


def request(
    to: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """One request; the answer's JSON, or all of it where it has no binary part.

    Raises:
        ProbeFailed: another status than 200.
    """
    to.request(method, path, body, dict(headers or {}))
    response = to.getresponse()
    content = response.read()
    if response.status != 200:
        raise ProbeFailed(f"HTTP {response.status}: {_error_text(content) or response.reason}", answered=True)
    length = response.getheader("Inference-Header-Content-Length")
    return content[: int(length)] if length and length.isdigit() else content


def one_line(text: str) -> str:
    """A text without line breaks and runs of spaces."""
    return " ".join(text.split())


def _ask_http(parts: urllib.parse.SplitResult, model: str, timeout: float, question: Question) -> None:
    to = connection(parts, timeout)
    path = f"{parts.path.rstrip('/')}/v2/models/{urllib.parse.quote(model, safe='')}"
    try:
        about = _json_object(request(to, "GET", path + question.about, headers=question.headers))
        body, header_length = encode(question.inputs(about), question.parameters)
        headers = {
            **question.headers,
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(header_length),
        }
        answer = _json_object(request(to, "POST", f"{path}/infer", body, headers))
    finally:
        to.close()
    _check_outputs(question, answer.get("outputs"))


def _ask_grpc(parts: urllib.parse.SplitResult, model: str, timeout: float, question: Question) -> None:
    # Optional: the wire needs a package that NVIDIA's server image does not have.
    from priority_router.ops import grpc_probe

    _check_outputs(question, grpc_probe.ask(parts.netloc, model, timeout, question))


def _check_outputs(question: Question, outputs: Any) -> None:
    if not outputs and not question.live:
        raise ProbeFailed("the answer has no outputs", answered=True)


def _json_object(content: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    raise ProbeFailed("the answer is not one of the inference protocol; is this Triton's HTTP port?", answered=True)


def _error_text(content: bytes) -> str:
    try:
        said: Any = json.loads(content)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return one_line(str(said))
