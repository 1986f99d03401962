# SPDX-License-Identifier: Apache-2.0
"""Which of Triton's APIs a server keeps closed, and the headers that open them.

Law: pure. An API is closed in both protocols by a header that a request must carry; what the user has restricted after
``--`` is the user's, since Triton takes each API in one restriction only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from priority_router.errors import SetupError

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


def check_front_ends(
    closed: Collection[str], sagemaker: bool, vertex_ai: bool | None, environ: Mapping[str, str]
) -> None:
    """Refuses front ends that know no keys, and so leave open what is to be closed.

    Args:
        closed: what is to be.
        sagemaker: that front end is on: it loads models.
        vertex_ai: that one is on, which passes requests on to any API; None where only the environment says it.
        environ: of the server.

    Raises:
        SetupError: one is on, with what to do.
    """
    if vertex_ai is None:
        vertex_ai = environ.get("AIP_MODE") == "PREDICTION"
    for name, on, reached in (("Vertex AI", vertex_ai, CLOSED), ("SageMaker", sagemaker, ("model-repository",))):
        left = [api for api in reached if api in closed]
        if on and left:
            raise SetupError(
                f"Triton's front end for {name} is on (--allow-{name.lower().replace(' ', '-')}"
                f"{', AIP_MODE' if name == 'Vertex AI' else ''}), and it takes no key: on its port everybody could use "
                f"what serve closes. Switch it off, or open the same for all: "
                + " ".join(f"--open-api {api}" for api in left)
            )


def headers(secret: str, given: Iterable[Restriction]) -> dict[str, str]:
    """Headers with which every API is open over HTTP."""
    return {ADMIN_HEADER: secret, **{one.header: one.value for one in given if one.protocol == "http"}}
