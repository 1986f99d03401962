# SPDX-License-Identifier: Apache-2.0
"""What the user passes on to tritonserver after ``--``: which of it `serve` must know, and what it cannot allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops.server import closed

_OWN: Final = {
    "model-repository": "name it before `--`: serve --model-repository DIR (may be repeated)",
    "model-store": "name it before `--`: serve --model-repository DIR (may be repeated)",
    "backend-directory": "serve makes that folder itself; install further backends in the server's own backends folder",
    "http-port": "name it before `--`: serve --http-port N",
    "grpc-port": "name it before `--`: serve --grpc-port N",
    "metrics-port": "name it before `--`: serve --metrics-port N",
    "http-address": "name it before `--`: serve --host ADDRESS",
    "grpc-address": "name it before `--`: serve --host ADDRESS",
    "metrics-address": "name it before `--`: serve --host ADDRESS",
}
_FLAGS: Final = {"help", "disable-auto-complete-config"}
"""Options of tritonserver that take no value."""

_TRUE: Final = {"true", "1"}
_FALSE: Final = {"false", "0"}


@dataclass(frozen=True)
class Passed:
    """The arguments for tritonserver, and what they say about it.

    Attributes:
        words: as the user gave them.
        grpc: gRPC is served.
        metrics: metrics are served.
        exit_on_error: the server gives up when a model fails to load.
        backend_settings: keys of ``--backend-config=python,...`` that the user sets, with the last value given.
        log_file: where the server writes its log instead of stderr.
        loaded: models that it loads when it starts; None for all.
        config_name: file of ``configs/`` that it reads instead of a model's ``config.pbtxt``, where there is one.
        restrictions: APIs that the user closes.
        sagemaker: SageMaker's front end is on.
        vertex_ai: Vertex AI's front end is on; None where nothing is said of it.
    """

    words: tuple[str, ...]
    grpc: bool
    metrics: bool
    exit_on_error: bool
    backend_settings: dict[str, str]
    log_file: str | None
    loaded: frozenset[str] | None = None
    config_name: str | None = None
    restrictions: tuple[closed.Restriction, ...] = ()
    sagemaker: bool = False
    vertex_ai: bool | None = None


def read(words: Sequence[str], least_pool: int | None) -> Passed:
    """Reads what follows ``--``.

    Args:
        words: arguments for tritonserver; those it does not know are its own to refuse.
        least_pool: threads that the routers need in the Python backend's pool; None where that is not known yet.

    Raises:
        SetupError: an option that `serve` sets itself, or a value that would break what it promises.
    """
    switches = {"allow-http": True, "allow-grpc": True, "allow-metrics": True, "exit-on-error": True}
    front_ends: dict[str, bool] = {}
    settings: dict[str, str] = {}
    last: dict[str, str] = {}
    named: set[str] = set()
    restrictions: list[closed.Restriction] = []
    for name, value in _options(words):
        # tritonserver takes unique beginnings of its option names, too.
        own = next((option for option in _OWN if name and option.startswith(name)), None)
        if own is not None:
            raise SetupError(f"--{name} cannot be passed on to tritonserver: {_OWN[own]}")
        if name in switches:
            switches[name] = _boolean(name, value)
        elif name in ("allow-sagemaker", "allow-vertex-ai"):
            front_ends[name] = _boolean(name, value)
        elif name == "backend-config" and value.startswith("python,"):
            key, _, setting = value.removeprefix("python,").partition("=")
            settings[key] = setting
        elif name == "load-model":
            named.add(value)
        elif restriction := closed.read(name, value):
            restrictions.append(restriction)
        else:
            last[name] = value
    if not switches["allow-http"]:
        raise SetupError("--allow-http=false cannot be passed on: serve learns over HTTP whether the models serve")
    if least_pool is not None:
        _check_pool(settings.get("thread-pool-size"), least_pool)
    chosen = last.get("model-control-mode") == "explicit" and "*" not in named
    return Passed(
        tuple(words),
        grpc=switches["allow-grpc"],
        metrics=switches["allow-metrics"],
        exit_on_error=switches["exit-on-error"],
        backend_settings=settings,
        log_file=last.get("log-file"),
        loaded=frozenset(named) if chosen else None,
        config_name=last.get("model-config-name"),
        restrictions=tuple(restrictions),
        sagemaker=front_ends.get("allow-sagemaker", False),
        vertex_ai=front_ends.get("allow-vertex-ai"),
    )


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            raise SetupError(f"{word!r} cannot be passed on: tritonserver takes only options (--name=value)")
        name, equals, value = word[2:].partition("=")
        if not equals and name not in _FLAGS:
            value = next(rest, "")
        yield name, value


def _boolean(name: str, value: str) -> bool:
    if value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise SetupError(f"--{name}={value}: write true or false")


def _check_pool(value: str | None, least: int) -> None:
    if value is None:
        return
    try:
        enough = int(value) >= least
    except ValueError:
        enough = False
    if not enough:
        raise SetupError(
            f"--backend-config=python,thread-pool-size={value} cannot be passed on: the routers of this repository "
            f"need a whole number of at least {least} (calls in flight and replies hold a thread each); leave it out, "
            "and serve sets it"
        )
