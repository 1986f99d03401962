# SPDX-License-Identifier: Apache-2.0
"""Triton's life cycle for a router: load, take requests, unload. Everything else is in the package beside this file."""

import contextlib
import json
import os
import sys
from pathlib import Path

import triton_python_backend_utils as pb_utils

HERE = os.path.dirname(os.path.abspath(__file__))

if sys.version_info < (3, 11):  # noqa: UP036 - tomllib is missing there, as NVIDIA's images up to 24.10 are
    raise ImportError(
        f"priority_router needs Python 3.11 or newer, this server's stub runs {sys.version.split()[0]} ({sys.prefix}); "
        "NVIDIA's images have it from 24.11 on"
    )

# Triton appends the backend folder to sys.path, where an installed package of the same name would win.
sys.path.insert(0, HERE)

import priority_router  # noqa: E402 - found only now

if os.path.dirname(os.path.dirname(os.path.abspath(priority_router.__file__))) != HERE:
    raise ImportError(
        f"the package priority_router was found at {priority_router.__file__}, not beside {HERE}/model.py: another "
        "copy was imported first; remove it from this interpreter, or copy the whole backend folder again"
    )

from priority_router.config import POLICY_FILE, parse_file, read_text  # noqa: E402
from priority_router.control import RouterChannel, server_restarts  # noqa: E402
from priority_router.errors import SetupError  # noqa: E402
from priority_router.hooks import HookCounters, read_marker  # noqa: E402
from priority_router.runtime import policy_watch, startup  # noqa: E402
from priority_router.runtime.router import Router, Surroundings  # noqa: E402


class TritonPythonModel:
    """One router; Triton makes one object per instance, and a router has one instance."""

    def initialize(self, args: dict[str, str]) -> None:
        """Reads and checks policy, configuration and surroundings, then starts the threads.

        The executor is not touched: it may be loaded later, reloaded or missing, which its callers are told.

        Args:
            args: Triton's: configuration as JSON, name, folder and version of the model.

        Raises:
            PolicyError: the policy cannot be used; the model does not load.
            SetupError: this server cannot run it; likewise.
        """
        startup.check_numpy(pb_utils)
        path = Path(args["model_repository"], args["model_version"], POLICY_FILE)
        file = policy_watch.PolicyFile(path, read_text(path))
        policy = parse_file(file.text, path)
        warnings = startup.check_config(json.loads(args["model_config"]), policy)
        marker = startup.check_hooks(policy, read_marker(os.environ), os.getppid())
        guard_active = startup.guard_active(policy, marker, os.environ)
        model = args["model_name"]
        if policy.guard_executor and not guard_active:
            warnings = [*warnings, startup.guard_warning(policy)]
        for warning in warnings:
            pb_utils.Logger.log_warn(f"priority_router {model}: {warning}")
        with contextlib.ExitStack() as opened:
            hooks = None
            if marker is not None:
                try:
                    hooks = HookCounters.open(marker)
                    opened.callback(hooks.close)
                except SetupError as error:
                    pb_utils.Logger.log_warn(f"priority_router {model}: whether the hooks work cannot be told: {error}")
            channel = RouterChannel.from_environment(os.environ, model)
            if channel is not None:
                opened.callback(channel.close)
            watched = file if policy_watch.wanted(os.environ) else None
            surroundings = Surroundings(model, hooks, guard_active, channel, server_restarts(os.environ), watched)
            self._router = Router(pb_utils, policy, surroundings)
            opened.pop_all()  # the router's to close from here on

    def execute(self, requests: list[object]) -> list[object] | None:
        """Takes requests in and returns at once; each is answered later through its response sender.

        Args:
            requests: Triton's; their tensors are gone when this returns.

        Returns:
            None, or responses to those that have no sender, in a list with None for the others.
        """
        return self._router.execute(requests)

    def finalize(self) -> None:
        """Stops the threads; Triton calls this once every request has been answered."""
        self._router.close()
