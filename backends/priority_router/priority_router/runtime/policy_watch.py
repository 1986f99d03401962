# SPDX-License-Identifier: Apache-2.0
"""Takes a changed ``policy.toml`` in while the router serves.

Law: reads the file and says what became of it; how a policy takes effect is ``router``'s. One thread of its own, since
a file system may hang.

Contents count once two looks in a row have found the same: a file that is just being written may be cut short where it
is still a policy, one without the class that comes last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from priority_router.config import RouterPolicy, parse_file, read_text
from priority_router.core.values import TrafficClass
from priority_router.errors import PolicyError
from priority_router.policy_places import PolicyPlaces, Spot
from priority_router.runtime.log import Log
from priority_router.runtime.policy_changes import Change, changes

PERIOD_SECONDS: Final = 0.5
"""Between two looks; a change takes effect after one to two of them."""

WATCH_ENV: Final = "PRIORITY_ROUTER_WATCH_POLICY"
"""With "0" the policy is read when the router loads, and never again."""


class PolicyFile(NamedTuple):
    """A policy as it was read.

    Attributes:
        path: of the file.
        text: that it held.
    """

    path: Path
    text: str


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether the file is to be watched."""
    return environ.get(WATCH_ENV, "1") != "0"


class _Seen(NamedTuple):
    """What one look found: a text, or why there is none."""

    text: str
    fault: str = ""


class PolicyWatch:
    """``run`` is the body of one thread.

    Attributes:
        reloads: changes that took effect.
        invalid: the file holds something else than the policy in force, since that cannot be used.
    """

    def __init__(
        self,
        file: PolicyFile,
        policy: RouterPolicy,
        adopt: Callable[[RouterPolicy], Mapping[str, int]],
        log: Log,
    ) -> None:
        """Prepares.

        Args:
            file: as it was read for the policy in force.
            policy: in force.
            adopt: lets another one take effect; returns how many requests of each class that is gone waited.
            log: for what becomes of changes.
        """
        self._path, self._text = file
        self._policy = policy
        self._adopt = adopt
        self._log = log
        self._settled = _Seen(self._text)
        self._unsettled: _Seen | None = None
        self._levels = max(each.level for each in policy.scheduling.classes)
        self._stop = threading.Event()
        self.reloads = 0
        self.invalid = False

    def run(self) -> None:
        """Looks until stopped."""
        while not self._stop.wait(PERIOD_SECONDS):
            with self._log.caught("taking in a changed policy failed"):
                self.look()

    def stop(self) -> None:
        """Ends ``run``."""
        self._stop.set()

    def look(self) -> None:
        """Reads the file, and acts on what it has held for two looks."""
        try:
            seen = _Seen(read_text(self._path))
        except PolicyError as error:
            seen = _Seen("", str(error))
        if seen == self._settled:
            self._unsettled = None
        elif seen != self._unsettled:
            self._unsettled = seen
        else:
            self._settled, self._unsettled = seen, None
            self._take(seen)

    def _take(self, seen: _Seen) -> None:
        if seen.fault:
            self._refuse(seen.fault)
            return
        try:
            policy = parse_file(seen.text, self._path)
        except PolicyError as error:
            self._refuse(str(error))
            return
        found = changes(self._text, self._policy, seen.text, policy)
        fixed = [change for change in found if change.fixed]
        if fixed:
            self._refuse_fixed(fixed, PolicyPlaces(seen.text))
            return
        largest = max(policy.scheduling.classes, key=lambda each: each.level)
        if policy.scheduling.levels and largest.level > self._levels:
            place = ("class", policy.scheduling.classes.index(largest), "level")
            self._refuse_level(largest, PolicyPlaces(seen.text).of_path(place))
            return
        self._text = seen.text
        if found:
            self._log.info(f"{self._path}: in force from now on: {'; '.join(self._switch(policy, found))}")
        elif self.invalid:
            self._log.info(f"{self._path}: is again what is in force")
        self.invalid = False

    def _switch(self, policy: RouterPolicy, found: Iterable[Change]) -> Iterator[str]:
        """Lets a policy take effect; gives what has changed, with what became of waiting requests."""
        moved = self._adopt(policy)
        self._policy = policy
        self.reloads += 1
        for change in found:
            yield change.what
        for name, count in moved.items():
            if count:
                yield f"{count} waiting requests of class {name!r} go on in class {policy.default_class!r}"

    def _refuse_fixed(self, fixed: Iterable[Change], places: PolicyPlaces) -> None:
        told = [f"{self._at(places.of_path(change.place))}: {change.what}" for change in fixed]
        self._refuse(
            f"{'; '.join(told)} cannot change while the router serves: reload the model, or take that back and the "
            "other changes take effect"
        )

    def _refuse_level(self, each: TrafficClass, spot: Spot | None) -> None:
        """Triton takes a level that the executor does not have for its default level, and says nothing."""
        self._refuse(
            f"{self._at(spot)}: class {each.name!r}: level {each.level} cannot come while the router serves: when it "
            f"was loaded {self._levels} was the largest, and whether executor {self._policy.executor!r} has more is "
            f"not known; write a level up to {self._levels}, or give the executor priority_levels of {each.level} or "
            "more (`priority-router lint` tells) and reload both"
        )

    def _refuse(self, text: str) -> None:
        self.invalid = True
        self._log.error("policy", f"{text} (the policy that was in force stays)")

    def _at(self, spot: Spot | None) -> str:
        return str(self._path) if spot is None else f"{self._path}:{spot[0]}"
