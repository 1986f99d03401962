# SPDX-License-Identifier: Apache-2.0
"""What must hold before a router serves: the model's configuration, numpy, the hooks, the guard.

Law: each check reads what it is given and raises a SetupError that says what was found and what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from priority_router.config import RouterPolicy
from priority_router.errors import SetupError
from priority_router.hooks import (
    DISPATCH,
    GUARD,
    GUARDED_MODELS_ENV,
    LIBRARY_NAME,
    PRIORITY,
    SWITCHES,
    HookMarker,
    parse_guarded_models,
)
from priority_router.interface import BATCHES_PER_REQUEST, CLASS_TENSOR, TIMING_OUTPUTS

_ONE_CPU_INSTANCE = "instance_group { kind: KIND_CPU count: 1 }"


def check_numpy(pb: Any) -> None:
    """Sends an array through the stub's own conversions; some pairs of stub and numpy garble it without an error."""
    sent = np.array([[110, 1]], dtype=np.int64)
    came = pb.Tensor.from_dlpack("u", pb.Tensor("t", sent).to_dlpack()).as_numpy()
    if not np.array_equal(came, sent):
        raise SetupError(
            f"numpy {np.__version__} ({np.__file__}) does not work with this server's Python stub: "
            f"{sent.tolist()} came back as {came.tolist()}. The stub runs {sys.executable or 'python'} in "
            f"{sys.prefix}; install numpy < 2 there, or use Triton 24.11 or later"
        )


def check_config(config: Mapping[str, Any], policy: RouterPolicy) -> Sequence[str]:
    """The router's own ``config.pbtxt`` against what a router is, and against its policy.

    Returns:
        What an operator should change though the router works.
    """
    name = config.get("name", "router")
    if policy.executor == name:
        raise SetupError(f"router {name!r}: policy.toml names the router itself as executor; name the model to call")
    groups = config.get("instance_group") or []
    count = sum(int(group.get("count", 1)) for group in groups)
    kinds = {group.get("kind", "KIND_AUTO") for group in groups}
    if count != 1 or kinds != {"KIND_CPU"}:
        found = ", ".join(f"{group.get('count', 1)} x {group.get('kind', 'KIND_AUTO')}" for group in groups) or "none"
        raise SetupError(
            f"router {name!r} has instances {found}; it must be one CPU instance, since each has a queue of its own: "
            f"write {_ONE_CPU_INSTANCE}"
        )
    if config.get("model_transaction_policy", {}).get("decoupled"):
        raise SetupError(
            f"router {name!r} is decoupled, which HTTP and unary gRPC refuse; remove model_transaction_policy"
        )
    batched = int(config.get("max_batch_size", 0)) > 0
    if batched != (policy.scheduling.max_batch_size > 0):
        raise SetupError(
            f"router {name!r} has max_batch_size {config.get('max_batch_size', 0)}, its policy's [executor_shape] "
            f"has {policy.scheduling.max_batch_size}: both must be 0, or neither; the router's is the largest request "
            f"it accepts, such as {BATCHES_PER_REQUEST} times the executor's"
        )
    _check_tensors(name, config)
    return _check_scheduling(name, config)


def _check_scheduling(name: str, config: Mapping[str, Any]) -> Sequence[str]:
    """What Triton does with requests before the router gets them, and with its answers."""
    if "sequence_batching" in config:
        raise SetupError(
            f"router {name!r} has sequence_batching, which a router cannot serve: it joins requests of many callers; "
            "write dynamic_batching { }"
        )
    batching = config.get("dynamic_batching", {})
    if int(batching.get("priority_levels", 0)):
        raise SetupError(
            f"router {name!r} has priority_levels: its own queue would order requests by what their callers ask for, "
            "and could stall for up to 500 ms; write dynamic_batching { }: the classes of policy.toml are its order, "
            "priority_levels belong to the executor"
        )
    if batching.get("preserve_ordering"):
        raise SetupError(
            f"router {name!r} has preserve_ordering: an urgent answer would wait for every earlier one; "
            "write dynamic_batching { }"
        )
    delay = int(batching.get("max_queue_delay_microseconds", 0))
    if not delay:
        return ()
    return (
        f"its config.pbtxt has max_queue_delay_microseconds: {delay}: every request may wait that long before the "
        "router gets it, which neither its timeouts nor ROUTER_QUEUE_US cover, and nothing is gained, since the router "
        "makes the batches; write dynamic_batching { }",
    )


def _check_tensors(name: str, config: Mapping[str, Any]) -> None:
    wanted = dict.fromkeys(TIMING_OUTPUTS, "TYPE_INT64") | {CLASS_TENSOR: "TYPE_STRING"}
    for tensor in (*config.get("input", []), *config.get("output", [])):
        data_type = tensor.get("data_type")
        if data_type == "TYPE_BF16":
            raise SetupError(
                f"router {name!r}: {tensor['name']} is BF16, which Python cannot hold; it cannot be routed"
            )
        if tensor["name"] in wanted:
            dims = [int(dim) for dim in tensor.get("dims", [])]
            if data_type != wanted[tensor["name"]] or dims != [1]:
                raise SetupError(
                    f"router {name!r}: {tensor['name']} is {data_type} {dims}; it must be "
                    f"{wanted[tensor['name']]} with dims: [ 1 ]"
                )


def check_hooks(policy: RouterPolicy, marker: HookMarker | None, parent_pid: int) -> HookMarker | None:
    """In levels mode the server that runs this router must have its hooks.

    Args:
        policy: of this router.
        marker: what the environment says.
        parent_pid: the server.

    Returns:
        The marker where this very server left it.
    """
    ours = marker if marker is not None and marker.active_in(parent_pid) else None
    missing = {PRIORITY, DISPATCH} - (ours.hooks if ours is not None else frozenset())
    if policy.scheduling.levels and missing:
        remedy = f"Start the server with `priority-router serve` or with LD_PRELOAD={LIBRARY_NAME}"
        if marker is None:
            found = f"{LIBRARY_NAME} is not loaded into this server"
        elif ours is None:
            found = f"{LIBRARY_NAME} is loaded into process {marker.pid}, not into this server ({parent_pid})"
        else:
            off = sorted(missing)
            found = f"{LIBRARY_NAME} is loaded, but not active in it: {' and '.join(off)}"
            variables = " and ".join(f"{SWITCHES[hook]}=0" for hook in off)
            remedy = (
                f"Take {variables} out of the server's environment (where it is not there, this release of Triton "
                "lacks what the hook needs)"
            )
        raise SetupError(
            f'mode = "levels" needs hooks that this server does not have: {found}. Without them levels stall the '
            f'executor for up to 500 ms between batches. {remedy}, or set mode = "plain"'
        )
    return ours


def guard_active(policy: RouterPolicy, marker: HookMarker | None, environ: Mapping[str, str]) -> bool:
    """Whether clients are kept from calling the executor.

    Args:
        policy: names the executor.
        marker: of this server; None without hooks.
        environ: of the server.
    """
    guarded = parse_guarded_models(environ.get(GUARDED_MODELS_ENV, ""))
    return marker is not None and GUARD in marker.hooks and policy.executor in guarded


def guard_warning(policy: RouterPolicy) -> str:
    """What to tell an operator whose policy asks for the guard on a server without it."""
    return (
        f"clients can call {policy.executor!r} directly and pass the queue: the guard hook is not active. Start the "
        f"server with `priority-router serve`, or name the model in {GUARDED_MODELS_ENV} and preload {LIBRARY_NAME}, "
        "or set guard_executor = false"
    )
