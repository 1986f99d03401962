# SPDX-License-Identifier: Apache-2.0
"""Rules about the folder of a model: its name, its versions and what lies in them."""

from __future__ import annotations

from collections.abc import Iterator

from priority_router.config import POLICY_FILE
from priority_router.interface import BACKEND
from priority_router.ops.rules import backends
from priority_router.ops.rules.catalogue import files as rules
from priority_router.ops.rules.configs import (
    at,
    backend,
    config_file,
    in_policy,
    is_ensemble,
    joined,
    policy_file,
    served_versions,
    text,
)
from priority_router.ops.rules.finding import CONFIG_FILE, Finding, Place
from priority_router.ops.rules.models import Model


def check(model: Model) -> Iterator[Finding]:
    """All rules about a model's folder."""
    name = model.config.get("name")
    if name and name != model.name:
        yield Finding(
            rules.NAME_DIFFERS,
            at(model, "name"),
            f'{config_file(model)} has name: "{name}": Triton refuses a model whose name is not that of its folder',
            f'write name: "{model.name}" in {config_file(model)}',
        )
    if model.is_router:
        yield from _policy(model)
    elif found := _stray_policy(model):
        yield found
    else:
        yield from _platform(model)
        yield from _backend(model)
        yield from _versions(model)


def _versions(model: Model) -> Iterator[Finding]:
    served = served_versions(model)
    if model.files is None or served is None:
        return
    file = model_file(model)
    if not served:
        present = joined([str(version) for version in model.versions]) if model.versions else "none"
        yield Finding(
            rules.NO_VERSION,
            Place(model.name, ""),
            f"model {model.name!r} has no version folder that may serve (there is {present}): Triton refuses to load "
            "it",
            _folder_fix(model, file),
        )
        return
    for version in served:
        wanted = f"{version}/{file}"
        if file and not any(found == wanted or found.startswith(wanted + "/") for found in model.files):
            yield Finding(
                rules.NO_VERSION,
                Place(model.name, str(version)),
                f"model {model.name!r} has no file {wanted}: its backend refuses to load it",
                f"put the model into {model.name}/{wanted}, or write the name of its file as default_model_filename in "
                f"{config_file(model)}",
            )


def _folder_fix(model: Model, file: str) -> str:
    if model.versions:
        return f"remove version_policy from {config_file(model)}, or correct it"
    inside = f"with {file} in it" if file else "for what is to be served" if not is_ensemble(model) else "left empty"
    return f"make the folder {model.name}/1, {inside}"


def model_file(model: Model) -> str:
    """The file or folder that a version needs; empty where that cannot be told."""
    if any(model.config.get(key) for key in ("ensemble_scheduling", "cc_model_filenames", "runtime")):
        return ""
    usual = backends.file_of(backend(model), text(model, "platform"))
    return usual and (text(model, "default_model_filename") or usual)


def _platform(model: Model) -> Iterator[Finding]:
    platform = text(model, "platform")
    if platform in ("", backends.ENSEMBLE_PLATFORM) or backend(model):
        return
    file = config_file(model)
    yield Finding(
        rules.UNKNOWN_PLATFORM,
        at(model, "platform"),
        f'{file} has platform: "{platform}", by which Triton finds no backend: it refuses to load the model',
        f'write {backends.in_place_of(platform)} in place of platform: "{platform}" in {file}',
    )


def _stray_policy(model: Model) -> Finding | None:
    """A policy beside which nothing of another backend lies, in a version that serves."""
    files, served, runs = model.files or (), served_versions(model) or (), backend(model)
    present = [f"{version}/{POLICY_FILE}" for version in served if f"{version}/{POLICY_FILE}" in files]
    like_ours = backends.close_to(runs) == BACKEND
    usual = model_file(model)
    if not present or is_ensemble(model) or (runs and not usual and not like_ours):
        return None
    if usual and any(found.startswith(f"{version}/{usual}") for version in served for found in files):
        return None
    file = config_file(model)
    if CONFIG_FILE not in files:
        what = f"there is no {file}"
        fix = f'write backend: "{BACKEND}" into {file}, with the inputs and outputs of the executor'
        return Finding(rules.POLICY_WITHOUT_ROUTER, Place(model.name, present[0]), _no_router(model, what), fix)
    keys = [key for key in ("backend", "platform") if text(model, key)]
    written = " and ".join(f'{key}: "{text(model, key)}"' for key in keys)
    place = f" in place of {written}" if written else ""
    return Finding(
        rules.POLICY_WITHOUT_ROUTER,
        at(model, *keys[:1]),
        _no_router(model, f"{file} has {written or 'no backend'}"),
        f'write backend: "{BACKEND}"{place} in {file}',
    )


def _no_router(model: Model, what: str) -> str:
    return f"model {model.name!r} has a {POLICY_FILE}, and {what}: nothing reads the policy"


def _backend(model: Model) -> Iterator[Finding]:
    """One that is misspelt, or cannot be told; a model may bring its own in its folder."""
    file, written, files = config_file(model), text(model, "backend"), model.files
    library = f"libtriton_{written}.so"
    if close := backends.close_to(written):
        if not any(found.rpartition("/")[2] == library for found in files or ()):
            yield Finding(
                rules.LIKE_A_BACKEND,
                at(model, "backend"),
                f'{file} has backend: "{written}", which is none of Triton\'s own',
                f'write backend: "{close}" in {file}, if that is meant',
            )
        return
    # Triton takes what stands behind a dot in the model's name for its backend.
    told = "." in model.name or any(text(model, key) for key in ("backend", "platform", "default_model_filename"))
    if files is not None and served_versions(model) and not (told or is_ensemble(model) or backend(model)):
        yield Finding(
            rules.NO_BACKEND,
            at(model) if CONFIG_FILE in files else Place(model.name, ""),
            f"model {model.name!r} has no backend in {file}, and no file in its version folder by which Triton "
            "knows one: it refuses to load it",
            f"write backend in {file}, or put the model into its version folder under a name that Triton knows, "
            "such as model.onnx",
        )


def _policy(router: Model) -> Iterator[Finding]:
    if router.policy_error:
        what, fix = _parts(router.policy_error)
        yield Finding(
            rules.POLICY_UNUSABLE,
            in_policy(router),
            f"{what}: the router does not load",
            fix or f"correct that in {policy_file(router)}",
        )
        return
    served = served_versions(router)
    if router.files is None or served is None:
        missing = [] if router.policy is not None else [1]
    else:
        missing = [version for version in served or (1,) if f"{version}/{POLICY_FILE}" not in router.files]
    for version in missing:
        elsewhere = sorted(found for found in router.files or () if found.rpartition("/")[2] == POLICY_FILE)
        found = f" (there is {router.name}/{elsewhere[0]})" if elsewhere else ""
        yield Finding(
            rules.POLICY_MISSING,
            Place(router.name, ""),
            f"router {router.name!r} has no {POLICY_FILE} in its version folder{found}: it does not load",
            f"put {POLICY_FILE} into {router.name}/{version}",
        )


def _parts(error: str) -> tuple[str, str]:
    """What a PolicyError finds wrong, and what it says to write, which stands last; empty where it says nothing."""
    for mark in (" cannot be used; ", "; ", ": did you mean", ": it belongs"):
        what, found, fix = error.rpartition(mark)
        if found:
            end = " cannot be used" if mark == " cannot be used; " else ""
            beginning = "" if mark.endswith("; ") else found.lstrip(": ")
            return what + end, (beginning + fix).rstrip(".")
    return error, ""
