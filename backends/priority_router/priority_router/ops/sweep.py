# SPDX-License-Identifier: Apache-2.0
"""The command ``sweep``: rows per second of one model by the rows of a batch, asked of a running server.

Every batch is one request of zeros. One more is in flight than the model has instances, so that none of them idles and
Triton has never two waiting that it could join.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from priority_router.errors import SetupError
from priority_router.ops import command_line
from priority_router.ops.probe.question import Unanswerable, encode, zero_inputs
from priority_router.policy_fields import DEFAULT_BATCH_EFFICIENCY

DEFAULT_URL: Final = "http://127.0.0.1:8000"
DEFAULT_MODEL: Final = "executor"
DEFAULT_SECONDS: Final = 5.0
_WARMUP_SHARE: Final = 0.2
"""Of the measured time, before it: first executions of a shape are slow."""

_TIMEOUT_SECONDS: Final = 60.0


def main(words: Sequence[str]) -> int:
    """Measures and prints a table.

    Args:
        words: options.

    Returns:
        0.

    Raises:
        SetupError: the model cannot be asked; the text says why.
    """
    options = _parser().parse_args(words)
    server = _Server(options.url, options.model)
    config = server.config()
    row_counts = options.rows or powers_of_two(int(config.get("max_batch_size", 0)))
    print(" rows   rows/s  ms per batch")
    measured = {}
    for rows in row_counts:
        measured[rows] = server.rows_per_s(config, rows, options.instances, options.seconds)
        print(f"{rows:5} {measured[rows]:8.1f} {1e3 * options.instances * rows / measured[rows]:13.2f}", flush=True)
    share = DEFAULT_BATCH_EFFICIENCY
    print(f"\nfewest rows within {share:.0%} of the best rows/s: {smallest_efficient(measured, share)}")
    return 0


def powers_of_two(largest: int) -> list[int]:
    """1, 2, 4 and so on up to ``largest``, which is the last; 1 for a model without a batch axis."""
    return sorted({1, max(1, largest), *(2**n for n in range(1, largest.bit_length()) if 2**n < largest)})


def smallest_efficient(measured: Mapping[int, float], share: float) -> int:
    """The smallest row count whose rows/s is at least ``share`` of the best."""
    return min(rows for rows, rate in measured.items() if rate >= share * max(measured.values()))


class _Server:
    """One model of one server, over HTTP."""

    def __init__(self, url: str, model: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise SetupError(f"--url {url}: write http://HOST:PORT")
        self._host, self._port = parts.hostname, parts.port
        self._url = url
        self._path = f"{parts.path.rstrip('/')}/v2/models/{urllib.parse.quote(model, safe='')}"

    def config(self) -> dict[str, Any]:
        """The model's configuration."""
        with contextlib.closing(self._connection()) as connection:
            found: dict[str, Any] = json.loads(self._ask(connection, "GET", "config"))
            return found

    def rows_per_s(self, config: Mapping[str, Any], rows: int, instances: int, seconds: float) -> float:
        """Rows/s in requests of ``rows`` each, ``instances`` + 1 of them in flight."""
        body, headers = _question(config, rows)
        begin = time.monotonic() + _WARMUP_SHARE * seconds
        end = begin + seconds
        counts = [0] * (instances + 1)
        faults: list[Exception] = []

        def run(place: int) -> None:
            try:
                with contextlib.closing(self._connection()) as connection:
                    while not faults and time.monotonic() < end:
                        self._ask(connection, "POST", "infer", body, headers)
                        counts[place] += begin <= time.monotonic() < end
            except Exception as fault:  # noqa: BLE001 - carried to the caller's thread
                faults.append(fault)

        threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(counts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]
        if not sum(counts):
            raise SetupError(f"no batch of {rows} rows ended within {seconds:g} s; measure for longer with --seconds")
        return sum(counts) * rows / seconds

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS)

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        what: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        try:
            connection.request(method, f"{self._path}/{what}", body, dict(headers or {}))
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise SetupError(f"{self._url}: {error or type(error).__name__}; is this Triton's HTTP port?") from error
        if response.status != 200:
            raise SetupError(f"{self._url} answered {response.status}: {content.decode(errors='replace')}")
        return content


def _question(config: Mapping[str, Any], rows: int) -> tuple[bytes, dict[str, str]]:
    largest = int(config.get("max_batch_size", 0))
    if rows > max(1, largest):
        raise SetupError(f"{config['name']} takes {max(1, largest)} rows at most, not {rows}; raise its max_batch_size")
    try:
        inputs = zero_inputs(config)
    except Unanswerable as error:
        raise SetupError(str(error)) from error
    if largest:
        inputs = [replace(tensor, shape=(rows, *tensor.shape[1:])) for tensor in inputs]
    body, header_length = encode(inputs)
    return body, {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(header_length),
    }


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(
        "priority-router sweep",
        "Measures what batches of each size give on a model, with requests of zeros to a server that runs: rows/s, and "
        "the time of a batch. Ask the executor itself, on a server without a router in front of it (whose guard would "
        "refuse) and without other traffic.",
    )
    parser.add_argument("--url", default=DEFAULT_URL, help="(default %(default)s)")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model to ask (default %(default)s)")
    parser.add_argument(
        "--rows",
        type=command_line.row_counts,
        metavar="A,B",
        help="row counts (default powers of two up to the model's max_batch_size)",
    )
    parser.add_argument(
        "--instances",
        type=command_line.whole_number(1),
        default=1,
        metavar="N",
        help="of the model, over all GPUs (default %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=command_line.seconds,
        default=DEFAULT_SECONDS,
        metavar="S",
        help="for each (default %(default)g)",
    )
    return parser
