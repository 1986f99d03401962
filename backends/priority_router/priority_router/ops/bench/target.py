# SPDX-License-Identifier: Apache-2.0
"""A server and what is sent to it: the requests that each class chooses from, encoded for the server's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from priority_router.ops.bench import wire
from priority_router.ops.bench.arrivals import Schedule
from priority_router.ops.bench.client import Client, OnEnd, Patience
from priority_router.ops.bench.wire import Route, Tensor

if TYPE_CHECKING:
    from priority_router.ops.bench.grpc_client import GrpcClient

GRPC = "grpc://"
"""How an address begins that is that of a gRPC front end."""

TENANT_PARAMETER = "tenant"
"""The request parameter that a router reads a tenant from."""


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A request as a class may send it.

    Attributes:
        inputs: by name.
        tenant: the request's parameter of that name; empty: none.
        patience_s: seconds after which its caller gives it up; 0: never.
        answer: bytes that a right answer holds; empty: any answer is right.
    """

    inputs: Mapping[str, Tensor]
    tenant: str = ""
    patience_s: float = 0.0
    answer: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A server and how each class of a schedule is sent to it.

    Attributes:
        address: ``host:port`` of the HTTP front end, or ``grpc://host:port`` of the gRPC one.
        routes: class name to model and marking.
        payloads: prepared inputs, by input name; a schedule's ``payload`` points into them. At least one.
        outputs: outputs to ask for; empty asks for all.
        variants: of a class that has requests of its own, in place of ``payloads``.
    """

    address: str
    routes: Mapping[str, Route]
    payloads: Sequence[Mapping[str, Tensor]]
    outputs: Sequence[str] = ()
    variants: Mapping[str, Sequence[Variant]] = field(default_factory=dict)

    def choices(self, name: str) -> Sequence[Variant]:
        """What a class's ``payload`` in a schedule points into."""
        return self.variants.get(name) or [Variant(inputs) for inputs in self.payloads]

    def encoded(self, name: str, *, identified: bool) -> list[bytes]:
        """The requests that a class chooses from."""
        found = []
        for choice in self.choices(name):
            route = self.routes[name]
            if choice.tenant:
                route = replace(route, parameters={**(route.parameters or {}), TENANT_PARAMETER: choice.tenant})
            if self.grpc:
                from priority_router.ops.bench import grpc_wire

                found.append(grpc_wire.encode(route, choice.inputs, self.outputs, identified=identified))
            else:
                found.append(wire.encode(self.address, route, choice.inputs, self.outputs, identified=identified))
        return found

    @property
    def grpc(self) -> bool:
        """Requests go by gRPC."""
        return self.address.startswith(GRPC)

    def client(self, sent: list[int], on_end: OnEnd, patience: Patience | None = None) -> Client | GrpcClient:
        """A fresh client of the server."""
        if self.grpc:
            from priority_router.ops.bench.grpc_client import GrpcClient

            return GrpcClient(self.address.removeprefix(GRPC), sent, on_end, patience)
        host, _, port = self.address.rpartition(":")
        return Client(host or "127.0.0.1", int(port), sent, on_end, patience)

    def identified_int64(self, reply: bytes, name: str) -> tuple[str, int | None]:
        """The id that a successful reply carries, and the first value of an output."""
        if self.grpc:
            from priority_router.ops.bench import grpc_wire

            return grpc_wire.identified_int64(reply, name)
        return wire.identified_int64(reply, name)

    def rows(self, schedule: Schedule) -> NDArray[np.int64]:
        """[n] rows of each request: the length of its first input's first axis, 1 without a batch axis."""
        found = np.ones(len(schedule), dtype=np.int64)
        for index, name in enumerate(schedule.classes):
            if self.routes[name].batched:
                table = np.array([len(next(iter(one.inputs.values()))) for one in self.choices(name)], dtype=np.int64)
                own = schedule.class_index == index
                found[own] = table[schedule.payload[own]]
        return found
