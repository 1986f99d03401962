# SPDX-License-Identifier: Apache-2.0
"""A policy file that changes while the router serves: when it is taken in, what is refused, what is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from priority_router.config import RouterPolicy, parse_policy
from priority_router.policy_fields import FIXED
from priority_router.runtime.log import Log
from priority_router.runtime.policy_changes import changes
from priority_router.runtime.policy_watch import WATCH_ENV, PolicyFile, PolicyWatch, wanted
from support.fake_triton import Triton

TEXT = """policy_version = 1
mode = "levels"
executor = "model"

[executor_shape]
instances = 1
max_batch_size = 4

[[class]]
name = "online"
level = 1

[[class]]
name = "bulk"
level = 2
max_queue_size = 8
"""


class Watched:
    """A watch over a file, with a clock on which every line of the log counts."""

    def __init__(self, folder: Path, text: str = TEXT) -> None:
        self.path = folder / "policy.toml"
        self.path.write_text(text)
        self.triton = Triton()
        self.adopted: list[RouterPolicy] = []
        self.moved: Mapping[str, int] = {}
        self.seconds = self.ticking()
        log = Log(self.triton.Logger, "router", lambda: next(self.seconds))
        self.watch = PolicyWatch(PolicyFile(self.path, text), parse_policy(text), self.adopt, log)

    def ticking(self) -> Iterator[float]:
        seconds = 0.0
        while True:
            seconds += 10
            yield seconds

    def adopt(self, policy: RouterPolicy) -> Mapping[str, int]:
        self.adopted.append(policy)
        return self.moved

    def write(self, text: str, looks: int = 2) -> None:
        self.path.write_text(text)
        for _ in range(looks):
            self.watch.look()

    @property
    def told(self) -> list[str]:
        return [text.replace(str(self.path), "F") for _, text in self.triton.Logger.lines]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_change_takes_effect_and_is_told_key_by_key(watched: Watched) -> None:
    watched.write(TEXT.replace("level = 2\nmax_queue_size = 8", "level = 1"))
    assert [each.level for each in watched.adopted[0].scheduling.classes] == [1, 1]
    assert watched.watch.reloads == 1
    assert watched.told[0] == (
        "priority_router router: F: in force from now on: class 'bulk': level 2 -> 1; "
        "class 'bulk': max_queue_size 8 -> 0"
    )


def test_nothing_happens_while_the_file_stays(watched: Watched) -> None:
    watched.write(TEXT, looks=5)
    assert (watched.adopted, watched.told, watched.watch.invalid) == ([], [], False)


@pytest.mark.parametrize("cut", ['[[class]]\nname = "online"\nlevel = 1\n', "[[cla", ""])
def test_a_file_that_is_just_being_written_is_left_alone(watched: Watched, cut: str) -> None:
    """Also where what is there so far is a policy."""
    watched.write(TEXT[: TEXT.index("[[class]]")] + cut, looks=1)
    watched.write(TEXT.replace("max_queue_size = 8", "max_queue_size = 9"), looks=2)
    assert [each.scheduling.classes[1].max_queue_size for each in watched.adopted] == [9]
    assert len(watched.told) == 1
    assert not watched.watch.invalid


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("level = 2", "level = 0", 15, "class[1].level = 0 cannot be used"),
        ("level = 2", "level =", 15, "not valid TOML"),
        ("level = 2", "levle = 2", 15, "unknown key"),
        ('mode = "levels"', 'mode = "level"', 2, "mode = 'level' cannot be used"),
        ('name = "bulk"', 'name = "online"', 9, "a name that no other [[class]] has"),
    ],
)
def test_what_cannot_be_used_leaves_the_old_in_force(
    watched: Watched, old: str, new: str, line: int, says: str
) -> None:
    watched.write(TEXT.replace(old, new), looks=6)
    assert (watched.adopted, watched.watch.invalid) == ([], True)
    (text,) = watched.told
    assert text.startswith(f"priority_router router: F:{line}: ")
    assert says in text
    assert text.endswith("(the policy that was in force stays)")
    watched.write(TEXT)
    assert (watched.adopted, watched.watch.invalid) == ([], False)
    assert watched.told[1:] == ["priority_router router: F: is again what is in force"]


def test_a_missing_file_is_told_once(watched: Watched) -> None:
    watched.path.unlink()
    for _ in range(6):
        watched.watch.look()
    (text,) = watched.told
    assert text.startswith("priority_router router: F: no such file")
    assert watched.watch.invalid
    watched.write(TEXT.replace("max_queue_size = 8", "max_queue_size = 9"))
    assert (len(watched.adopted), watched.watch.invalid) == (1, False)


OTHER = {
    "policy_version": None,
    "mode": ('mode = "levels"', 'mode = "plain"', 2),
    "executor": ('executor = "model"', 'executor = "other"', 3),
    "executor_version": ("[executor_shape]", "executor_version = 2\n[executor_shape]", 5),
    "shared_executor": ("[executor_shape]", "shared_executor = true\n[executor_shape]", 5),
    "guard_executor": ("[executor_shape]", "guard_executor = false\n[executor_shape]", 5),
    "executor_shape.instances": ("instances = 1", "instances = 2", 6),
    "executor_shape.max_batch_size": ("max_batch_size = 4", "max_batch_size = 8", 7),
}
"""Each key that only a reload takes in, with a change of it and its line; there is one policy_version only."""


def test_the_keys_are_those_of_the_document() -> None:
    assert set(OTHER) == set(FIXED)


@pytest.mark.parametrize("key", [key for key, change in OTHER.items() if change])
def test_what_only_a_reload_takes_in_is_refused_as_a_whole(watched: Watched, key: str) -> None:
    old, new, line = OTHER[key] or ("", "", 0)
    watched.write(TEXT.replace(old, new).replace("max_queue_size = 8", "max_queue_size = 9"))
    assert (watched.adopted, watched.watch.invalid) == ([], True)
    assert f"F:{line}: {key} " in watched.told[0]
    assert "reload the model" in watched.told[0]


def test_a_value_that_stays_the_same_is_no_change(watched: Watched) -> None:
    watched.write("# a comment\n" + TEXT.replace("[executor_shape]", "guard_executor = true\n[executor_shape]"))
    assert (watched.adopted, watched.told, watched.watch.reloads) == ([], [], 0)


def test_what_becomes_of_waiting_requests_is_told(watched: Watched) -> None:
    watched.moved = {"online": 3}
    watched.write(TEXT.replace('name = "online"', 'name = "urgent"'))
    assert watched.told[0].endswith(
        "class 'urgent' is new; class 'online' is gone; 3 waiting requests of class 'online' go on in class 'bulk'"
    )


def test_a_level_that_the_executor_may_not_have_leaves_the_old_in_force(watched: Watched) -> None:
    watched.write(TEXT.replace("level = 2", "level = 3"))
    assert (watched.adopted, watched.watch.invalid) == ([], True)
    (text,) = watched.told
    assert text.startswith("priority_router router: F:15: class 'bulk': level 3 cannot come while the router serves")
    assert text.endswith("(the policy that was in force stays)")
    watched.write(TEXT.replace("level = 2", "level = 1"))
    watched.write(TEXT)
    assert [each.scheduling.classes[1].level for each in watched.adopted] == [1, 2], "the levels at load stay the limit"
    assert not watched.watch.invalid


def test_in_plain_mode_any_level_may_come(tmp_path: Path) -> None:
    plain = TEXT.replace('"levels"', '"plain"')
    watched = Watched(tmp_path, plain)
    watched.write(plain.replace("level = 2", "level = 3"))
    assert [each.scheduling.classes[1].level for each in watched.adopted] == [3]


def test_the_order_of_classes_is_a_change_of_its_own() -> None:
    head, first, second = TEXT.partition('[[class]]\nname = "bulk"')[0], "", ""
    head, _, rest = TEXT.partition("[[class]]")
    first, _, second = rest.partition("[[class]]")
    turned = f"{head}[[class]]{second}\n[[class]]{first}"
    found = changes(TEXT, parse_policy(TEXT), turned, parse_policy(turned))
    assert [change.what for change in found] == ["the order of the tables"]


def test_tenants_are_told_by_name() -> None:
    rule = '[[tenant]]\nname = "acme"\nmost_urgent_class = "bulk"\n'
    old, new = TEXT + rule, TEXT + rule + 'above = "reject"\n[[tenant]]\nname = "*"\nmost_urgent_class = "bulk"\n'
    found = changes(old, parse_policy(old), new, parse_policy(new))
    assert [change.what for change in found] == ['tenant \'acme\': above "lower" -> "reject"', "tenant '*' is new"]


def test_it_can_be_switched_off() -> None:
    assert wanted({})
    assert not wanted({WATCH_ENV: "0"})


def test_the_documents_name_the_keys_that_cannot_change() -> None:
    root = Path(__file__).parents[3]
    for document, begins in (("policies.md", "**What cannot change**"), ("policy.md", "except of")):
        text = (root / "docs" / document).read_text()
        sentence = text[text.index(begins) :].partition(
            "which\nare taken in" if begins == "except of" else "A file in"
        )[0]
        for key in FIXED:
            table, _, plain = key.rpartition(".")
            assert f"`[{table}]`" in sentence if table else f"`{plain}`" in sentence, key
