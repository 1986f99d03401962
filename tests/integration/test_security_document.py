# SPDX-License-Identifier: Apache-2.0
"""docs/security.md: its command closes what it says and leaves open what serve, probe and clients need."""

from __future__ import annotations

import re
import shlex
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import tritonclient.grpc
from priority_router.ops import cli
from support.clients import Call, client
from support.models import write_pair
from support.serving import serving
from tritonclient.utils import InferenceServerException

DOCUMENT = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
(COMMAND,) = re.findall(r"<!-- tested: restricted -->\n```sh\n(.*?)```", DOCUMENT, re.DOTALL)
SECRET = "only-for-this-test"
CLOSED = {
    "shared-memory": ("GET", "systemsharedmemory/status"),
    "model-repository": ("POST", "repository/index"),
    "statistics": ("GET", "models/stats"),
    "trace": ("GET", "trace/setting"),
    "logging": ("GET", "logging"),
}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("restricted")
    (folder / "models").mkdir()
    write_pair(folder / "models")
    text = COMMAND.replace("$MODELS", str(folder / "models")).replace("$SECRET", SECRET)
    program, name, *words = shlex.split(text.replace("\\\n", " "))
    assert (program, name) == ("priority-router", "serve")
    at = words.index("--")
    with serving(folder, *words[:at], "--", *words[at + 1 :]) as command:
        http, grpc, _ = command.ready()
        yield http, grpc


def status(http, method, path, headers):
    request = urllib.request.Request(f"http://{http}/v2/{path}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("api", CLOSED)
def test_over_http_an_api_is_closed_to_whoever_lacks_the_secret(addresses, api):
    assert f"{api}," in COMMAND or f"{api}:" in COMMAND
    method, path = CLOSED[api]
    assert status(addresses[0], method, path, {}) == 403
    assert status(addresses[0], method, path, {"admin": "wrong"}) == 403
    assert status(addresses[0], method, path, {"admin": SECRET}) == 200


def test_over_grpc_they_are_closed_as_well(addresses):
    with tritonclient.grpc.InferenceServerClient(addresses[1]) as caller:
        asks = (
            caller.get_system_shared_memory_status,
            caller.get_model_repository_index,
            caller.get_inference_statistics,
            caller.get_trace_settings,
            caller.get_log_settings,
        )
        assert len(asks) == len(CLOSED)
        for ask in asks:
            with pytest.raises(InferenceServerException, match="restricted"):
                ask()
            ask(headers={"triton-grpc-protocol-admin": SECRET})


def test_clients_and_the_health_check_need_no_secret(addresses, capsys):
    for address, protocol in zip(addresses, ("http", "grpc"), strict=True):
        with client(address, protocol) as sender:
            assert sender.infer("router", Call(traffic_class="interactive")).code == "OK"
        assert cli.main(["probe", "--timeout", "60", "--url", f"{protocol}://{address}"]) == 0, capsys.readouterr().err


def test_a_clients_priority_and_the_hooks_parameter_do_not_open_the_executor(addresses):
    with client(addresses[1]) as sender:
        raised = Call(traffic_class="bulk", priority=1, parameters={"priority_router_level": 1})
        assert sender.infer("router", raised).code == "OK"
        assert "call model 'router' instead" in sender.infer("executor", raised).message
