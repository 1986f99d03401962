# SPDX-License-Identifier: Apache-2.0
"""The command ``probe``: exit code 0 when the answer comes within the time limit, 1 with a one-line reason if not."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Final

from priority_router.ops import command_line
from priority_router.ops.probe import asking, effects
from priority_router.ops.probe.asking import ProbeFailed, Question
from priority_router.policy_checks import HEADER_NAME

DEFAULT_URL: Final = "http://127.0.0.1:8000"
DEFAULT_METRICS_URL: Final = "http://127.0.0.1:8002"
DEFAULT_MODEL: Final = "router"
DEFAULT_EXECUTOR: Final = "executor"
DEFAULT_SECONDS: Final = 5.0


def main(words: Sequence[str]) -> int:
    """Asks once.

    Args:
        words: options.

    Returns:
        0.

    Raises:
        ProbeFailed: no answer, or hooks without effect.
    """
    options = _parser().parse_args(words)
    question = Question(options.live, options.class_name, dict(options.headers))
    started = time.monotonic()
    try:
        if options.hooks:
            places = effects.Places(options.url, options.metrics_url, options.model, options.executor)
            said = effects.prove(places, question, options.timeout)
        else:
            asking.ask(options.url, options.model, options.timeout, question)
            said = f"answered in {(time.monotonic() - started) * 1e3:.0f} ms"
    except ProbeFailed as reason:
        raise ProbeFailed(f"{options.model} at {options.url}: {reason}") from reason
    command_line.remark(f"{options.model} at {options.url} {said}")
    return 0


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
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--live",
        action="store_true",
        help="ask only whether the router's process lives: it answers at once, whatever waits and without the executor",
    )
    what.add_argument(
        "--hooks",
        action="store_true",
        help="prove by their effect that the preloaded hooks work: sends a few real requests, and one to the executor",
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
        "--executor",
        default=DEFAULT_EXECUTOR,
        metavar="MODEL",
        help="of --hooks: the model that the router calls, which must turn clients away (default %(default)s)",
    )
    parser.add_argument(
        "--metrics-url",
        default=DEFAULT_METRICS_URL,
        metavar="URL",
        help="of --hooks: where the metrics page is (default %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=command_line.seconds,
        default=DEFAULT_SECONDS,
        metavar="SECONDS",
        help="for everything (default %(default)g)",
    )
    return parser
