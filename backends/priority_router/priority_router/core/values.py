# SPDX-License-Identifier: Apache-2.0
"""The words of the scheduling core: what comes in (policy, requests) and what goes out (actions).

Law: values only. Times are integer nanoseconds on the caller's monotonic clock; nothing here knows Triton, tensors,
threads or the clock itself.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass

from priority_router.errors import Outcome, RequestError

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class TimeoutAction(enum.Enum):
    """What happens to a request whose queue timeout has passed. Names and meaning are Triton's."""

    REJECT = "REJECT"
    DELAY = "DELAY"


class Order(enum.Enum):
    """Who of a class is served first."""

    ARRIVAL = "arrival"
    DEADLINE = "deadline"


class FairBy(enum.Enum):
    """Between whom a class is shared."""

    NONE = "none"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """One class of traffic.

    Attributes:
        name: what clients send and metrics show.
        level: 1 is the most urgent; classes may share a level.
        max_queue_size: requests that may wait, those sent to the executor not counted; 0 = unlimited.
        default_timeout: queue timeout in ns; 0 = none.
        allow_timeout_override: a caller's own timeout counts where it is shorter than the default.
        timeout_action: REJECT answers, DELAY serves after the level's unexpired work.
        order: ARRIVAL, or DEADLINE: the one whose queue timeout passes first, then those without one.
        max_blocking: ns that a less urgent class's dispatch may be predicted to take; 0 = any.
        max_wait: ns after which a waiting request is as urgent as the most urgent level; 0 = never.
        min_share: share of the executor's time that the class gets at least while it has work; all together at most 1.
        max_queue_bytes: bytes of the requests that may wait; 0 = unlimited.
        fair_by: TENANT: each tenant with work gets the same of the class's time; ``order`` then holds inside a tenant.
        reject_predicted_late: a request that cannot start before its queue timeout passes is refused; REJECT only.
    """

    name: str
    level: int
    max_queue_size: int = 0
    default_timeout: int = 0
    allow_timeout_override: bool = True
    timeout_action: TimeoutAction = TimeoutAction.REJECT
    order: Order = Order.ARRIVAL
    max_blocking: int = 0
    max_wait: int = 0
    min_share: float = 0.0
    max_queue_bytes: int = 0
    fair_by: FairBy = FairBy.NONE
    reject_predicted_late: bool = False


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """Everything the scheduler needs to know; the rule numbers are those of docs/design.md.

    Attributes:
        classes: at least one, names unique.
        instances: executor instances over all devices (I), at least 1.
        max_batch_size: executor's row limit (B); 0 = tensors have no batch axis, requests are never joined.
        levels: True in levels mode: a dispatch carries its level and Triton's own queue honours it.
        executor_timeout: ns until a dispatch without an answer is written off (rule 6).
        max_fill_slowdown: share by which less urgent rows may lengthen a dispatch (rule 1).
        batch_efficiency: share of the best rows/s at which a less urgent dispatch is large enough (rule 1).
        overtaking: rule 5; needs ``levels``.
        shared_executor: rule 9; needs ``levels``.
        max_queue_bytes: bytes of all requests that may wait; 0 = unlimited.
        max_execution: ns that no dispatch takes longer than, as declared; 0 = not declared. No decision depends on it.
    """

    classes: tuple[TrafficClass, ...]
    instances: int = 1
    max_batch_size: int = 1
    levels: bool = True
    executor_timeout: int = 60 * SECOND
    max_fill_slowdown: float = 0.1
    batch_efficiency: float = 0.95
    overtaking: bool = False
    shared_executor: bool = False
    max_queue_bytes: int = 0
    max_execution: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One caller's request as the core sees it.

    Attributes:
        id: chosen by the caller of the core, who never gives it twice.
        class_name: name of one of the policy's classes.
        rows: length of the batch axis, at least 1; 1 where there is no batch axis.
        signature: equal signatures may be joined (names, dtypes, shapes without the batch axis).
        timeout: the caller's own queue timeout in ns; 0 = none given.
        size: bytes that are held for it while it waits.
        tenant: on whose behalf it comes; any text, of which there may be any number.
    """

    id: int
    class_name: str
    rows: int
    signature: Hashable
    timeout: int = 0
    size: int = 0
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows ``first_row .. first_row + rows`` of one request, inside one dispatch."""

    request_id: int
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One call of the executor: the parts in batch order."""

    id: int
    level: int
    signature: Hashable
    rows: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """Call the executor now. The receiver must report back with ``completed``, whatever happens."""

    dispatch: Dispatch


@dataclass(frozen=True, slots=True)
class Finish:
    """Answer this request now: the scheduler has forgotten it and will not mention it again.

    ``error`` is None when every row was answered by the executor.
    """

    request_id: int
    error: RequestError | None

    @property
    def outcome(self) -> Outcome:
        """How the request ended."""
        return Outcome.SUCCESS if self.error is None else self.error.outcome


Action = Send | Finish
