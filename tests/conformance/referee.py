# SPDX-License-Identifier: Apache-2.0
"""The laws of the scheduler, checked from outside after every step.

The referee stands between a scheduler and whoever drives it, keeps its own books of what was submitted, and raises
``Foul`` at the first decision that the rules do not allow. It knows nothing of learned times: when a dispatch is sent
ahead and where a batch is cut are judged by the tests that measure, not here.

The laws, at every ``advance``:

head        a dispatch is headed by the first request of the most urgent level with work; a level serves its unexpired
            requests in order of arrival, then the delayed ones in the order in which they expired. A class with
            order = "deadline" takes its turns among the unexpired in order of deadline, one with fair_by = "tenant"
            in order of what its tenants were charged, and inside a tenant in its own. Who has waited max_wait stands
            in the most urgent level by its arrival. A class with min_share may send its first at any time, at its own
            or at the most urgent level; how often is judged by test_policy_laws.
joins       those who join have the head's signature and come in the same order; at each level the first that is left
            out ends the joining. While one of the head's own level fits, nobody less urgent joins.
rows        at most B rows; each row is sent once, in order; only requests of more than B rows are split, or than a
            blocking budget allows, and only the last part is shared.
conserving  nothing waits while fewer than I dispatches are in flight.
ahead       at most 2 I dispatches are in flight (3 I with overtaking; 4 I for the most urgent level when shared).
one end     each request ends once, in the advance after the event that ends it, and for that reason.
limits      after an advance no class has more waiting than it may, those that have begun and those that stood there
            when the policy changed set aside; one is refused as full only on arrival, only the newest of those of its
            class that have not begun, and only when the class is then full, and no fuller than that allows.
early       one is refused as predicted late only where its class asks for it, while it waits for its first row and has
            a queue timeout that would answer it, and only while I dispatches are in flight: a free slot is never too
            late. When that is, learned times tell: test_early_refusal judges them.
wake-up     later than now, and not after the next queue timeout or executor timeout.
sends first the executor gets its work before replies are sent.
change      under another policy each request keeps its arrival, its deadline and its class, or gets the default class
            where its own is gone; what the policy says of that class holds from then on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from heapq import heappop, heappush

from conformance.books import Foul, Lines, Record, law, replay_joins
from conformance.limits_books import Limits
from priority_router.core.values import (
    Action,
    Dispatch,
    Finish,
    Request,
    SchedulingPolicy,
    Send,
    TimeoutAction,
)
from priority_router.errors import Outcome, RequestError
from priority_router.ops.simulate.simulation import SchedulerLike

__all__ = ["Foul", "Referee"]

WRITTEN_OFF_LIMIT = 8


class Referee:
    """A scheduler under observation; same calls, same answers."""

    def __init__(self, scheduler: SchedulerLike, policy: SchedulingPolicy) -> None:
        self.scheduler = scheduler
        self.policy = policy
        self.steps = 0
        self.received = 0
        self.ended: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self.early_sends = 0
        self._classes = {each.name: each for each in policy.classes}
        self._lines = Lines(policy)
        self._records: dict[int, Record] = {}
        self._waiting = dict.fromkeys(self._classes, 0)
        self._flying: OrderedDict[int, tuple[Dispatch, int]] = OrderedDict()
        self._written_off: set[int] = set()
        self._new: list[Record] = []
        self._deadlines: list[tuple[int, int, Record]] = []
        self._ages: list[tuple[int, Record]] = []
        self._due: dict[int, Outcome] = {}
        self._draining = False
        self._limits = Limits(policy)

    # Calls in.

    def submit(self, requests: Sequence[Request], now: int) -> None:
        for request in requests:
            self.received += 1
            traffic_class = self._classes[request.class_name]
            timeout = traffic_class.default_timeout
            if request.timeout and traffic_class.allow_timeout_override:
                timeout = min(request.timeout, timeout) if timeout else request.timeout
            record = Record(request, traffic_class, self.received, now, now + timeout if timeout else None)
            self._records[request.id] = record
            if self._draining or self._gone:
                self._due[request.id] = Outcome.UNAVAILABLE
                continue
            self._enter(record)
            self._new.append(record)
            if timeout:
                heappush(self._deadlines, (now + timeout, record.place, record))
            if traffic_class.max_wait:
                self._ages.append((now + traffic_class.max_wait, record))
        self.scheduler.submit(requests, now)

    def cancel(self, request_id: int, now: int) -> None:
        record = self._records.get(request_id)
        if record is not None and record.unsent and request_id not in self._due:
            self._end_soon(record, Outcome.CANCELLED)
        self.scheduler.cancel(request_id, now)

    def called(self, dispatch_id: int, now: int) -> None:
        self.scheduler.called(dispatch_id, now)

    def completed(self, dispatch_id: int, now: int, error: RequestError | None = None) -> None:
        if dispatch_id in self._written_off:
            self._written_off.remove(dispatch_id)
        else:
            dispatch, _ = self._flying.pop(dispatch_id)
            self._answer(dispatch, None if error is None else error.outcome)
        self.scheduler.completed(dispatch_id, now, error)

    def adopt(self, policy: SchedulingPolicy, now: int, default_class: str) -> None:
        self.policy = policy
        self._classes = {each.name: each for each in policy.classes}
        for record in self._records.values():
            if not self._is_waiting(record):
                record.traffic_class = self._classes.get(record.traffic_class.name, self._classes[default_class])
        self._lines = self._lines.under(policy, now, default_class)
        everyone = sorted(self._lines.everyone(), key=lambda record: record.place)
        self._waiting = {name: sum(each.traffic_class.name == name for each in everyone) for name in self._classes}
        young = [record for record in everyone if record.traffic_class.max_wait and record.promoted_to is None]
        self._ages = [(record.arrived + record.traffic_class.max_wait, record) for record in young]
        self._limits = Limits(policy, stood=self.received)
        self.scheduler.adopt(policy, now, default_class)  # type: ignore[attr-defined]

    def drain(self) -> None:
        self._draining = True
        self.scheduler.drain()  # type: ignore[attr-defined]

    def next_wakeup(self) -> int | None:
        return self.scheduler.next_wakeup()

    # Decisions out.

    def advance(self, now: int) -> list[Action]:
        self.steps += 1
        self._lose(now)
        if not self._gone:  # else whoever waits is answered as unavailable, expired or not
            self._expire(now)
            self._promote(now)
        actions = self.scheduler.advance(now)
        sends = [action for action in actions if isinstance(action, Send)]
        self._refuse_early([action for action in actions if isinstance(action, Finish)])
        law(list(actions[: len(sends)]) == sends, "sends first", "a Finish comes before a Send in {}", actions)
        for action in sends:
            self._send(action.dispatch, now)
        law(
            len(self._flying) >= self.policy.instances or not self._lines.first() or self._gone,
            "conserving",
            "{} wait while {} of {} run",
            sum(self._waiting.values()),
            len(self._flying),
            self.policy.instances,
        )
        early = Outcome.PREDICTED_LATE in self._due.values()
        law(not early or len(self._flying) >= self.policy.instances, "early", "one is refused while a slot is free")
        self._finish([action for action in actions if isinstance(action, Finish)])
        self._check_wakeup(now)
        self._check_books()
        return actions

    def _refuse_early(self, finishes: list[Finish]) -> None:
        """Who was refused by prediction is taken out first: one that was about to be sent made room for the next."""
        for finish in finishes:
            if finish.outcome is not Outcome.PREDICTED_LATE:
                continue
            record = self._record(finish.request_id)
            each = record.traffic_class
            asked = each.reject_predicted_late and each.timeout_action is TimeoutAction.REJECT
            law(asked and record.deadline is not None, "early", "{} is refused without its asking", record)
            law(self._is_waiting(record) and not record.sent_rows, "early", "{} is refused after it was sent", record)
            self._end_soon(record, Outcome.PREDICTED_LATE)

    def _send(self, dispatch: Dispatch, now: int) -> None:
        limit = max(1, self.policy.max_batch_size)
        records = [self._record(part.request_id) for part in dispatch.parts]
        head = records[0]
        first = self._lines.first()
        claimed = bool(head.traffic_class.min_share) and head is self._lines.first_of(head.traffic_class)
        law(claimed or first is head, "head", "{} is sent, {} is to be served", head, first)
        levels = (head.level, min(each.level for each in self.policy.classes)) if claimed else (head.level,)
        law(dispatch.level in levels, "head", "level {} for {}", dispatch.level, head)
        law(0 < dispatch.rows <= limit, "rows", "{} rows, at most {}", dispatch.rows, limit)
        law(dispatch.rows == sum(part.rows for part in dispatch.parts), "rows", "parts do not add up: {}", dispatch)
        law(self.policy.max_batch_size > 0 or len(records) == 1, "joins", "there is no batch axis to join along")
        law(len({id(record) for record in records}) == len(records), "rows", "a request twice in {}", dispatch)
        for part, record in zip(dispatch.parts, records, strict=True):
            law(record.request.signature == dispatch.signature, "joins", "{} in {}", record, dispatch)
            law(part.first_row == record.sent_rows, "rows", "{}, next row is {}", part, record.sent_rows)
            whole = part.rows == record.unsent
            small = record.request.rows <= limit and not self._has_budget(record)
            law(whole or not small, "rows", "{} need not be split: {}", record, part)
            law(whole or len(records) == 1, "rows", "a part that is not the last shares its dispatch: {}", dispatch)
        room = dispatch.rows if self._has_budget(head) else self.policy.max_batch_size
        if not claimed:
            replay_joins(self._lines, dispatch, records, room)
        self._check_ahead(dispatch)
        self._charge(dispatch, records)
        for part, record in zip(dispatch.parts, records, strict=True):
            record.sent_rows += part.rows
            if not record.unsent:
                self._leave(record, served=True)
        self._flying[dispatch.id] = (dispatch, now)

    def _charge(self, dispatch: Dispatch, records: list[Record]) -> None:
        """Tenants pay what the scheduler expects the dispatch to take: of all that it learned, the one thing used."""
        if self._lines.tenants:
            estimate = self.scheduler._executor.flights[dispatch.id].estimate  # type: ignore[attr-defined]
            row_time = 1.0 if estimate is None else estimate / dispatch.rows
            for part, record in zip(dispatch.parts, records, strict=True):
                charges = self._lines.tenants.of(record.traffic_class)
                if charges is not None:
                    charges.charge(record.account, part.rows, row_time)

    def _check_ahead(self, dispatch: Dispatch) -> None:
        instances, flying = self.policy.instances, len(self._flying)
        most = 2 * instances
        if self.policy.overtaking:
            most = (4 if self._limits.stood else 3) * instances  # beside what an earlier policy sent
        if self.policy.shared_executor and dispatch.level == min(each.level for each in self.policy.classes):
            most = 4 * instances
        law(flying < most, "ahead", "{} in flight, at most {}", flying, most)
        self.early_sends += flying >= instances

    def _finish(self, finishes: list[Finish]) -> None:
        refused: dict[str, list[Record]] = {}
        for finish in finishes:
            record = self._record(finish.request_id)
            outcome = finish.outcome
            due = self._due.pop(finish.request_id, None)
            if due is not None:
                law(outcome is due, "one end", "{} ends as {}, not {}", record, outcome, due)
            elif outcome is Outcome.QUEUE_FULL:
                law(record in self._new and not record.sent_rows, "limits", "{} is refused after its arrival", record)
                refused.setdefault(record.traffic_class.name, []).append(record)
                self._leave(record)
            else:
                law(
                    outcome is Outcome.UNAVAILABLE and self._gone and self._is_waiting(record),
                    "one end",
                    "{} ends as {} for no reason",
                    record,
                    outcome,
                )
                self._leave(record)
            self.ended[outcome] += 1
            del self._records[finish.request_id]
        law(not self._due, "one end", "not ended: {}", self._due)
        if self._gone:
            law(self._lines.first() is None, "one end", "requests wait for an executor that is gone")
        self._limits.check(self._lines, refused, self._new)
        self._new.clear()

    def _check_wakeup(self, now: int) -> None:
        wakeup = self.scheduler.next_wakeup()
        law(wakeup is None or wakeup > now, "wake-up", "at {}, now is {}", wakeup, now)
        latest = [sent + self.policy.executor_timeout for _, sent in self._flying.values()]
        latest += [at for at in (self._next_deadline(),) if at is not None]
        latest += [at for at, record in self._ages if self._is_waiting(record)]
        if latest:
            law(wakeup is not None and wakeup <= min(latest), "wake-up", "at {}, needed by {}", wakeup, min(latest))

    def _check_books(self) -> None:
        """Received = waiting + in flight + ended, and the scheduler's own numbers agree."""
        law(len(self._records) + sum(self.ended.values()) == self.received, "one end", "requests lost or doubled")
        observed = getattr(self.scheduler, "waiting", None)
        law(observed is None or observed == self._waiting, "books", "waiting {}, should be {}", observed, self._waiting)

    # Books.

    @property
    def _gone(self) -> bool:
        """Too many dispatches have no answer: nothing is taken in, nothing waits."""
        return len(self._written_off) >= WRITTEN_OFF_LIMIT

    def _record(self, request_id: int) -> Record:
        record = self._records.get(request_id)
        if record is None:
            raise Foul(f"one end: request {request_id} is unknown or has ended")
        return record

    def _enter(self, record: Record) -> None:
        self._lines.tenants.enter(record)
        self._lines.add(record)
        self._waiting[record.traffic_class.name] += 1

    def _leave(self, record: Record, *, served: bool = False) -> None:
        self._lines.remove(record, served=served)
        charges = self._lines.tenants.of(record.traffic_class)
        if charges is not None:
            charges.ends(record.account)
        self._waiting[record.traffic_class.name] -= 1

    def _has_budget(self, record: Record) -> bool:
        """A more urgent class bounds the time of its dispatches, so their rows follow from learned times."""
        level = record.traffic_class.level
        return any(each.max_blocking and each.level < level for each in self.policy.classes)

    def _is_waiting(self, record: Record) -> bool:
        return self._lines.holds(record)

    def _end_soon(self, record: Record, outcome: Outcome) -> None:
        """The next advance must end this request so."""
        if record.request.id in self._due:
            return
        if record.unsent and self._is_waiting(record):
            self._leave(record)
        self._due[record.request.id] = outcome

    def _answer(self, dispatch: Dispatch, failure: Outcome | None) -> None:
        for part in dispatch.parts:
            record = self._records.get(part.request_id)
            if record is None or part.request_id in self._due:
                continue
            record.answered_rows += part.rows
            if failure is not None:
                self._end_soon(record, failure)
            elif record.answered_rows == record.request.rows:
                self._end_soon(record, Outcome.SUCCESS)

    def _lose(self, now: int) -> None:
        while self._flying:
            dispatch, sent = next(iter(self._flying.values()))
            if now < sent + self.policy.executor_timeout:
                return
            del self._flying[dispatch.id]
            self._written_off.add(dispatch.id)
            self._answer(dispatch, Outcome.UNAVAILABLE)

    def _next_deadline(self) -> int | None:
        while self._deadlines and not self._may_expire(self._deadlines[0][2]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _may_expire(self, record: Record) -> bool:
        return not record.delayed and not record.sent_rows and self._is_waiting(record)

    def _promote(self, now: int) -> None:
        if self._ages:
            self._ages.sort(key=lambda age: age[0])  # stable, so that of one class they stay by arrival
            aged = [record for at, record in self._ages if at <= now]
            self._ages = [age for age in self._ages if age[0] > now and self._is_waiting(age[1])]
            for record in aged:
                if self._is_waiting(record):
                    self._lines.promote(record)

    def _expire(self, now: int) -> None:
        while True:
            deadline = self._next_deadline()
            if deadline is None or deadline > now:
                return
            record = heappop(self._deadlines)[2]
            if record.traffic_class.timeout_action is TimeoutAction.REJECT:
                self._end_soon(record, Outcome.TIMEOUT)
                continue
            record.waits_on = True
            if record.promoted_to is None:
                self._lines.delay(record)
