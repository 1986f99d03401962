# SPDX-License-Identifier: Apache-2.0
"""policy.toml: the rules for tenants."""

from __future__ import annotations

import pytest
from priority_router.config import parse_policy
from unit.test_config import LEAST, fault

RULE = '[[tenant]]\nname = "acme"\nmost_urgent_class = "bulk"\n'


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('name = "acme"\n', "", "tenant[0].name is missing; add it in [[tenant]], as a text: The tenant, or "),
        ('most_urgent_class = "bulk"\n', "", "tenant[0].most_urgent_class is missing; add it in [[tenant]], as a text"),
        ('"acme"', '""', "tenant[0].name = '' cannot be used; write what can be printed"),
        ('"acme"', '" acme"', "tenant[0].name = ' acme' cannot be used; write what can be printed"),
        ('"acme"', '"a\\u0000b"', "tenant[0].name = 'a\\x00b' cannot be used; write what can be printed"),
        (
            '"acme"',
            f'"{"é" * 129}"',
            "cannot be used; write what can be printed, without spaces around it, at most 256",
        ),
        ('"bulk"', '"gold"', "tenant.most_urgent_class = 'gold' cannot be used; write for 'acme' one of online, bulk"),
        ("most", 'above = "drop"\nmost', 'tenant[0].above = \'drop\' cannot be used; write "lower" or "reject"'),
        ("most", "level = 1\nmost", "unknown key tenant[0].level = 1: it belongs in [[class]]"),
        ("most", "most_urgent = 1\nmost", "unknown key tenant[0].most_urgent = 1: did you mean most_urgent_class?"),
        (RULE, RULE + RULE, "tenant.name = 'acme' cannot be used; write a name that no other [[tenant]] has"),
    ],
)
def test_a_wrong_rule_for_a_tenant_is_named_with_what_to_write(right: str, wrong: str, said: str) -> None:
    assert right in RULE
    assert said in fault(LEAST + RULE.replace(right, wrong))


def test_tenants_are_read_only_where_they_matter() -> None:
    assert not parse_policy('tenant_sources = ["header:x-tenant"]\n' + LEAST).reads_tenants
    assert parse_policy(LEAST + 'fair_by = "tenant"\n').reads_tenants
    assert parse_policy(LEAST + RULE).reads_tenants
