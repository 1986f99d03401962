# SPDX-License-Identifier: Apache-2.0
"""as_class: what it adds to a call, and what it leaves as it is."""

from __future__ import annotations

import inspect
import re

import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from priority_router.client import Parameter, as_class


def test_the_class_and_an_id_that_no_other_call_has():
    calls = [as_class("online") for _ in range(100)]
    assert all(call["parameters"] == {"class": "online"} for call in calls)
    assert len({call["request_id"] for call in calls}) == 100
    assert all(re.fullmatch("[0-9a-f]{32}", call["request_id"]) for call in calls)


def test_the_callers_own_id_and_parameters_are_kept_and_not_written_to():
    own: dict[str, Parameter] = {"tenant": "a", "retry": 1}
    call = as_class("online", request_id="mine", parameters=own)
    assert call == {"request_id": "mine", "parameters": {"tenant": "a", "retry": 1, "class": "online"}}
    assert own == {"tenant": "a", "retry": 1}
    assert as_class("online", parameters={"class": "online"})["parameters"] == {"class": "online"}


@pytest.mark.parametrize(
    ("name", "parameters", "error", "text"),
    [
        ("", None, ValueError, "the class is empty; name one of the router's policy"),
        (None, None, TypeError, "not by None"),
        (b"online", None, TypeError, "not by b'online'"),
        ("online", {"class": "vip"}, ValueError, "parameters name the class 'vip', as_class 'online'"),
        ("online", {"class": ""}, ValueError, "parameters name the class '', as_class 'online'"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, parameters, error, text):
    with pytest.raises(error, match=re.escape(text)):
        as_class(name, parameters=parameters)


def test_a_tenant_is_named_once():
    assert as_class("online", tenant="acme")["parameters"] == {"class": "online", "tenant": "acme"}
    assert as_class("online", tenant="acme", parameters={"tenant": "acme"})["parameters"]["tenant"] == "acme"
    with pytest.raises(ValueError, match="parameters name the tenant 'other', as_class 'acme'; name it once"):
        as_class("online", tenant="acme", parameters={"tenant": "other"})
    with pytest.raises(TypeError, match="a tenant is named by a text such as 'acme', not by 7"):
        as_class("online", tenant=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("module", [tritonclient.http, tritonclient.grpc, tritonclient.http.aio, tritonclient.grpc.aio])
@pytest.mark.parametrize("method", ["infer", "async_infer"])
def test_every_client_takes_these_arguments(module, method):
    function = getattr(module.InferenceServerClient, method, None)
    if function is None:
        assert module.__name__.endswith("aio"), "only the asyncio clients have infer alone"
        assert method == "async_infer"
    else:
        assert set(as_class("online")) <= set(inspect.signature(function).parameters)
