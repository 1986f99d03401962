# SPDX-License-Identifier: Apache-2.0
"""Where keys of docs/policies.md have an effect nothing is said; the samples tell where they have none."""

import pytest
from priority_router.config import parse_policy
from priority_router.ops.rules import repository
from priority_router.ops.rules.models import Model, Recorded, Repository
from unit.ops.rules.written import model, router, scorer

POLICY = """policy_version = 1
executor = "scorer"
%s
executor_shape = { instances = 1, max_batch_size = 4 }
class = [
    { name = "online", level = 1, max_queue_size = 8, %s },
    { name = "background", level = 2, max_queue_size = 8, %s }
]
"""


def lane(online="", background="", top="", inputs=None, name="lane"):
    made = router(name)
    text = POLICY % (top, online.rstrip(",") or "min_share = 0", background or "min_share = 0")
    config = dict(made.config)
    if inputs is not None:
        config["input"] = model("any", inputs).config["input"]
    return Model(name, config, policy=parse_policy(text), policy_file="1/policy.toml")


def codes(*models, profile=None):
    found = repository.check(Repository({one.name: one for one in models}, profile=profile))
    return [finding.rule.code for finding in found]


@pytest.mark.parametrize(
    "keys",
    [
        {"online": 'max_wait_microseconds = 9000, order = "deadline", default_timeout_microseconds = 20000'},
        {"background": "max_blocking_microseconds = 0, max_wait_microseconds = 9000"},
        {"online": "min_share = 0.5", "background": "max_wait_microseconds = 9000"},
        {"online": "min_share = 0.5", "background": "min_share = 0.2"},
        {"background": "min_share = 0.9"},
        {"background": 'order = "deadline", default_timeout_microseconds = 1000'},
        {"online": "default_timeout_microseconds = 50000", "top": "max_execution_microseconds = 50000"},
        {"top": "max_execution_microseconds = 30000000"},
        {"online": "max_queue_bytes = 1024"},
        {"online": 'max_wait_microseconds = 9000, fair_by = "tenant"'},
        {"online": "reject_predicted_late = true"},
        {"online": 'fair_by = "tenant"', "top": 'tenant_sources = ["header:x-tenant"]'},
        {"top": 'tenant = [{ name = "*", most_urgent_class = "background" }]'},
        {
            "top": """tenant = [
                { name = "*", most_urgent_class = "background" }, { name = "acme", most_urgent_class = "online" }
            ]"""
        },
    ],
)
def test_keys_with_an_effect_are_no_findings(keys):
    assert codes(lane(**keys), scorer()) == []


def test_an_age_bound_acts_on_what_was_delayed():
    waits = "max_wait_microseconds = 90000, default_timeout_microseconds = 50000"
    assert codes(lane(waits + ', timeout_action = "DELAY"'), scorer()) == ["PR111"]
    assert codes(lane(waits), scorer()) == ["PR503"]


def test_what_has_any_length_has_at_least_one_element():
    inputs = (
        'input { name: "T" data_type: TYPE_STRING dims: [ 9 ] } input { name: "N" data_type: TYPE_INT64 dims: [ -1 ] }'
    )
    assert "PR514" not in codes(lane("max_queue_bytes = 512", inputs=inputs), scorer())
    assert "PR514" in codes(lane("max_queue_bytes = 511", inputs=inputs), scorer())
    optional = 'input { name: "N" data_type: TYPE_INT64 dims: [ 9 ] optional: true }'
    assert "PR514" not in codes(lane("max_queue_bytes = 1", inputs=optional), scorer())


def test_the_longest_flight_counts_what_may_pass():
    top = "executor_timeout_microseconds = 100000\nmax_execution_microseconds = 50000"
    assert codes(lane(top=top), scorer()) == []
    assert codes(lane(top=top + "\novertaking = true"), scorer()) == ["PR513"]


SLOW = {"median": {1: 60_000_000}, "nearly": {1: 60_000_000}}
KEYS = "default_timeout_microseconds = 50000, max_blocking_microseconds = 50000"


def test_a_profile_counts_for_the_router_that_it_is_of():
    models = [lane(KEYS), lane(KEYS, name="second"), scorer()]
    shared = ["PR303"] * 2
    for router_name, executor, count in (
        ("lane", "", 1),
        ("lane", "scorer", 1),
        ("lane", "other", 0),
        ("nobody", "", 0),
        ("nobody", "scorer", 2),
        ("nobody", "other", 0),
        ("", "", 2),
        ("", "scorer", 2),
        ("scorer", "", 0),
    ):
        profile = Recorded("p.json", router_name, **SLOW, executor=executor)
        found = codes(*models, profile=profile)
        assert sorted(found) == sorted(["PR511", "PR512"] * count + shared), (router_name, executor)
        said = Repository({one.name: one for one in models}, profile=profile).profile_of_others()
        assert bool(said) == (count == 0), (router_name, executor)


def test_a_common_limit_of_bytes_that_is_not_set_is_no_bound_for_a_class():
    assert codes(lane("max_queue_bytes = 9000", top="max_queue_bytes = 9000"), scorer()) == []


def test_a_profile_counts_before_what_is_declared():
    fast = Recorded("p.json", "", {1: 1_000_000}, {1: 1_000_000})
    declared = lane(KEYS, top="max_execution_microseconds = 90000")
    assert codes(declared, scorer()) == ["PR511"]
    assert codes(declared, scorer(), profile=fast) == []


def test_a_profile_without_single_rows_says_nothing_of_one_row():
    assert codes(lane(KEYS), scorer(), profile=Recorded("p.json", "", {4: 60_000_000}, {4: 60_000_000})) == ["PR511"]
