# SPDX-License-Identifier: Apache-2.0
"""Who calls which executor."""

import dataclasses

import pytest

from .written import TENSORS, codes, ensemble, found, model, router, scorer

SHARED = "shared_executor = true"


def test_two_routers_on_one_executor_must_both_know():
    assert codes(router(), router("other"), scorer()) == ["PR303 lane", "PR303 other"]
    assert codes(router(top=SHARED), router("other"), scorer()) == ["PR303 other"]
    assert codes(router(top=SHARED), router("other", top=SHARED), scorer()) == []


def test_two_routers_with_an_executor_each_share_nothing():
    assert codes(router(), router("other", "ranker"), scorer(), scorer("ranker")) == []


def test_a_step_of_any_ensemble_counts():
    ensembles = (ensemble("whole", "before", "scorer"), ensemble("else", "after"))
    (finding,) = found(router(), scorer(), *ensembles, unreadable=("before", "after"))
    assert finding.rule.code == "PR303"
    assert "called by ensemble 'whole' as well" in finding.what


def test_an_ensemble_that_calls_the_router_is_no_other_caller():
    assert codes(router(), scorer(), ensemble("whole", "before", "lane"), unreadable=("before",)) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "served", "shared"),
    [
        ("", -1, (), True),
        ("executor_version = 2", 1, (1, 2), False),
        ("executor_version = 2", 2, (1, 2), True),
        ("executor_version = 2", -1, (1, 2), True),
        ("executor_version = 1", -1, (1, 2), False),
        ("executor_version = 1", -1, (), True),
        ("", 1, (1, 2), False),
    ],
)
def test_other_versions_are_other_models(ours, theirs, served, shared):
    executor = dataclasses.replace(scorer(), versions=served)
    executor = dataclasses.replace(executor, config={**executor.config, "version_policy": {"all": {}}})
    assert codes(router(top=ours), executor, ensemble("whole", "scorer", versions=(theirs,))) == (
        ["PR303 lane"] if shared else []
    )


def test_what_to_write_in_plain_mode_covers_every_plain_router_and_the_executor():
    plain = scorer(text="dynamic_batching { }")
    for finding in found(router(mode="plain"), router("other", mode="plain"), plain):
        assert finding.rule.code == "PR303"
        for file in ("lane/1/policy.toml", "other/1/policy.toml"):
            assert f'mode = "levels" and shared_executor = true in {file}' in finding.fix
        assert "dynamic_batching { priority_levels: 2 default_priority_level: 2 " in finding.fix


def test_an_executor_that_has_the_levels_already_is_left_as_it_is():
    findings = found(router(mode="plain"), router("other", top=SHARED), scorer())
    (shared,) = [finding for finding in findings if finding.rule.code == "PR303"]
    assert shared.fix == 'write mode = "levels" and shared_executor = true in lane/1/policy.toml'


def test_a_router_behind_a_router_is_pointed_to_its_executor_and_told_of_the_sharing():
    (finding,) = found(router("front", "lane"), router(), scorer(), scorer("ranker"))
    assert (finding.rule.code, finding.place.model) == ("PR302", "front")
    assert finding.fix == (
        'write executor = "scorer" in front/1/policy.toml with shared_executor = true in front/1/policy.toml and '
        "shared_executor = true in lane/1/policy.toml"
    )


def test_circles_through_ensembles_in_ensembles_end_and_are_found():
    inner, outer = ensemble("inner", "lane", "outer"), ensemble("outer", "inner", "scorer")
    (finding,) = found(router(executor="outer"), scorer("ranker"), inner, outer, scorer())
    assert (finding.rule.code, finding.place.model) == ("PR302", "lane")
    assert 'write executor = "scorer" in lane/1/policy.toml' in finding.fix
    assert "ranker" not in finding.fix


def test_an_ensemble_as_executor_is_compared_by_its_batches_and_tensors_only():
    (finding,) = found(router(executor="whole", instances=7, max_batch_size=4), ensemble("whole", "scorer"), scorer())
    assert (finding.rule.code, finding.place.model) == ("PR119", "whole")
    assert 'write executor = "scorer"' in finding.fix


def test_an_executor_that_cannot_be_read_is_not_missing():
    assert codes(router(), unreadable=("scorer",)) == []
    assert codes(router(), unreadable=("ranker",)) == ["PR301 lane"]


@pytest.mark.parametrize(
    ("versions", "version_policy", "missing"),
    [
        ((), {}, False),
        ((1, 2, 3), {}, True),
        ((1, 2), {}, False),
        ((1, 2, 3), {"version_policy": {"all": {}}}, False),
        ((1, 2, 3), {"version_policy": {"latest": {"num_versions": 2}}}, False),
        ((1, 2, 3), {"version_policy": {"latest": {}}}, True),
        ((1, 2, 3), {"version_policy": {"specific": {"versions": ["2"]}}}, False),
        ((1, 2, 3), {"version_policy": {"specific": {"versions": ["1", 3]}}}, True),
        ((1, 2, 3), {"version_policy": {}}, False),
    ],
)
def test_a_version_is_missing_where_its_policy_leaves_it_out(versions, version_policy, missing):
    executor = scorer()
    executor = dataclasses.replace(executor, versions=versions, config={**executor.config, **version_policy})
    assert codes(router(top="executor_version = 2"), executor) == (["PR301 lane"] if missing else [])


def test_a_missing_executor_is_looked_for_among_models_that_can_be_one():
    other = model("notes", 'backend: "python"')
    (finding,) = found(router(executor="nobody"), ensemble("whole"), other)
    assert finding.fix == 'add that model, or write executor = "notes" in lane/1/policy.toml'
    (finding,) = found(router(executor="nobody"))
    assert finding.fix == "load it, or correct executor in lane/1/policy.toml (there is no other model)"


def test_executors_whose_tensors_fit_are_offered_first():
    other = TENSORS.replace('"X"', '"A"')
    models = [scorer("a", tensors=other), scorer("b", tensors=other), scorer("z")]
    (finding,) = [one for one in found(router(executor="lane"), *models) if one.rule.code == "PR302"]
    offers = [finding.fix.index(f'executor = "{name}"') for name in ("z", "a", "b")]
    assert offers == sorted(offers)
