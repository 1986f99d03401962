# SPDX-License-Identifier: Apache-2.0
"""Whose a request is and which class it may have: every source, every way to get it wrong, hostile names."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from priority_router.config import parse_policy
from priority_router.errors import InvalidRequest
from priority_router.runtime import metrics, parameters
from priority_router.runtime.classify import Classified, Classifier
from priority_router.runtime.intake import Intake
from priority_router.runtime.metrics import samples
from priority_router.runtime.work import Job
from support.fake_triton import Request, rows
from support.policy_texts import ONLINE, a_class, a_policy
from unit.runtime.test_metrics import readings

FAIR = 'fair_by = "tenant"'
RULES = """
[[tenant]]
name = "acme"
most_urgent_class = "bulk"
[[tenant]]
name = "strict"
most_urgent_class = "rest"
above = "reject"
[[tenant]]
name = "chief"
most_urgent_class = "online"
"""
OTHERS = '[[tenant]]\nname = "*"\nmost_urgent_class = "bulk"\nabove = "reject"\n'


def policy_text(top: str = "", bulk: str = FAIR, rules: str = "") -> str:
    classes = (ONLINE, a_class("beside", 1), a_class("bulk", 2, bulk), a_class("rest", 3))
    return a_policy(*classes, rules, top=f'default_class = "bulk"\n{top}')


def classifier(top: str = "", bulk: str = FAIR, rules: str = "") -> Classifier:
    return Classifier(parse_policy(policy_text(top, bulk, rules)))


def classified(made: Classifier, **parameters: object) -> Classified:
    return made.classify(None, json.dumps({key.replace("_", "-"): value for key, value in parameters.items()}), 1)


def test_the_parameter_names_the_tenant() -> None:
    assert classified(classifier(), tenant="acme", other=3) == Classified("bulk", False, "acme")
    assert classified(classifier(), other=3) == Classified("bulk", False, "")
    assert classifier().classify(np.array([[b"online"]], object), '{"tenant": "a"}', 1).tenant == "a"


def test_where_no_tenant_matters_the_parameter_is_the_callers_own() -> None:
    without = classifier(bulk="")
    assert classified(without, tenant="acme") == Classified("bulk", False)
    assert classified(without, tenant=7) == Classified("bulk", False)
    assert without.classify(None, '{"tenant": "a", "tenant": "b"}', 1) == Classified("bulk", False)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ('{"tenant": 1}', "parameter 'tenant' must be a text, found int"),
        ('{"tenant": true}', "parameter 'tenant' must be a text, found bool"),
        ('{"tenant": "a", "tenant": "a"}', "parameter 'tenant' is given 2 times"),
        (json.dumps({"tenant": "x" * 257}), "parameter 'tenant' has 257 bytes; the name of a tenant has at most 256"),
        (json.dumps({"tenant": "é" * 129}), "has 258 bytes"),
        (json.dumps({"tenant": "x" * 2**20}), "has 1048576 bytes"),
    ],
)
def test_a_wrong_tenant_is_the_callers_mistake(parameters: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as caught:
        classifier().classify(None, parameters, 1)
    assert caught.value.code == "INVALID_ARG"
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "\n\x1b[0m", "größe", "*", "x" * 256, " ", "__proto__", "_none"])
def test_any_other_text_is_a_tenant(name: str) -> None:
    assert classified(classifier(), tenant=name).tenant == name


class TestHeader:
    """The gateway's header arrives as one more parameter, after those of the body."""

    by_header = classifier('tenant_sources = ["header:X-Tenant"]')

    def test_it_is_found_in_any_spelling(self) -> None:
        assert classified(self.by_header, X_Tenant="acme").tenant == "acme"
        assert classified(self.by_header, x_tenant="acme").tenant == "acme"

    @pytest.mark.parametrize("name", ["x-tenant", "X-Tenant", "X-TENANT"])
    def test_a_body_parameter_beside_it_is_refused(self, name: str) -> None:
        with pytest.raises(InvalidRequest, match="header 'x-tenant' is given 2 times"):
            self.by_header.classify(None, f'{{"{name}": "other", "x-tenant": "acme"}}', 1)

    def test_the_parameter_does_not_count_beside_it(self) -> None:
        assert classified(self.by_header, tenant="other", x_tenant="acme").tenant == "acme"
        assert classified(self.by_header, tenant="other").tenant == ""

    def test_it_may_be_one_source_of_several(self) -> None:
        mixed = classifier('tenant_sources = ["header:x-tenant", "parameter"]')
        assert classified(mixed, tenant="other", x_tenant="acme").tenant == "acme"
        assert classified(mixed, tenant="other").tenant == "other"


class TestRules:
    made = classifier(bulk="", rules=RULES)

    def test_who_asks_for_more_is_lowered(self) -> None:
        for name in ("online", "beside"):
            assert classified(self.made, tenant="acme", **{"class": name}) == Classified("bulk", False, "acme", "acme")

    def test_who_asks_for_no_more_gets_it(self) -> None:
        for tenant, name in (("acme", "bulk"), ("acme", "rest"), ("chief", "beside"), ("unruled", "online")):
            assert classified(self.made, tenant=tenant, **{"class": name}) == Classified(name, False, tenant)
        assert classified(self.made, **{"class": "online"}) == Classified("online", False)

    def test_who_asks_for_more_may_be_refused(self) -> None:
        for asked in ({"class": "online"}, {"class": "bulk"}, {}):
            name = asked.get("class", "bulk")
            said = f"tenant 'strict' may ask for class 'rest' and less urgent ones, not for '{name}'"
            with pytest.raises(InvalidRequest, match=re.escape(said)):
                classified(self.made, tenant="strict", **asked)

    def test_the_rule_for_all_others_holds_for_those_without_a_tenant_too(self) -> None:
        made = classifier(bulk="", rules=RULES + OTHERS)
        assert classified(made, tenant="chief", **{"class": "online"}).name == "online"
        for tenant in ("unruled", "*", "x\ny"):
            with pytest.raises(InvalidRequest, match="may ask for class 'bulk'") as caught:
                classified(made, tenant=tenant, **{"class": "online"})
            assert str(caught.value).isprintable()
        with pytest.raises(InvalidRequest, match="a request without a tenant may ask for class 'bulk'"):
            classified(made, **{"class": "online"})


def test_the_core_is_told_and_what_is_capped_is_counted_by_rule() -> None:
    intake = Intake(parse_policy(policy_text(bulk="", rules=RULES + OTHERS)))

    def send(tenant: str, name: str) -> Job:
        request = Request({"X": rows(1)}, parameters=json.dumps({"tenant": tenant, "class": name}))
        job = Job(request.sender, 5)
        intake.fill(job, request, parameters.text(request))
        return job

    job = send("acme", "online")
    assert job.request is not None
    assert (job.request.tenant, job.request.class_name, job.class_name) == ("acme", "bulk", "bulk")
    for tenant in ("strict", *(f"made up {number}" for number in range(50))):
        with pytest.raises(InvalidRequest):
            send(tenant, "online")
    send("chief", "online")
    assert intake.capped == {
        ("acme", "lowered"): 1,
        ("strict", "rejected"): 1,
        ("chief", "lowered"): 0,
        ("*", "rejected"): 50,
    }
    exported = {
        sample.labels: sample.value
        for sample in samples(readings(capped=intake.capped))
        if sample.family is metrics.TENANT_CAPPED
    }
    assert exported[("tenant", "*"), ("action", "rejected")] == 50
    assert len(exported) == 4
