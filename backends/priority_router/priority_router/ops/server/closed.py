# SPDX-License-Identifier: Apache-2.0
"""Which of Triton's APIs a server keeps closed, and the headers that open them.

Law: pure. An API is closed in both protocols by a header that a request must carry; what the user has restricted after
``--`` is the user's, since Triton takes each API in one restriction only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

CLOSED: Final = ("model-repository", "shared-memory", "trace", "logging")
"""APIs that administer a server: with the first two whoever reaches a port can run code or read others' memory."""

ADMIN_HEADER: Final = "priority-router-admin"
"""Opens what `serve` has closed over HTTP; over gRPC the metadata are called so with `GRPC_PREFIX` before it."""

GRPC_PREFIX: Final = "triton-grpc-protocol-"

OPTIONS: Final = {"http": "http-restricted-api", "grpc": "grpc-restricted-protocol"}
"""Of tritonserver, for each protocol."""


@dataclass(frozen=True)
class Restriction:
    """APIs that the user has closed.

    Attributes:
        protocol: ``http`` or ``grpc``.
        apis: as Triton calls them.
        header: that opens them.
        value: which it must have.
    """

    protocol: str
    apis: frozenset[str]
    header: str
    value: str


def read(name: str, value: str) -> Restriction | None:
    """A restriction among the options for tritonserver.

    Args:
        name: of an option, which may be the beginning of one.
        value: ``API,API:HEADER=VALUE``; anything else is tritonserver's to refuse.

    Returns:
        None for another option.
    """
    protocol = next((key for key, option in OPTIONS.items() if option.startswith(name) and "-r" in name), None)
    apis, colon, key = value.partition(":")
    header, equals, secret = key.partition("=")
    if protocol is None or not colon or not equals:
        return None
    return Restriction(protocol, frozenset(api.strip() for api in apis.split(",")), header, secret)


def words(closed: Collection[str], secret: str, given: Iterable[Restriction]) -> list[str]:
    """Arguments for tritonserver that close APIs.

    Args:
        closed: which.
        secret: value of the header.
        given: what the user closes already.
    """
    made = []
    taken = list(given)
    for protocol, option in OPTIONS.items():
        left = [api for api in closed if not any(one.protocol == protocol and api in one.apis for one in taken)]
        if left:
            made.append(f"--{option}={','.join(left)}:{ADMIN_HEADER}={secret}")
    return made


def headers(secret: str, given: Iterable[Restriction]) -> dict[str, str]:
    """Headers with which every API is open over HTTP."""
    return {ADMIN_HEADER: secret, **{one.header: one.value for one in given if one.protocol == "http"}}
