# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.errors import PolicyError, SetupError
from priority_router.ops.server import routers
from support import models


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


def add(repository, name="router", executor="executor", instances=1, **policy):
    router = models.Router(name, policy=policy)
    return models.write_router(repository, router, models.Executor(executor, instances=instances))


def test_routers_are_found_by_their_policy(repository):
    add(repository, "b", "executor-b", instances=7)
    add(repository, "a")
    models.write_executor(repository, models.Executor())
    found = routers.find_routers([repository])
    assert [(router.model, router.executor, router.instances) for router in found] == [
        ("a", "executor", 1),
        ("b", "executor-b", 7),
    ]


def test_only_version_folders_count(repository):
    policy = add(repository)
    policy.parent.rename(policy.parent.with_name("drafts"))
    assert routers.find_routers([repository]) == []


def test_the_highest_version_counts(repository):
    policy = add(repository)
    for version, executor in (("2", "second"), ("10", "tenth")):
        folder = policy.parent.with_name(version)
        folder.mkdir()
        (folder / policy.name).write_text(policy.read_text().replace('"executor"', f'"{executor}"'))
    assert [router.executor for router in routers.find_routers([repository])] == ["tenth"]


def test_a_broken_policy_is_named(repository):
    policy = add(repository, colour="red")
    with pytest.raises(PolicyError, match="colour") as caught:
        routers.find_routers([repository])
    assert str(policy) in str(caught.value)


def test_what_is_no_repository_is_said(repository):
    add(repository)
    with pytest.raises(SetupError, match="no such folder"):
        routers.find_routers([repository / "missing"])
    with pytest.raises(SetupError, match="name the folder above it"):
        routers.find_routers([repository / "router"])


@pytest.mark.parametrize("name", ["a b", "a;b", "$(id)", "a'b"])
def test_a_python_model_that_the_backends_shell_would_misread_is_refused(repository, name):
    models.write_executor(repository, models.Executor(name))
    with pytest.raises(SetupError, match="rename"):
        routers.find_routers([repository])


def test_a_repository_named_twice_is_refused(repository):
    add(repository)
    with pytest.raises(SetupError, match="named twice"):
        routers.find_routers([repository, repository / ".." / repository.name])


def test_executors_are_guarded_by_default_and_open_when_shared(repository):
    add(repository, "plain-router", "closed")
    add(repository, "sharing-router", "shared", shared_executor=True)
    add(repository, "trusting-router", "open", guard_executor=False)
    assert routers.guarded_models(routers.find_routers([repository])) == {"closed": "plain-router"}


def test_one_router_that_needs_the_door_keeps_it_open(repository):
    add(repository, "a", "executor")
    add(repository, "b", "executor", guard_executor=False)
    assert routers.guarded_models(routers.find_routers([repository])) == {}


def test_the_pool_fits_the_largest_executor(repository):
    assert routers.least_pool([]) == 32
    add(repository, "a", "x", instances=2)
    add(repository, "b", "y", instances=10)
    assert routers.least_pool(routers.find_routers([repository])) == 4 * 10 + 8 + 4


@pytest.mark.parametrize(
    ("policy", "instead"),
    [
        ({}, None),
        ({"class_sources": ["header:X-Class", "tensor"]}, None),
        ({"class_sources": ["header:X-Class"], "default_class": "interactive"}, None),
        ({"class_sources": ["header:X-Class", "parameter"]}, None),
        ({"class_sources": ["header:X-Class", "header:X-Other"]}, "--header 'x-class: interactive'"),
    ],
)
def test_a_probe_that_can_name_its_class_in_a_header_alone_is_noted(repository, policy, instead):
    add(repository, **policy)
    notes = routers.probe_notes(routers.find_routers([repository]))
    expected = (
        "router 'router': class_sources has headers alone, so `priority-router probe --class` asks as class 'bulk' "
        f"all the same; give it {instead}"
    )
    assert notes == ([] if instead is None else [expected])
