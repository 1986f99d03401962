# SPDX-License-Identifier: Apache-2.0
"""A scheduler is called as the router calls it, at the right moments."""

import random

import pytest
from priority_router.core.values import Dispatch, Finish, Part, Send
from priority_router.errors import Cancelled, ExecutorFailed, Outcome
from priority_router.ops.simulate.arrivals import Arrival
from priority_router.ops.simulate.clock import Delay
from priority_router.ops.simulate.executor import ExecutorShape, ServiceTimes
from priority_router.ops.simulate.simulation import NO_DELAYS, NO_WAY, Delays, Fate, Setup, Simulation

WAYS = Delays(hand_over=Delay(1), call=Delay(10), reply=Delay(100), timer=Delay(1000))


class Recorder:
    """Sends every request alone and at once, and notes what it is told, with the time."""

    def __init__(self, wakeups=()):
        self.calls = []
        self.actions = []
        self.wakeups = list(wakeups)

    def submit(self, requests, now):
        self.calls.append((now, "submit", [request.id for request in requests]))
        for each in requests:
            self.actions.append(Send(Dispatch(each.id, 1, each.signature, each.rows, (Part(each.id, 0, each.rows),))))

    def cancel(self, request_id, now):
        self.calls.append((now, "cancel", request_id))
        self.actions.append(Finish(request_id, Cancelled("gone")))

    def called(self, dispatch_id, now):
        self.calls.append((now, "called", dispatch_id))

    def completed(self, dispatch_id, now, error=None):
        self.calls.append((now, "completed", dispatch_id))
        self.actions.append(Finish(dispatch_id, error))

    def advance(self, now):
        self.calls.append((now, "advance", None))
        if self.wakeups and self.wakeups[0] <= now:
            self.wakeups.pop(0)
        actions, self.actions = self.actions, []
        return actions

    def next_wakeup(self):
        return self.wakeups[0] if self.wakeups else None

    def told(self, what):
        return [(now, about) for now, name, about in self.calls if name == what]


def play(arrivals, delays=NO_DELAYS, wakeups=(), **setup):
    recorder = Recorder(wakeups)
    simulation = Simulation(
        recorder, Setup(ExecutorShape(1, 1), ServiceTimes(50), delays, dispatch_overhead=0, **setup), arrivals, seed=1
    )
    simulation.run()
    return recorder, simulation


def test_a_dispatch_travels_and_comes_back():
    recorder, simulation = play([Arrival(5, "online")], WAYS)
    assert recorder.told("submit") == [(5, [0])]
    assert recorder.told("called") == [(6, 0)]
    assert recorder.told("completed") == [(5 + 1 + 10 + 50 + 100, 0)]
    assert list(simulation.answered) == [166]
    assert simulation.outcomes == [Outcome.SUCCESS]


def test_requests_of_one_moment_are_one_submission_and_every_event_asks_for_decisions():
    recorder, _ = play([Arrival(5, "online"), Arrival(5, "online"), Arrival(9, "online")])
    assert recorder.told("submit") == [(5, [0, 1]), (9, [2])]
    assert [now for now, _ in recorder.told("advance")] == [5, 9, 55, 105, 155]


def test_a_timer_wakes_it_late_and_an_earlier_one_replaces_a_later():
    recorder, simulation = play([Arrival(5, "online")], Delays(*(Delay(),) * 3, Delay(7)), wakeups=[20, 30])
    assert [now for now, _ in recorder.told("advance")] == [5, 27, 37, 55]
    assert simulation.wakeups == 2


def test_a_caller_that_goes_away_is_told():
    recorder, simulation = play([Arrival(5, "online", cancel_after=3)], fate=lambda *_: Fate(extra_delay=None))
    assert recorder.told("cancel") == [(8, 0)]
    assert simulation.outcomes == [Outcome.CANCELLED]


def test_answers_fail_or_come_late_or_never():
    fates = iter((Fate(error=ExecutorFailed("no")), Fate(extra_delay=1000), Fate(extra_delay=None)))
    _, simulation = play([Arrival(0, "online")] * 3, fate=lambda *_: next(fates))
    assert simulation.outcomes == [Outcome.EXECUTOR_ERROR, Outcome.SUCCESS, None]
    assert list(simulation.answered) == [50, 1100, -1]


def test_others_share_the_executor_and_are_not_reported():
    others = (Arrival(0, "elsewhere"), Arrival(0, "elsewhere"))
    recorder, simulation = play([Arrival(1, "online")], others=others, others_level=2)
    assert recorder.told("completed") == [(100, 0)]  # past the second of the others, which waits on level 2
    assert simulation.executor.rows == 3


def test_a_second_end_is_refused():
    class Twice(Recorder):
        def completed(self, dispatch_id, now, error=None):
            super().completed(dispatch_id, now)
            super().completed(dispatch_id, now)

    setup = Setup(ExecutorShape(1, 1), ServiceTimes(50), NO_DELAYS)
    with pytest.raises(RuntimeError, match="request 0 ended twice"):
        Simulation(Twice(), setup, [Arrival(0, "online")], seed=1).run()


def test_the_same_seed_gives_the_same_run():
    ways = Delays(*(Delay(5, 20),) * 4)
    arrivals = [Arrival(random.Random(number).randrange(900), "online") for number in range(30)]
    arrivals.sort(key=lambda arrival: arrival.time)
    first, again = (play(arrivals, ways)[1] for _ in range(2))
    assert list(first.answered) == list(again.answered)


def test_callers_are_as_far_away_as_told_and_none_overtakes_another():
    outside = Delays(*(NO_WAY,) * 4, request=Delay(7), answer=Delay(1000))
    recorder, simulation = play([Arrival(5, "online"), Arrival(30, "online")], outside)
    assert recorder.told("submit") == [(12, [0]), (37, [1])]
    assert list(simulation.arrived) == [5, 30]
    assert list(simulation.answered) == [12 + 50 + 1000, 37 + 50 + 25 + 1000]


def test_requests_that_are_sent_one_after_the_other_arrive_so():
    far = Delays(*(NO_WAY,) * 4, request=Delay(0, 100))
    recorder, _ = play([Arrival(time, "online") for time in range(50)], far)
    arrived = [number for _, numbers in recorder.told("submit") for number in numbers]
    assert arrived == list(range(50))
    assert len(recorder.told("submit")) < 50
