# SPDX-License-Identifier: Apache-2.0
"""Rules about what a policy promises beyond levels: keys without an effect, and times that no executor keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Final

from priority_router.config import EVERY_OTHER, ClassSource, RouterPolicy, SourceKind
from priority_router.core.values import MICROSECOND, FairBy, Order, TimeoutAction, TrafficClass
from priority_router.core.worst_case import longest_flight
from priority_router.interface import CLASS_TENSOR
from priority_router.ops.data_types import ITEM_BYTES
from priority_router.ops.rules.catalogue import promises as rules
from priority_router.ops.rules.configs import in_policy, joined, number, policy_file, tensors
from priority_router.ops.rules.finding import Finding, Rule
from priority_router.ops.rules.models import Model, Recorded

_LEAST_LEFT: Final = 0.1
"""Share of the time that the most urgent level needs at least to be worth its name."""

_TIMEOUT: Final = 1_000_000
"""Microseconds to begin with where a timeout must be written."""


def check(router: Model, policy: RouterPolicy, recorded: Recorded | None) -> Iterator[Finding]:
    """All rules about what a policy promises.

    Args:
        router: whose it is.
        policy: see above.
        recorded: times of its executor, where they are known.
    """
    for index, each in enumerate(policy.scheduling.classes):
        of_class = _OfClass(router, policy, index, each)
        yield from of_class.order()
        yield from of_class.age()
        yield from of_class.blocking(recorded)
        yield from of_class.share()
        yield from of_class.timeout(recorded)
        yield from of_class.early()
        yield from of_class.tenants()
    yield from _little_left(router, policy)
    yield from _given_up(router, policy)
    yield from _exceeded(router, policy, recorded)
    yield from _bytes(router, policy)
    yield from _tenants(router, policy)


class _OfClass:
    """Rules about one class."""

    def __init__(self, router: Model, policy: RouterPolicy, index: int, each: TrafficClass) -> None:
        self._router = router
        self._scheduling = policy.scheduling
        self._index = index
        self._each = each
        self._file = policy_file(router)
        self._who = f"class {each.name!r} in {self._file}"
        levels = [other.level for other in policy.scheduling.classes]
        self._first, self._last = each.level == min(levels), each.level == max(levels)
        self._others = [other for other in policy.scheduling.classes if other is not each]

    def _finding(self, rule: Rule, key: str, what: str, fix: str) -> Finding:
        place = in_policy(self._router, "class", self._index, key)
        return Finding(rule, place, f"{self._who} has {what}", f"{fix} in {self._file}")

    def _removed(self, rule: Rule, key: str, value: object, why: str) -> Finding:
        place = in_policy(self._router, "class", self._index, key)
        return Finding(
            rule,
            place,
            f"{self._who} has {key} = {value}: {why}",
            f"remove {key} = {value} from class {self._each.name!r} in {self._file}",
        )

    def order(self) -> Iterator[Finding]:
        """By deadline."""
        if self._each.order is not Order.DEADLINE:
            return
        if not self._each.allow_timeout_override:
            yield self._finding(
                rules.SAME_DEADLINES,
                "order",
                'order = "deadline" and allow_timeout_override = false: with one timeout for all that is the order of '
                "arrival",
                f'write order = "arrival" for class {self._each.name!r}',
            )
        elif not self._each.default_timeout:
            yield self._finding(
                rules.NO_DEADLINES,
                "order",
                'order = "deadline" and no default_timeout_microseconds: what brings no timeout comes after all that '
                "does",
                f"write default_timeout_microseconds = {_TIMEOUT}, or another one, for class {self._each.name!r}",
            )

    def age(self) -> Iterator[Finding]:
        """The age bound."""
        each = self._each
        wait, timeout = each.max_wait // MICROSECOND, each.default_timeout // MICROSECOND
        if not wait:
            return
        rejects = each.timeout_action is TimeoutAction.REJECT
        if timeout and rejects and wait >= timeout:
            yield self._finding(
                rules.AGE_AFTER_TIMEOUT,
                "max_wait_microseconds",
                f"max_wait_microseconds = {wait} and default_timeout_microseconds = {timeout}: a request is answered "
                "before it is that old",
                f"write max_wait_microseconds = {max(1, timeout // 2)}, or less, for class {each.name!r}",
            )
        elif self._first and self._by_arrival and (rejects or not self._may_expire):
            why = "nobody passes what is served by arrival at the most urgent level"
            yield self._removed(rules.AGE_OF_URGENT, "max_wait_microseconds", wait, why)

    @property
    def _by_arrival(self) -> bool:
        return self._each.order is Order.ARRIVAL and self._each.fair_by is FairBy.NONE

    @property
    def _may_expire(self) -> bool:
        return self._each.default_timeout > 0 or self._each.allow_timeout_override

    def blocking(self, recorded: Recorded | None) -> Iterator[Finding]:
        """Bounded blocking."""
        bound = self._each.max_blocking // MICROSECOND
        if not bound:
            return
        if self._last:
            why = "no class is less urgent, so it bounds nothing"
            yield self._removed(rules.BLOCKING_OF_LAST, "max_blocking_microseconds", bound, why)
        elif recorded is not None:
            rows = min(recorded.nearly)
            takes = _microseconds(recorded.nearly[rows])
            if rows == 1 and bound < takes:
                yield self._finding(
                    rules.BLOCKING_TOO_SHORT,
                    "max_blocking_microseconds",
                    f"max_blocking_microseconds = {bound}, and one row takes up to {takes} by {recorded.source}: no "
                    "dispatch can keep to it",
                    f"write max_blocking_microseconds = {takes}, or more, for class {self._each.name!r}",
                )

    def share(self) -> Iterator[Finding]:
        """The guaranteed share."""
        each = self._each
        passed = any(other.min_share or other.max_wait or other.level == each.level for other in self._others)
        if each.min_share and self._first and not passed:
            why = "it is served before all others as it is"
            yield self._removed(rules.SHARE_OF_URGENT, "min_share", f"{each.min_share:g}", why)

    def timeout(self, recorded: Recorded | None) -> Iterator[Finding]:
        """The timeout against an execution."""
        timeout = self._each.default_timeout
        if not timeout or self._each.timeout_action is not TimeoutAction.REJECT:
            return
        declared = self._scheduling.max_execution
        if recorded is not None:
            rows = min(recorded.median)
            execution = recorded.median[rows]
            source = (
                f"one execution of {rows} row{'s' * (rows > 1)} takes {_microseconds(execution)} by {recorded.source}"
            )
        else:
            execution = declared
            source = f"one execution may take {declared // MICROSECOND} by max_execution_microseconds"
        if timeout < execution:
            yield self._finding(
                rules.TIMEOUT_TOO_SHORT,
                "default_timeout_microseconds",
                f"default_timeout_microseconds = {timeout // MICROSECOND}, and {source}: whatever comes just after its "
                "start expires before it can start",
                f"write default_timeout_microseconds = {_microseconds(2 * execution)}, or more, for class "
                f"{self._each.name!r}",
            )

    def early(self) -> Iterator[Finding]:
        """Early refusal."""
        if self._each.reject_predicted_late and not self._may_expire:
            yield self._finding(
                rules.NOTHING_IS_LATE,
                "reject_predicted_late",
                "reject_predicted_late = true, no default_timeout_microseconds and allow_timeout_override = false: "
                "nothing has a timeout, and nothing is refused",
                f"write default_timeout_microseconds = {_TIMEOUT}, or another one, for class {self._each.name!r}",
            )

    def tenants(self) -> Iterator[Finding]:
        """Fair tenants."""
        size = self._each.max_queue_size
        needed = 2 * self._scheduling.instances * max(1, self._scheduling.max_batch_size)
        if self._each.fair_by is FairBy.TENANT and 0 < size < needed:
            yield self._finding(
                rules.NO_ROOM_FOR_TENANTS,
                "max_queue_size",
                f'fair_by = "tenant" and max_queue_size = {size}, fewer than {needed}, which is what one tenant may '
                "send at once for two batches: the others are refused while it fills the queue",
                f"write max_queue_size = {8 * needed}, or more, for class {self._each.name!r}",
            )


def _tenants(router: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """Rules of tenants, and where tenants are named."""
    file = policy_file(router)
    levels = {each.name: each.level for each in policy.scheduling.classes}
    first = min(levels.values())
    others = [rule for rule in policy.tenants if rule.name == EVERY_OTHER]
    capped = any(levels[rule.most_urgent_class] > first for rule in others)
    for index, rule in enumerate(policy.tenants):
        if levels[rule.most_urgent_class] == first and (rule.name == EVERY_OTHER or not capped):
            yield Finding(
                rules.TENANT_WITHOUT_CAP,
                in_policy(router, "tenant", index),
                f"the [[tenant]] {rule.name!r} in {file} has most_urgent_class = {rule.most_urgent_class!r}, of the "
                "most urgent level: it caps nothing",
                f"remove the [[tenant]] with name = {json.dumps(rule.name)} from {file}",
            )
    if policy.tenant_sources != (ClassSource(SourceKind.PARAMETER),) and not policy.reads_tenants:
        yield Finding(
            rules.UNREAD_SOURCES,
            in_policy(router, "tenant_sources"),
            f"{file} has tenant_sources, no fair_by and no [[tenant]]: it does not matter whose a request is",
            f"remove tenant_sources from {file}",
        )


def _microseconds(time: int) -> int:
    return -(-time // MICROSECOND)


def _little_left(router: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """Shares of the less urgent."""
    classes = policy.scheduling.classes
    first = min(each.level for each in classes)
    sharing = [each for each in classes if each.min_share and each.level > first]
    together = math.fsum(each.min_share for each in sharing)
    if 1 - together >= _LEAST_LEFT - 1e-9:
        return
    halves = [f"min_share = {each.min_share / together / 2:.3g} for class {each.name!r}" for each in sharing]
    yield Finding(
        rules.LITTLE_LEFT,
        in_policy(router, "class", classes.index(sharing[0]), "min_share"),
        f"the less urgent classes in {policy_file(router)} have shares of together {together:g}: level {first} gets "
        f"{max(0.0, 1 - together):.3g} of the time while they have work",
        f"write {joined(halves)}, or other shares, in {policy_file(router)}",
    )


def _given_up(router: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """Calls that are given up before they can be answered."""
    limit, longest = policy.scheduling.executor_timeout, longest_flight(policy.scheduling)
    if limit >= longest:
        return
    yield Finding(
        rules.GIVEN_UP,
        in_policy(router, "executor_timeout_microseconds"),
        f"{policy_file(router)} has executor_timeout_microseconds = {limit // MICROSECOND} and "
        f"max_execution_microseconds = {policy.scheduling.max_execution // MICROSECOND}: a call that waits for others "
        "first is given up before its answer",
        f"write executor_timeout_microseconds = {_microseconds(longest)}, or more, in {policy_file(router)}",
    )


def _exceeded(router: Model, policy: RouterPolicy, recorded: Recorded | None) -> Iterator[Finding]:
    """A declared longest execution that executions exceed."""
    declared = policy.scheduling.max_execution
    if not declared or recorded is None:
        return
    rows = max(recorded.nearly, key=recorded.nearly.__getitem__)
    takes = _microseconds(recorded.nearly[rows])
    if declared // MICROSECOND < takes:
        yield Finding(
            rules.DECLARED_TOO_SHORT,
            in_policy(router, "max_execution_microseconds"),
            f"{policy_file(router)} has max_execution_microseconds = {declared // MICROSECOND}, and one execution of "
            f"{rows} row{'s' * (rows > 1)} takes up to {takes} by {recorded.source}",
            f"write max_execution_microseconds = {takes}, or more, in {policy_file(router)}",
        )


def _bytes(router: Model, policy: RouterPolicy) -> Iterator[Finding]:
    """Limits in bytes against the largest request, as far as its size is known."""
    rows = max(1, number(router.config, "max_batch_size"))
    inputs = [tensor for name, tensor in tensors(router, "input").items() if name != CLASS_TENSOR]
    least = rows * sum(
        ITEM_BYTES.get(tensor.data_type.removeprefix("TYPE_"), 0) * math.prod(max(1, length) for length in tensor.dims)
        for tensor in inputs
        if not tensor.optional
    )
    limits: list[tuple[tuple[str | int, ...], int, str]] = [
        (("class", index, "max_queue_bytes"), each.max_queue_bytes, f"class {each.name!r} in {policy_file(router)}")
        for index, each in enumerate(policy.scheduling.classes)
    ]
    limits.append((("max_queue_bytes",), policy.scheduling.max_queue_bytes, f"the top of {policy_file(router)}"))
    common = policy.scheduling.max_queue_bytes
    for path, limit, who in limits:
        if limit > common > 0:
            yield Finding(
                rules.BYTES_ABOVE_ALL,
                in_policy(router, *path),
                f"{who} has max_queue_bytes = {limit}, and all classes together {common}: the common limit refuses "
                "first",
                f"write max_queue_bytes = {max(1, common // 2)}, or another value below {common}, for {who}",
            )
        if 0 < limit < least:
            yield Finding(
                rules.FEW_BYTES,
                in_policy(router, *path),
                f"{who} has max_queue_bytes = {limit}, and a request of {rows} row{'s' * (rows > 1)} has {least} bytes "
                "or more: it can never wait",
                f"write max_queue_bytes = {least}, or more, for {who}",
            )
