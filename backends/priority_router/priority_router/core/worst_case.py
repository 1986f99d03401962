# SPDX-License-Identifier: Apache-2.0
"""The longest that a request of each class can wait, whatever comes and however long executions take.

Law: the policy in, bounds in ns out; nothing that is learned or predicted counts. docs/policies.md derives them in
words. The names below are those of that derivation.

While a request waits, every slot is busy, and each slot starts a dispatch at least every ``max_execution``. So a bound
is the number of dispatches that can start before the request, times ``max_execution``, over the slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from priority_router.core.batching import blocking_budgets
from priority_router.core.executor_model import SHARED_IN_FLIGHT
from priority_router.core.shares import LEAST_CLAIM, LONGEST_DEBT
from priority_router.core.values import MICROSECOND, FairBy, Order, SchedulingPolicy, TimeoutAction, TrafficClass


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no bound.

    Attributes:
        key: of policy.toml, or of the router's config.pbtxt where ``class_name`` is None and ``in_router`` holds.
        remedy: what to write.
        class_name: the ``[[class]]`` that the key belongs to; None: the top of the file.
        in_router: the key is one of the router's config.pbtxt.
    """

    key: str
    remedy: str
    class_name: str | None = None
    in_router: bool = False


@dataclass(frozen=True, slots=True)
class WorstWait:
    """The bounds of one class, from the arrival of a request.

    Attributes:
        class_name: see above.
        start: ns until its first row runs; None: unbounded.
        answer: ns until the executor has answered all of it; None: unbounded.
        missing: what the unbounded of the two lack; empty where there is none.
    """

    class_name: str
    start: int | None
    answer: int | None
    missing: tuple[Missing, ...] = ()


def worst_waits(policy: SchedulingPolicy, largest_request: int | None = None) -> tuple[WorstWait, ...]:
    """Bounds for every class that hold as long as no dispatch takes longer than ``policy.max_execution`` or fails.

    Args:
        policy: see above.
        largest_request: most rows of a request, the router's ``max_batch_size``; None: not known.
    """
    facts = _Facts(policy, largest_request)
    return tuple(_worst_wait(facts, each) for each in policy.classes)


def longest_flight(policy: SchedulingPolicy) -> int:
    """Longest from Send to answer in ns, 0 while ``max_execution`` is not declared."""
    return _Facts(policy, None).longest_flight


def _worst_wait(facts: _Facts, own: TrafficClass) -> WorstWait:
    missing = [*facts.missing()]
    if missing:
        return WorstWait(own.name, None, None, (*missing, *facts.missing_by_place(own)))
    starts, answers = [], []
    place, share = list(facts.missing_by_place(own)), facts.missing_by_share(own)
    if not place:
        starts.append(facts.start(own))
        answers.append(facts.answer(own))
    if share is not None and not share:
        starts.append(facts.start_by_share(own, 0))
        answers.append(facts.start_by_share(own, facts.parts(own) - 1) + facts.execution)
    if (by_timeout := facts.start_by_timeout(own)) is not None:
        starts.append(by_timeout)
        if facts.rows is not None and facts.parts(own) == 1:
            answers.append(by_timeout + facts.execution)
    lacking = () if answers else tuple(place if share is None else share)
    return WorstWait(own.name, min(starts, default=None), min(answers, default=None), lacking)


class _Facts:
    """What follows from the policy for all classes.

    Attributes:
        execution: max_execution in ns.
        rows: most rows of a request; None: not known.
        in_flight: most dispatches at the executor at a time.
    """

    def __init__(self, policy: SchedulingPolicy, largest_request: int | None) -> None:
        self._policy = policy
        self.rows = 1 if policy.max_batch_size == 0 else largest_request
        self._limited = frozenset(blocking_budgets(policy))
        self._most_urgent = min(each.level for each in policy.classes)
        self._sharing = [each for each in policy.classes if each.min_share]
        self.execution = policy.max_execution
        if policy.shared_executor:
            self.in_flight = SHARED_IN_FLIGHT * policy.instances
        else:
            self.in_flight = 2 * policy.instances + policy.overtaking

    # What is not known.

    def missing(self) -> Iterator[Missing]:
        """What no class has a bound without."""
        if not self.execution:
            yield Missing("max_execution_microseconds", "the longest that a dispatch can take")
        elif self._policy.executor_timeout < self.longest_flight:
            least = -(-self.longest_flight // MICROSECOND)
            yield Missing("executor_timeout_microseconds", f"at least {least}, so that no dispatch is given up")

    def missing_by_place(self, own: TrafficClass) -> Iterator[Missing]:
        """What besides a bound by the place in the queue lacks."""
        if self.rows is None:
            yield _LARGEST
        if not self._has_turn(own):
            yield Missing("max_wait_microseconds", "the longest that it is to be passed by others", own.name)
        if self._policy.shared_executor and own.level != self._most_urgent:
            yield Missing("shared_executor", "false: inside Triton the most urgent pass all others without end")
        for each in self._before(own):
            if not each.max_queue_size:
                yield _queue_size(each)
            if self.rows is not None and not self._in_turn(each) and self.parts(each) > 1:
                key, remedy = (
                    ("allow_timeout_override", "false") if each.fair_by is FairBy.NONE else ("fair_by", '"none"')
                )
                why = (
                    ", or requests that are not split: of those more may begin than max_queue_size, each before another"
                )
                yield Missing(key, remedy + why, each.name)
        claiming = self._claiming(own)
        shares = math.fsum(each.min_share for each in self._sharing)
        if claiming and (self._claimed(own) >= 1 or shares > min(map(self._least, claiming))):
            for each in claiming:
                yield Missing("min_share", "less: dispatches that are charged late can take all the time", each.name)

    def missing_by_share(self, own: TrafficClass) -> list[Missing] | None:
        """What a bound by the class's own share lacks; None where a share gives none.

        Where requests are joined the share may go to later ones of the class, which join others.
        """
        if not own.min_share or self._policy.max_batch_size > 1 or not self._in_order(own) or self._passes(own) is None:
            return None
        return [*([_LARGEST] if self.rows is None else []), *([] if own.max_queue_size else [_queue_size(own)])]

    def _has_turn(self, own: TrafficClass) -> bool:
        """Whether nothing that comes later passes it for ever."""
        return own.max_wait > 0 or self._is_first(own)

    def _is_first(self, own: TrafficClass) -> bool:
        """Whether nothing at all that comes later passes it, claims for a share set aside."""
        return own.level == self._most_urgent and self._in_order(own)

    def _in_order(self, own: TrafficClass) -> bool:
        """Whether none of its requests is passed by a later one of the class."""
        return self._in_turn(own) and not _can_be_delayed(own)

    def _in_turn(self, own: TrafficClass) -> bool:
        """Whether the class itself serves in order of arrival: with one timeout for all, deadlines have that order."""
        return own.fair_by is FairBy.NONE and (own.order is Order.ARRIVAL or not own.allow_timeout_override)

    # What can start before a request.

    def _before(self, own: TrafficClass) -> list[TrafficClass]:
        """Classes whose requests can stand before one of this class once it is as urgent as any."""
        return [
            each for each in self._policy.classes if each is own or each.level == self._most_urgent or each.max_wait
        ]

    def parts(self, each: TrafficClass) -> int:
        """Most dispatches that one of its requests is split into."""
        assert self.rows is not None
        if each.name in self._limited:
            return self.rows
        return -(-self.rows // max(self._policy.max_batch_size, 1))

    def _urgent(self, own: TrafficClass) -> int:
        """Most dispatches that the most urgent level serves before what comes after a request of this class."""
        return self._headed(own, [each for each in self._policy.classes if each.level == self._most_urgent])

    def _aged(self, own: TrafficClass) -> int:
        """Most dispatches of those that get their place before it by their age alone."""
        return self._headed(own, [each for each in self._policy.classes if each.max_wait and not self._is_first(each)])

    def _headed(self, own: TrafficClass, classes: list[TrafficClass]) -> int:
        count = sum(self._places(each) * self.parts(each) for each in classes)
        return count - self.parts(own) if own in classes else count

    def _places(self, each: TrafficClass) -> int:
        """Most of its requests that wait at a time; beside delayed ones a begun one may stand above the limit."""
        return each.max_queue_size + (_can_be_delayed(each) and self.parts(each) > 1)

    def _passes(self, own: TrafficClass) -> int | None:
        """Most dispatches that pass one of this class inside Triton; None: any number."""
        policy = self._policy
        if own.level == self._most_urgent or not policy.levels:
            return 0
        if policy.shared_executor:
            return None
        if policy.instances == 1 and not policy.overtaking:
            return 0
        bounded = policy.instances == 1 or any(each.max_wait or each.min_share for each in policy.classes)
        return 1 if bounded else None

    def _claiming(self, own: TrafficClass) -> list[TrafficClass]:
        return [each for each in self._sharing if each is not own]

    def _claimed(self, own: TrafficClass) -> float:
        """Share of the time that the claims of other classes can take in the long run."""
        return math.fsum(self._rate(each) for each in self._claiming(own))

    def _rate(self, each: TrafficClass) -> float:
        """Its share, or more where dispatches are so long that a claim is forgiven before it is charged."""
        forgiven = self.in_flight * (1 + each.min_share) * self.execution / LONGEST_DEBT
        return max(each.min_share, forgiven) / self._least(each)

    def _least(self, each: TrafficClass) -> float:
        """Part of a dispatch sent for the share of this class that it is charged with, at least."""
        joined = self._policy.max_batch_size > 1 and any(
            other is not each and other.level >= each.level for other in self._policy.classes
        )
        return LEAST_CLAIM if joined else 1.0

    # Times.

    def _until_free(self, before: int, own: TrafficClass | None = None) -> int:
        """Longest until so many dispatches, besides those running, have started and one more does."""
        claiming = [] if own is None else self._claiming(own)
        if own is None or not claiming:
            return self.execution * -(-(before + 1) // self._policy.instances)
        late = math.fsum(self.in_flight * (1 + each.min_share / self._least(each)) for each in claiming)
        owed = self._owed / min(map(self._least, claiming))
        dispatches = (self._policy.instances + before + owed + late) / (1 - self._claimed(own))
        return math.ceil(self.execution * dispatches / self._policy.instances)

    @property
    def _owed(self) -> float:
        """Most executions that the classes with a share can be behind, all together."""
        shares = math.fsum(each.min_share for each in self._sharing)
        return (len(self._sharing) - 1 + shares) * (self.in_flight + 1)

    @property
    def longest_flight(self) -> int:
        """Longest from Send to answer."""
        passes = [self._passes(each) for each in self._policy.classes]
        return (
            self._until_free(self._sent_ahead - 1 + max(1 if each is None else each for each in passes))
            + self.execution
        )

    @property
    def _sent_ahead(self) -> int:
        return self.in_flight - self._policy.instances

    def start(self, own: TrafficClass) -> int:
        """Bound by its place in the queue."""
        return self._until_turn(own, 0)

    def answer(self, own: TrafficClass) -> int:
        """Likewise until the last part of a request is answered."""
        return self._until_turn(own, self.parts(own) - 1) + self.execution

    def _until_turn(self, own: TrafficClass, parts: int) -> int:
        before = self._sent_ahead + self._aged(own) + parts + (self._passes(own) or 0)
        by_arrival = self._until_free(before + self._urgent(own), own)
        return by_arrival if self._is_first(own) else max(by_arrival, own.max_wait + self._until_free(before, own))

    def start_by_share(self, own: TrafficClass, parts: int) -> int:
        """Bound by its share: what it is owed by the time that so many of its own parts have started, too."""
        before = (self._places(own) - 1) * self.parts(own) + parts
        late = self.in_flight * (1 + own.min_share)
        debt = max(own.min_share * LONGEST_DEBT, self.execution)
        sent = ((before + late + self._owed) * self.execution + debt) / own.min_share
        waited = math.ceil((self.in_flight * self.execution + sent) / self._policy.instances)
        return waited + self._from_send(own)

    def start_by_timeout(self, own: TrafficClass) -> int | None:
        """Bound by its queue timeout, within which it is sent or refused; None where there is none."""
        rejects = own.default_timeout > 0 and own.timeout_action is TimeoutAction.REJECT
        return own.default_timeout + self._from_send(own) if rejects and self._passes(own) is not None else None

    def _from_send(self, own: TrafficClass) -> int:
        """Longest from Send to start."""
        return self._until_free(self._sent_ahead - 1 + (self._passes(own) or 0))


_LARGEST = Missing("max_batch_size", "the most rows of a request", in_router=True)


def _queue_size(each: TrafficClass) -> Missing:
    return Missing("max_queue_size", "the most that may wait", each.name)


def _can_be_delayed(own: TrafficClass) -> bool:
    """Whether one of its requests can end up behind all that are not late."""
    return own.timeout_action is TimeoutAction.DELAY and (own.default_timeout > 0 or own.allow_timeout_override)
