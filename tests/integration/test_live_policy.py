# SPDX-License-Identifier: Apache-2.0
"""A policy.toml that changes while its router serves, proven by what the executor wrote down."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from priority_router.runtime.policy_watch import WATCH_ENV
from support.clients import Call, Reply
from support.fleet import FILLER, MODES, Fleet, eventually, fleet, held_up
from support.models import BULK, INTERACTIVE, Executor, Router

WITHIN_SECONDS = 10.0
"""Ten times what a change takes to be in force."""

CLASSES = (FILLER, {"name": INTERACTIVE, "level": 1}, {"name": BULK, "level": 2})

ONE_ROW = Executor("one_row", max_batch_size=1, batch_seconds=0.005)


@contextlib.contextmanager
def serving(folder: Path, mode: str, names: Sequence[str], environment: dict[str, str]) -> Iterator[Fleet]:
    routers = [(Router(name, classes=CLASSES), ONE_ROW) for name in names]
    with fleet(folder, mode, routers, environment=environment) as made:
        yield made


@pytest.fixture(scope="module", params=MODES)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    names = ("levels", "classes", "refusing", "loaded")
    with serving(tmp_path_factory.mktemp("live"), request.param, names, {}) as made:
        yield made


@pytest.fixture(scope="module")
def unwatched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with serving(tmp_path_factory.mktemp("unwatched"), "plain", ("levels",), {WATCH_ENV: "0"}) as made:
        yield made


def policy_of(system: Fleet, router: str) -> Path:
    return system.repository / router / "1" / "policy.toml"


def rewrite(path: Path, change: Callable[[str], str]) -> str:
    """Changes the file in place, as an editor does; returns what it held."""
    text = path.read_text()
    changed = change(text)
    assert changed != text
    path.write_text(changed)
    return text


def reloads(system: Fleet, router: str) -> float:
    return system.metric("policy_reloads_total", router)


def queue(system: Fleet, router: str, futures: list[Future[Reply]], calls: Sequence[Call]) -> None:
    """The calls arrive in this order."""
    for call in calls:
        futures.append(system.client.send(router, call))
        eventually(lambda: system.held(router) == len(futures))


def takes_effect(system: Fleet, router: str) -> bool:
    """The law: who waits is served by the levels of the changed file, and everybody is answered once."""
    record, before = system.records["one_row"], reloads(system, router)
    calls = [Call(tag=tag, traffic_class=INTERACTIVE if tag < 4 else BULK) for tag in range(1, 7)]
    with held_up(system, router, ONE_ROW.name) as futures:
        queue(system, router, futures, calls)
        path = policy_of(system, router)
        other = {"level = 1": "level = 2", "level = 2": "level = 1"}
        for name in (INTERACTIVE, BULK):
            head, found, rest = path.read_text().partition(f'name = "{name}"\n')
            old = rest.partition("\n")[0]
            path.write_text(head + found + rest.replace(old, other[old], 1))
        with contextlib.suppress(AssertionError):
            eventually(lambda: reloads(system, router) > before, WITHIN_SECONDS)
    replies = [future.result() for future in futures]
    assert all(reply.ok for reply in replies)
    ran = [tag for tag in record.tags() if tag]
    assert sorted(ran) == [1, 2, 3, 4, 5, 6]
    return ran == [4, 5, 6, 1, 2, 3]


def test_a_changed_level_holds_for_who_waits(system: Fleet) -> None:
    assert takes_effect(system, "levels")


def test_without_the_watch_it_does_not(unwatched: Fleet) -> None:
    assert not takes_effect(unwatched, "levels")


def test_a_class_that_is_gone_leaves_its_requests_in_the_default_class_and_a_new_one_can_be_used(system: Fleet) -> None:
    record, before = system.records["one_row"], reloads(system, "classes")
    new = Call(tag=9, traffic_class="new")
    assert "unknown" in system.client.infer("classes", new).message
    with held_up(system, "classes", ONE_ROW.name) as futures:
        queue(
            system,
            "classes",
            futures,
            [Call(tag=tag, traffic_class=name) for tag, name in ((1, BULK), (2, INTERACTIVE), (3, BULK))],
        )
        rewrite(policy_of(system, "classes"), lambda text: text.replace(f'"{INTERACTIVE}"', '"new"'))
        eventually(lambda: reloads(system, "classes") > before, WITHIN_SECONDS)
        assert "unknown" in system.client.infer("classes", Call(tag=8, traffic_class=INTERACTIVE)).message
        queue(system, "classes", futures, [new])
        eventually(lambda: system.metric("queue_size", "classes", **{"class": BULK}) == 3)
        assert system.metric("queue_size", "classes", **{"class": INTERACTIVE}) == 0
    assert all(future.result().ok for future in futures)
    assert [tag for tag in record.tags() if tag] == [9, 1, 2, 3]
    eventually(lambda: system.outcomes("classes")[INTERACTIVE, "success"] == 1)
    assert system.outcomes("classes")["new", "success"] == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("level = 2", "level = 0", "class[2].level = 0 cannot be used"),
        ("level = 2", "level =", "not valid TOML"),
        (
            "instances = 1",
            "instances = 2",
            "executor_shape.instances 1 -> 2 cannot change while the router serves: reload",
        ),
    ],
)
def test_what_cannot_be_taken_in_leaves_the_old_in_force(system: Fleet, old: str, new: str, says: str) -> None:
    path, log = policy_of(system, "refusing"), system.repository.with_name("repository.log")
    before = rewrite(path, lambda text: text.replace(old, new))
    line = path.read_text().splitlines().index(new) + 1
    eventually(lambda: system.metric("policy_invalid", "refusing") == 1, WITHIN_SECONDS)
    (told,) = [text for text in log.read_text().splitlines() if says in text]
    assert f"refusing/1/policy.toml:{line}: " in told
    assert system.client.infer("refusing", Call(tag=1, traffic_class=INTERACTIVE)).ok
    path.write_text(before)
    eventually(lambda: system.metric("policy_invalid", "refusing") == 0, WITHIN_SECONDS)
    assert reloads(system, "refusing") == 0


def test_under_load_everybody_is_answered_once(system: Fleet) -> None:
    record, path = system.records["one_row"], policy_of(system, "loaded")
    record.forget()
    names = ("filler", INTERACTIVE, BULK)
    tags = range(1, 601)
    futures = [system.client.send("loaded", Call(tag=tag, traffic_class=names[tag % 3])) for tag in tags]
    text = path.read_text()
    for count in (1, 2):
        path.write_text(text.replace("level = 2", f"level = 2\nmax_queue_size = {1000 * count}"))
        eventually(lambda: reloads(system, "loaded") == count, WITHIN_SECONDS)  # noqa: B023 - called in this round
    assert all(future.result().ok for future in futures)
    assert sorted(record.tags()) == list(tags)
