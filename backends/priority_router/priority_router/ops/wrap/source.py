# SPDX-License-Identifier: Apache-2.0
"""The model that is to get a router: what is known of it, or why it cannot have one.

Law: reads only. Whatever a router cannot serve is refused here, with file, line and column, the reason and the way out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from priority_router import policy_fields
from priority_router.config import POLICY_FILE
from priority_router.errors import SetupError
from priority_router.interface import BACKEND
from priority_router.ops.lint.reading import is_address
from priority_router.ops.pbtxt import document as pbtxt
from priority_router.ops.pbtxt.document import Document
from priority_router.ops.rules import backends, configs
from priority_router.ops.rules.backends import ONNX_BACKEND, ONNX_FILE, TENSORRT_BACKEND
from priority_router.ops.rules.finding import CONFIG_FILE
from priority_router.ops.rules.models import Model
from priority_router.ops.server.layout import SAFE_PATH
from priority_router.ops.wrap import bare, instances, onnx_file, reading, tensors
from priority_router.ops.wrap.instances import Instances
from priority_router.ops.wrap.tensors import Tensor

ROUTER_VERSION: Final = "1"
"""Of a router that wrap writes: its version folder."""

_LONGEST_NAME: Final = 255

COMPLETED_BATCH_SIZE: Final = 4
"""What Triton's onnxruntime backend takes where it completes a configuration (its ``default-max-batch-size``)."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model.

    Attributes:
        name: its own, and that of its folder in a repository.
        path: as the user gave it: its folder, or an ONNX file.
        folder: path is a folder.
        external: files with weights beside a bare ONNX file, relative to it.
        document: its configuration, or the one that is made for a bare file.
        inputs: as clients send them.
        outputs: as clients get them.
        max_batch_size: in rows; 0: no batch axis.
        instances: over all devices.
        notes: what the user should know; sentences without a full stop.
    """

    name: str
    path: Path
    folder: bool
    external: tuple[str, ...]
    document: Document
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int
    instances: Instances
    notes: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Files with labels, relative to the model's folder, each once."""
        return tuple(dict.fromkeys(tensor.label_filename for tensor in self.outputs if tensor.label_filename))


def read(path: Path, stated_instances: int | None = None) -> Source:
    """Looks at a model.

    Args:
        path: its folder, or an ONNX file.
        stated_instances: by the user.

    Raises:
        PriorityRouterError: it cannot have a router, or is no model.
    """
    check_local(path)
    if path.is_dir():
        return _of_folder(path, stated_instances)
    if path.suffix.lower() != ".onnx":
        found = "is neither a folder nor an .onnx file" if path.exists() else "no such file or folder"
        raise SetupError(f"{path}: {found}; name the folder of a model that has a {CONFIG_FILE}, or an .onnx file")
    if not path.is_file():
        raise SetupError(f"{path}: no such file; name the folder of a model that has a {CONFIG_FILE}, or an .onnx file")
    return _of_file(path, stated_instances)


def check_name(name: str, what: str, remedy: str) -> None:
    """Refuses a model's name that not everything which carries it can carry.

    Raises:
        SetupError: with the reason and the way out.
    """
    if len(name) > _LONGEST_NAME:
        raise SetupError(
            f"{what} {name[:20]!r}... has {len(name)} letters, and a file system takes {_LONGEST_NAME}; {remedy} a "
            "shorter one"
        )
    if not SAFE_PATH.fullmatch(name) or "/" in name or name in (".", ".."):
        raise SetupError(
            f"{what} {name!r} has letters that the shell of Triton's Python backends and the guard's list of models "
            f"break on; {remedy} letters, digits and _ - . only"
        )


def check_local(path: Path) -> None:
    """Refuses addresses of other machines.

    Raises:
        SetupError: it is an address.
    """
    if is_address(path):
        raise SetupError(f"{path}: only folders of this machine can be read and written; copy the model to one")


def _of_folder(path: Path, stated: int | None) -> Source:
    file = path / CONFIG_FILE
    content = reading.content(file)
    if content is None:
        if any(path.glob(f"*/{CONFIG_FILE}")):
            raise SetupError(f"{path} is a model repository; name the folder of one model in it")
        raise SetupError(
            f"{path} has no {CONFIG_FILE}; write one. A server that serves the model without prints what it made up "
            f"for itself: {_ask_server(path.name)}"
        )
    document = _document(content.decode("utf-8", "surrogateescape"), str(file))
    config = document.config
    name = config.name or os.path.basename(os.path.abspath(path))
    check_name(name, f"{path}: the model's name", "rename its folder, and name in its config.pbtxt, to")
    _refuse_kind(document)
    _refuse_gpus_of_cpu(document)
    model = Model(name, document.as_json(), files=frozenset(_files(path)))
    backend = _backend(model, document)
    where = _places(document)
    known = Source(
        name=name,
        path=path,
        folder=True,
        external=(),
        document=document,
        inputs=tuple(tensors.read(config, "input", where("input"))),
        outputs=tuple(tensors.read(config, "output", where("output"))),
        max_batch_size=config.max_batch_size,
        instances=instances.of(model, stated, _at(document, "instance_group")),
        notes=tuple(_notes(config)),
    )
    if backend == TENSORRT_BACKEND and not document.written(("max_batch_size",)):
        raise SetupError(
            f"{document.path} leaves max_batch_size to the server, which takes it from the engine; write it as a "
            f"running server prints it: {_ask_server(name)}"
        )
    if not (known.inputs and known.outputs):
        known = _completed(known, backend)
    _check_sizes(known)
    return known


def _document(text: str, file: str) -> Document:
    """A configuration.

    Raises:
        SetupError: all of its faults, one per line.
    """
    if faults := pbtxt.faults(text, file):
        raise SetupError("\n".join(map(str, faults)))
    return Document.parse(text, file)


def _refuse_kind(document: Document) -> None:
    """Models that no router can call.

    Raises:
        SetupError: it is one.
    """
    config = document.config
    if config.backend == BACKEND:
        raise SetupError(
            f"{_at(document, 'backend')}: {config.name or 'the model'} is a router already; wrap the model that it "
            "calls (executor in its policy.toml)"
        )
    if config.HasField("ensemble_scheduling") or config.platform == backends.ENSEMBLE_PLATFORM:
        steps = ", ".join(dict.fromkeys(step.model_name for step in config.ensemble_scheduling.step))
        raise SetupError(
            f"{_at(document, 'ensemble_scheduling')}: it is an ensemble, which has no queue and no instances of its "
            f"own; wrap the step that does the work ({steps or 'a model'}) and name its router in that step"
        )
    if config.HasField("sequence_batching"):
        raise SetupError(
            f"{_at(document, 'sequence_batching')}: with sequence_batching the requests of one caller belong together "
            "and in their order, and a router mixes and reorders requests; remove it if the model keeps no state "
            "between requests, otherwise leave the model without a router"
        )
    if config.model_transaction_policy.decoupled:
        raise SetupError(
            f"{_at(document, 'model_transaction_policy', 'decoupled')}: a decoupled model may answer a request any "
            "number of times, and a router passes on one answer for each; give the model one answer and remove "
            "decoupled, or leave it without a router"
        )


def _refuse_gpus_of_cpu(document: Document) -> None:
    for index, group in enumerate(document.config.instance_group):
        if group.kind == group.KIND_CPU and group.gpus:
            raise SetupError(
                f"{_at(document, 'instance_group', index, 'gpus')}: a group of KIND_CPU lists gpus, and Triton does "
                "not load the model; remove gpus, or write kind: KIND_GPU"
            )


def _files(folder: Path) -> Iterator[str]:
    """What lies in the version folders, as `rules.models.Model` has it."""
    return (str(path.relative_to(folder)) for path in folder.glob("*/*"))


def _backend(model: Model, document: Document) -> str:
    """What runs the model; empty where only a server can tell.

    Raises:
        SetupError: no server can.
    """
    backend, platform = configs.backend(model), configs.text(model, "platform")
    if platform and not backend:
        raise SetupError(
            f'{_at(document, "platform")}: no backend has the platform "{platform}", and no server loads the model; '
            f"write {backends.in_place_of(platform)} in its place"
        )
    return backend


def _completed(known: Source, backend: str) -> Source:
    """What Triton's onnxruntime backend would complete; others are asked for.

    Raises:
        SetupError: nobody knows the tensors, or the model contradicts its configuration.
    """
    config, document = known.document.config, known.document
    missing = " and ".join(kind for kind in ("input", "output") if not getattr(config, kind))
    if backend != ONNX_BACKEND:
        raise SetupError(
            f"{document.path} leaves {missing} to the server, so that it does not say what the router must take and "
            f"give; write it as a running server prints it: {_ask_server(known.name)}"
        )
    model = onnx_file.read(_model_file(known))
    batch_size = known.max_batch_size
    notes = list(known.notes)
    if model.batched and not batch_size:
        batch_size = COMPLETED_BATCH_SIZE
        notes.append(
            f"config.pbtxt leaves max_batch_size to Triton, which takes {batch_size} unless the server is started with "
            "--backend-config=onnxruntime,default-max-batch-size=N; write it there, as the router's policy needs it"
        )
    elif batch_size and not model.batched:
        raise SetupError(
            f"{_at(document, 'max_batch_size')}: max_batch_size is {batch_size}, but not every input and output of the "
            "model begins with a free dimension, so that Triton does not load it; write max_batch_size: 0"
        )
    return replace(
        known,
        inputs=known.inputs or model.configured("input", batch_size > 0),
        outputs=known.outputs or model.configured("output", batch_size > 0),
        max_batch_size=batch_size,
        notes=tuple(notes),
    )


def _model_file(known: Source) -> Path:
    """The ONNX file of the version that Triton serves unless told otherwise."""
    versions = [folder for folder in known.path.iterdir() if folder.name.isdigit() and folder.is_dir()]
    if not versions:
        raise SetupError(
            f"{known.path} has no version folder, and its {CONFIG_FILE} leaves its inputs or outputs to the model in "
            f"it; put the model into 1/{ONNX_FILE}"
        )
    version = max(versions, key=lambda folder: int(folder.name))
    return backends.onnx_file(version, known.document.config.default_model_filename)


def _of_file(path: Path, stated: int | None) -> Source:
    owner = path.resolve().parent.parent
    if path.resolve().parent.name.isdigit() and (owner / CONFIG_FILE).is_file():
        raise SetupError(f"{path} belongs to a model with a {CONFIG_FILE}; name that model's folder, {owner}")
    name = path.stem
    check_name(name, f"{path}: the file's name", "rename it to")
    model = onnx_file.read(path)
    if ONNX_FILE in model.external:
        raise SetupError(
            f"{path}: its weights are in a file named {ONNX_FILE}, which Triton wants the model itself to be "
            "called; save the model with another name for its data"
        )
    found = bare.config(name, model, stated or 1)
    batched = found.max_batch_size > 0
    inputs, outputs = model.configured("input", batched), model.configured("output", batched)
    return Source(
        name=name,
        path=path,
        folder=False,
        external=model.external,
        document=Document.parse(found.text, CONFIG_FILE),
        inputs=inputs,
        outputs=outputs,
        max_batch_size=found.max_batch_size,
        instances=Instances(stated or 1),
        notes=found.notes,
    )


def _check_sizes(known: Source) -> None:
    """What a policy cannot say."""
    for key, value in (("max_batch_size", known.max_batch_size), ("instances", known.instances.count)):
        check = next(field.check for field in policy_fields.EXECUTOR_SHAPE if field.key == key)
        if check is not None and (remedy := check(value)) is not None:
            where = _at(known.document, "max_batch_size" if key == "max_batch_size" else "instance_group")
            raise SetupError(f"{where}: {key} is {value}, which a router cannot serve; write {remedy}")
    for index, tensor in enumerate(known.outputs):
        if tensor.label_filename and not _is_beside(PurePosixPath(tensor.label_filename)):
            raise SetupError(
                f"{_at(known.document, 'output', index, 'label_filename')}: label_filename "
                f"{tensor.label_filename!r} cannot have the same place in the router's folder; put the file beside "
                f"{CONFIG_FILE}"
            )


def _is_beside(label: PurePosixPath) -> bool:
    """Whether a file with labels may lie in a router's folder as it does in the model's."""
    first = label.parts[0] if label.parts else "/"
    if first == "/" or ".." in label.parts or str(label) in (CONFIG_FILE, f"{ROUTER_VERSION}/{POLICY_FILE}"):
        return False
    return not first.isdigit() or first == ROUTER_VERSION  # another one would be a version of the router


def _notes(config: Any) -> Iterator[str]:
    ragged = tensors.ragged(config)
    if ragged:
        yield (
            f"allow_ragged_batch of {', '.join(ragged)}: the router joins requests of equal shapes only, so that rows "
            "of different lengths no longer share a batch"
        )
    if config.input and all(entry.optional for entry in config.input):
        yield "every input is optional: the router refuses a request that has none of them"


def _places(document: Document) -> Callable[[str], Callable[[int, str], str]]:
    return lambda kind: lambda index, field: _at(document, kind, index, field)


def _at(document: Document, *path: str | int) -> str:
    position = document.position(path)
    return f"{document.path}:{position.line}:{position.column}"


def _ask_server(name: str) -> str:
    return f"curl http://SERVER:8000/v2/models/{name}/config"
