# SPDX-License-Identifier: Apache-2.0
"""tests/corpus on the embedded server, with stand-ins for the backends: wrapped models answer through their routers."""

from __future__ import annotations

import json
import shutil
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
from priority_router.interface import EXECUTOR_OUTPUT, QUEUE_OUTPUT
from priority_router.ops.server import installation
from priority_router.ops.wrap import command
from support import corpus, stand_in_backends

WRAPPED = corpus.wrapped()
UNREADABLE = [entry for entry in corpus.refused() if entry.reason in ("syntax", "unknown_field")]
MARKS = (7, 3, 11)
"""Of the rows of each request: some models take fewer at once, so that their router splits it."""

READY_SECONDS = 600.0
"""A hundred and fifty processes start, and give way to everything else on the machine."""

each_wrapped = pytest.mark.parametrize("entry", WRAPPED, ids=lambda entry: entry.name)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """All models, wrapped, and beside them files that cannot be read."""
    folder = tmp_path_factory.mktemp("corpus")
    for entry in WRAPPED:
        model, text = folder / "owned" / entry.name, entry.cpu_text().encode("utf-8", "surrogateescape")
        stand_in_backends.write_model(model, text, entry.config(), entry.backend)
        command.main([str(model), "--into", str(folder / "models"), "--class", "online:1", "--class", "background:2"])
    for unreadable in UNREADABLE:
        (folder / "models" / unreadable.name / "1").mkdir(parents=True)
        shutil.copy(unreadable.path, folder / "models" / unreadable.name / "config.pbtxt")
    return folder / "models"


@pytest.fixture(scope="module")
def server(start_server, repository):
    triton = stand_in_backends.write_server(repository.parent / "triton", {entry.backend for entry in WRAPPED})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation, "find", lambda: triton)
        return start_server(
            repository,
            environment=stand_in_backends.environment(),
            extra_args=["--exit-on-error=false"],
            ready_timeout=READY_SECONDS,
        )


@pytest.fixture(scope="module")
def client(server):
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        yield client


@each_wrapped
def test_a_wrapped_model_answers_through_its_router(client, entry):
    config = entry.config()
    marks = MARKS if config.max_batch_size else MARKS[:1]
    result = client.infer(
        f"{entry.name}_router",
        stand_in_backends.inputs(config, marks),
        parameters={"class": "online"},
        client_timeout=30,
    )
    for name, expected in stand_in_backends.answers(config, marks).items():
        np.testing.assert_array_equal(result.as_numpy(name), expected)
    shape = (len(marks), 1) if config.max_batch_size else (1,)
    assert result.as_numpy(QUEUE_OUTPUT).shape == result.as_numpy(EXECUTOR_OUTPUT).shape == shape


@each_wrapped
def test_the_server_reads_the_levels_in_the_wrapped_file(client, entry):
    levels = max(2, entry.config().dynamic_batching.priority_levels)
    served = client.get_model_config(entry.name).config.dynamic_batching
    assert served.priority_levels == served.default_priority_level == levels
    assert sorted(served.priority_queue_policy) == list(range(1, levels + 1))


def test_wrap_knows_how_many_instances_there_are_or_says_that_it_does_not(server, repository):
    """What the server starts is what the policy says, but where a GPU makes a difference and a CPU gets two."""
    wrong = {entry.name for entry in WRAPPED if any(f"{entry.name}/config.pbtxt" in w for w in shape_warnings(server))}
    asked = {
        entry.name
        for entry in WRAPPED
        if "WRITE THE TRUE NUMBER" in (repository / f"{entry.name}_router" / "1" / "policy.toml").read_text()
    }
    without_count = {
        entry.name
        for entry in WRAPPED
        if not any(group.count for group in corpus.parsed(entry.cpu_text()).instance_group)
    }
    doubled = {entry.name for entry in WRAPPED if entry.backend in ("onnxruntime", "tensorflow")}
    assert wrong
    assert wrong == asked & without_count & doubled


def shape_warnings(server):
    return [warning for warning in server.warnings if "executor_shape.instances" in warning]


def test_the_server_cannot_read_either_what_wrap_refuses_to_read(server):
    call = urllib.request.Request(f"http://{server.http}/v2/repository/index", b"{}")
    with urllib.request.urlopen(call, timeout=30) as page:
        states = {model["name"]: model.get("state", "unreadable") for model in json.load(page)}
    assert {name: state for name, state in states.items() if state != "READY"} == {
        entry.name: "unreadable" for entry in UNREADABLE
    }
