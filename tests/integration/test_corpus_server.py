# SPDX-License-Identifier: Apache-2.0
"""The models of tests/corpus on the embedded server, with stand-ins for their backends."""

from __future__ import annotations

import numpy as np
import pytest
import tritonclient.grpc
from priority_router.ops.server import installation
from support import corpus, stand_in_backends

WRAPPED = corpus.wrapped()
UNREADABLE = [entry for entry in corpus.refused() if entry.reason in ("syntax", "unknown_field", "placeholder")]
MARKS = (7, 3, 11)

each_wrapped = pytest.mark.parametrize("entry", WRAPPED, ids=lambda entry: entry.name)


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for entry in WRAPPED:
        text = entry.cpu_text().encode("utf-8", "surrogateescape")
        stand_in_backends.write_model(folder / "models" / entry.name, text, entry.config())
    triton = stand_in_backends.write_server(folder / "triton", {entry.backend for entry in WRAPPED})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation, "find", lambda: triton)
        return start_server(folder / "models", hooks=False, environment=stand_in_backends.environment())


@pytest.fixture(scope="module")
def client(server):
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        yield client


@each_wrapped
def test_a_model_is_served(client, entry):
    config = entry.config()
    marks = MARKS[: config.max_batch_size or 1]
    result = client.infer(entry.name, stand_in_backends.inputs(config, marks), client_timeout=30)
    for name, expected in stand_in_backends.answers(config, marks).items():
        np.testing.assert_array_equal(result.as_numpy(name), expected)
