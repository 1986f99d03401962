# SPDX-License-Identifier: Apache-2.0
"""Fair tenants and their rules, proven by what the executor ran; without its key the same check fails."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.request
from collections.abc import Iterator, Mapping

import pytest
from integration.test_policies import ONE_ROW, classes, served
from support.clients import Call
from support.fleet import MODES, Fleet, eventually, fleet, held_up
from support.models import BULK, INTERACTIVE, Executor, Router

FAIR: dict[str, object] = {"fair_by": "tenant"}
FORWARD = "(?i)^x-tenant$"
RULES = (
    {"name": "acme", "most_urgent_class": BULK},
    {"name": "strict", "most_urgent_class": BULK, "above": "reject"},
    {"name": "*", "most_urgent_class": INTERACTIVE},
)
HOSTILE = ("a\0b", "größe", "\n\x1b[0m", "*", '"}', "x" * 256)
"""Names of tenants that any text may be."""

BY_ROWS = Executor("by_rows", max_batch_size=4, batch_seconds=0.002, row_seconds=0.01)


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    routers = [
        (Router("without", classes=classes()), ONE_ROW),
        (Router("fair", classes=classes(bulk=FAIR)), ONE_ROW),
        (Router("fair_by_header", classes=classes(bulk=FAIR), policy={"tenant_sources": ["header:X-Tenant"]}), ONE_ROW),
        (Router("ruled", classes=classes(), tenants=RULES), ONE_ROW),
        (Router("by_rows_fair", classes=classes(bulk=FAIR)), BY_ROWS),
        (Router("by_rows_without", classes=classes()), BY_ROWS),
    ]
    arguments = [f"--http-header-forward-pattern={FORWARD}", f"--grpc-header-forward-pattern={FORWARD}"]
    with fleet(tmp_path_factory.mktemp("tenants"), request.param, routers, extra_args=arguments) as made:
        yield made


def of(tenant: str, tag: int, traffic_class: str = BULK, rows: int = 1) -> Call:
    return Call(tag=tag, traffic_class=traffic_class, rows=rows, parameters={"tenant": tenant} if tenant else {})


def interleaved(system: Fleet, router: str) -> bool:
    """The law: who sends little is served in turns with who floods the class, whoever came first."""
    flood = [of("flood", tag) for tag in range(1, 13)]
    little = [of("little", tag) for tag in (101, 102, 103)]
    nobodys = [of("", 201)]
    order = served(system, router, flood + little + nobodys)
    assert sorted(order) == sorted(call.tag for call in flood + little + nobodys if call.tag is not None)
    whose = ["flood" if tag < 100 else "little" if tag < 200 else "" for tag in order]
    # Predictions differ a little from call to call, so of two that are even either may come first.
    return sorted(whose[:3]) == ["", "flood", "little"] and whose[:8].count("little") == 3


def test_a_tenant_that_floods_its_class_is_served_in_turns_with_the_others(system: Fleet) -> None:
    assert interleaved(system, "fair")


def test_without_the_key_they_wait_behind_it(system: Fleet) -> None:
    assert not interleaved(system, "without")


def rows_while_both_wait(system: Fleet, router: str) -> dict[int, int]:
    """Rows that ran of two tenants while both had work; one sends requests four times as large as the other."""
    record = system.records["by_rows"]
    for rows in (1, 2, 3, 4):
        for _ in range(4):
            assert system.client.infer(router, Call(tag=0, traffic_class="filler", rows=rows)).ok
    system.rests(router)
    record.forget()
    with record.shut():
        futures = [system.client.send(router, Call(tag=0, traffic_class="filler", rows=4))]
        eventually(lambda: record.held() == 1)
        large, small = [of("large", 1, rows=4) for _ in range(20)], [of("small", 2) for _ in range(40)]
        futures += [system.client.send(router, call) for call in large + small]
        eventually(lambda: system.metric("queue_size", router, **{"class": BULK}) >= 58)
    assert all(future.result().ok for future in futures)
    ran = [tag for tag in record.tags() if tag]
    end = min(max(at for at, tag in enumerate(ran) if tag == each) for each in (1, 2))
    return {each: ran[: end + 1].count(each) for each in (1, 2)}


def test_large_requests_get_the_same_time_and_not_the_same_number(system: Fleet) -> None:
    ran = rows_while_both_wait(system, "by_rows_fair")
    assert abs(ran[1] - ran[2]) <= 12, "two dispatches may be out when counting begins, and a request of each is large"


def test_without_the_key_they_come_as_they_arrived(system: Fleet) -> None:
    ran = rows_while_both_wait(system, "by_rows_without")
    assert abs(ran[1] - ran[2]) > 12


def test_hostile_names_are_tenants_like_any_other(system: Fleet) -> None:
    calls = [of(name, tag) for tag, name in enumerate(HOSTILE, start=1)]
    assert sorted(served(system, "fair", calls)) == list(range(1, len(HOSTILE) + 1))


@pytest.mark.parametrize(
    ("tenant", "said"), [("x" * 2**20, "has 1048576 bytes"), (7, "must be a text"), (True, "text")]
)
def test_what_can_be_no_name_is_refused(system: Fleet, tenant: object, said: str) -> None:
    reply = system.client.infer("fair", Call(tag=1, traffic_class=BULK, parameters={"tenant": tenant}))
    assert reply.code == "INVALID_ARGUMENT"
    assert said in reply.message
    assert system.client.infer("without", Call(tag=1, traffic_class=BULK, parameters={"tenant": tenant})).ok


def test_a_capped_tenant_is_lowered_and_counted(system: Fleet) -> None:
    before = system.metric("tenant_capped_total", "ruled", tenant="acme", action="lowered")
    calls = [of("acme", 1, INTERACTIVE), of("other", 2, INTERACTIVE), of("", 3, INTERACTIVE)]
    assert served(system, "ruled", calls) == [2, 3, 1]
    eventually(lambda: system.metric("tenant_capped_total", "ruled", tenant="acme", action="lowered") == before + 1)
    assert served(system, "without", calls) == [1, 2, 3]


def test_a_capped_tenant_may_be_refused(system: Fleet) -> None:
    before = system.metric("tenant_capped_total", "ruled", tenant="strict", action="rejected")
    reply = system.client.infer("ruled", of("strict", 1, INTERACTIVE))
    assert reply.code == "INVALID_ARGUMENT"
    assert "tenant 'strict' may ask for class 'bulk' and less urgent ones, not for 'interactive'" in reply.message
    assert system.client.infer("ruled", of("strict", 1, BULK)).ok
    assert system.client.infer("without", of("strict", 1, INTERACTIVE)).ok
    for name in HOSTILE:
        reply = system.client.infer("ruled", of(name, 1, "filler"))
        assert reply.ok, "level 1, as the rule for the rest allows"
    eventually(lambda: system.metric("tenant_capped_total", "ruled", tenant="strict", action="rejected") == before + 1)


def test_labels_are_configured_names_alone(system: Fleet) -> None:
    page = urllib.request.urlopen(f"http://{system.server.metrics}/metrics").read().decode()
    labels = {line.partition('tenant="')[2].partition('"')[0] for line in page.splitlines() if "tenant_capped" in line}
    assert labels - {""} == {"acme", "strict", "*"}


class TestHeader:
    """Only the gateway's header says whose a request is."""

    def ask(
        self, system: Fleet, tag: int, headers: Mapping[str, str], parameters: Mapping[str, str]
    ) -> tuple[int, str]:
        inputs = [
            {"name": "X", "shape": [1, 4], "datatype": "FP32", "data": [0, 0, 0, 0]},
            {"name": "TAG", "shape": [1, 1], "datatype": "INT64", "data": [tag]},
            {"name": "CLASS", "shape": [1, 1], "datatype": "BYTES", "data": [BULK]},
        ]
        body = json.dumps({"inputs": inputs, "parameters": parameters})
        with contextlib.closing(http.client.HTTPConnection(system.server.http, timeout=60)) as connection:
            connection.request("POST", "/v2/models/fair_by_header/infer", body, dict(headers))
            response = connection.getresponse()
            return response.status, response.read().decode()

    def order(self, system: Fleet, sent: list[tuple[int, dict[str, str], dict[str, str]]]) -> list[int]:
        """Tags in the order in which they ran, when all waited."""
        with held_up(system, "fair_by_header", ONE_ROW.name) as futures:
            for count, (tag, headers, parameters) in enumerate(sent, start=3):
                futures.append(system.client._pool.submit(self.ask, system, tag, headers, parameters))  # type: ignore[arg-type]
                eventually(lambda: system.held("fair_by_header") == count)  # noqa: B023 - called in this round
        for future in futures[2:]:
            assert future.result()[0] == 200  # type: ignore[index]
        return [tag for tag in system.records["one_row"].tags() if tag]

    def test_it_names_the_tenant_and_the_parameter_does_not(self, system: Fleet) -> None:
        sent = [(tag, {"X-Tenant": "flood"}, {"tenant": f"made up {tag}"}) for tag in range(1, 7)]
        sent += [(tag, {"x-tenant": "little"}, {}) for tag in (101, 102)]
        order = self.order(system, sent)
        assert [tag for tag in order if tag < 100] == [1, 2, 3, 4, 5, 6]
        assert {101, 102} <= set(order[:5]), "whatever the parameters said"

    @pytest.mark.parametrize("name", ["x-tenant", "X-Tenant"])
    def test_a_body_parameter_of_its_name_beside_it_is_refused(self, system: Fleet, name: str) -> None:
        status, text = self.ask(system, 1, {"X-Tenant": "acme"}, {name: "other"})
        assert status == 400
        assert "header 'x-tenant' is given 2 times" in text

    def test_a_header_that_is_no_utf8_is_refused_and_ends_nothing(self, system: Fleet) -> None:
        status, text = self.ask(system, 1, {"X-Tenant": "\xff\xfe"}, {})
        assert status == 400
        assert "not UTF-8" in text
        assert self.ask(system, 1, {"X-Tenant": "acme"}, {})[0] == 200

    def test_a_long_header_is_refused(self, system: Fleet) -> None:
        status, text = self.ask(system, 1, {"X-Tenant": "x" * 257}, {})
        assert status == 400
        assert "header 'x-tenant' has 257 bytes" in text
