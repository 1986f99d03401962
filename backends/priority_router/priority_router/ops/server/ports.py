# SPDX-License-Identifier: Apache-2.0
"""Ports: is one free, and which one may be taken. Linux only."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Collection
from pathlib import Path

from priority_router.errors import SetupError

_FALLBACK_EPHEMERAL = (32768, 60999)
_LOWEST_PICKED = 10000
_TRIES = 200


def check_free(host: str, port: int, purpose: str) -> None:
    """Checks that a server could listen there now.

    A server that is still stopping keeps its sockets for seconds after it has answered its last request: binding, not
    connecting, finds it. Connections of an earlier server in TIME_WAIT do not count as busy.

    Args:
        host: address to listen on.
        port: 1 to 65535.
        purpose: what the port is for, for the error: ``http``, ``grpc`` or ``metrics``.

    Raises:
        SetupError: busy, not permitted, or no such address on this machine.
    """
    try:
        _bind(host, port)
    except OSError as error:
        raise SetupError(_fault(host, port, purpose, error)) from error


def pick_free(host: str, taken: Collection[int] = ()) -> int:
    """A port where a server could listen now and that is not in `taken`.

    It lies outside the range from which the kernel numbers outgoing connections: tritonserver binds its ports only
    after the models have loaded, and a busy machine's own connections would take some in the meantime.
    """
    lowest, highest = _ephemeral_range()
    choice: list[int] = [*range(_LOWEST_PICKED, lowest), *range(highest + 1, 65536)] or [*range(1024, 65536)]
    reason = "all tried are in use"
    for port in random.sample(choice, min(_TRIES, len(choice))):
        if port in taken:
            continue
        try:
            _bind(host, port)
        except OSError as fault:
            if fault.errno != errno.EADDRINUSE:
                reason = str(fault.strerror)
                break
        else:
            return port
    raise SetupError(f"no free port found on {host}: {reason}; name one with --http-port and the like")


def resolve(host: str) -> str:
    """The IPv4 address of `host`: tritonserver's HTTP port takes no names, and IPv6 only in a spelling of its own.

    Raises:
        SetupError: it has none.
    """
    try:
        found = socket.getaddrinfo(host, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SetupError(
            f"--host {host}: no IPv4 address ({error.strerror}); name one of this machine, or 0.0.0.0 for all"
        ) from error
    return str(found[0][4][0])


def _bind(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        # With SO_REUSEADDR two sockets may share a port until one listens, so bind alone would miss some owners.
        probe.listen(1)


def _fault(host: str, port: int, purpose: str, error: OSError) -> str:
    where = f"{purpose} port {port} on {host}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where} is in use, perhaps by a server that is still stopping (that takes some seconds); "
            f"wait for it, or choose another with --{purpose}-port (0 picks a free one)"
        )
    if error.errno == errno.EACCES:
        return f"{where} needs more rights than this user has; choose one above 1023 with --{purpose}-port"
    return f"{where} cannot be used: {error.strerror}; name an address of this machine with --host"


def _ephemeral_range() -> tuple[int, int]:
    try:
        lowest, highest = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except (OSError, ValueError):
        return _FALLBACK_EPHEMERAL
    return int(lowest), int(highest)
