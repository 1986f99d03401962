# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.core.scheduler import MAX_WRITTEN_OFF
from priority_router.core.values import TimeoutAction, TrafficClass
from priority_router.errors import ExecutorFailed
from unit.core.build import BACKGROUND, MS, ONLINE, Bench, ids


def test_a_free_executor_gets_work_at_once():
    bench = Bench()
    (first,) = bench.submit("background")
    (dispatch,) = bench.advance()
    assert ids(dispatch) == [first]
    assert dispatch.level == 2


def test_the_more_urgent_goes_first_and_ties_by_arrival():
    bench = Bench(max_batch_size=1)
    first, second, urgent = bench.submit("background", "background", "online")
    order = []
    pending = bench.advance()
    while pending:
        order += [ids(d)[0] for d in pending]
        pending = [sent for dispatch in pending for sent in bench.complete(dispatch)]
    assert order == [urgent, first, second]
    assert bench.outcomes == dict.fromkeys((first, second, urgent), "success")


def test_equal_signatures_share_a_dispatch_and_others_do_not():
    bench = Bench()
    bench.submit("background", signature="long")
    first = bench.submit("background", "background")
    bench.submit("background", signature="other")
    long, short = bench.advance()
    assert [long.signature, short.signature] == ["long", "s"]
    assert ids(short) == first


def test_without_a_batch_axis_nothing_is_joined():
    bench = Bench(max_batch_size=0)
    bench.submit("background", "background", "background")
    assert [d.rows for d in bench.advance()] == [1, 1]


def test_the_limit_counts_what_waits_and_not_what_was_sent():
    bench = Bench(TrafficClass("only", 1, max_queue_size=2), max_batch_size=1)
    requests = bench.submit(*["only"] * 6)
    sent = bench.advance()
    assert [ids(d)[0] for d in sent] == requests[:2]  # one runs, one was sent ahead since nothing is learned
    assert bench.outcomes == {requests[4]: "queue_full", requests[5]: "queue_full"}
    assert "'only'" in bench.errors[requests[5]]
    assert "max_queue_size is 2" in bench.errors[requests[5]]


def test_a_full_class_does_not_refuse_another():
    bench = Bench(ONLINE, TrafficClass("background", 2, max_queue_size=1), max_batch_size=1)
    bench.submit(*["background"] * 9)
    bench.advance()
    (urgent,) = bench.submit("online")
    bench.advance()
    assert urgent not in bench.outcomes


def test_a_request_expires_at_its_timeout_and_not_before():
    bench = Bench(ONLINE, TrafficClass("background", 2, default_timeout=10 * MS), max_batch_size=1)
    *_, last = bench.submit("background", "background", "background")
    bench.advance()
    assert bench.scheduler.next_wakeup() == 10 * MS
    bench.at(9.999).advance()
    assert bench.outcomes == {}
    bench.at(10).advance()
    assert bench.outcomes == {last: "timeout"}
    assert "10000 us" in bench.errors[last]
    assert bench.scheduler.waiting["background"] == 0


@pytest.mark.parametrize(
    ("default", "override", "asked", "expires"),
    [(0, True, 5, 5), (10, True, 5, 5), (10, True, 50, 10), (10, False, 5, 10), (0, False, 5, None)],
)
def test_a_caller_may_only_shorten(default, override, asked, expires):
    limited = TrafficClass("background", 2, default_timeout=default * MS, allow_timeout_override=override)
    bench = Bench(ONLINE, limited, max_batch_size=1)
    bench.submit("background", "background")
    bench.advance()
    (waits,) = bench.submit("background", timeout_ms=asked)
    bench.advance()
    if expires is None:
        bench.at(1_000).advance()
        assert waits not in bench.outcomes
    else:
        bench.at(expires - 0.001).advance()
        assert waits not in bench.outcomes
        bench.at(expires).advance()
        assert bench.outcomes[waits] == "timeout"


def test_delay_serves_after_the_unexpired():
    delayed = TrafficClass("background", 2, default_timeout=10 * MS, timeout_action=TimeoutAction.DELAY)
    bench = Bench(ONLINE, delayed, max_batch_size=1)
    running, ahead, late = bench.submit("background", "background", "background")
    first, second = bench.advance()
    (fresh,) = bench.at(9).submit("background")
    bench.advance()
    bench.at(11).advance()
    assert bench.outcomes == {}
    third = bench.complete(first)
    fourth = bench.complete(second)
    assert [ids(d)[0] for d in (*third, *fourth)] == [fresh, late]
    assert running in bench.outcomes
    assert ahead in bench.outcomes


def test_cancel_frees_the_place_at_once_but_not_what_was_sent():
    bench = Bench(ONLINE, TrafficClass("background", 2, max_queue_size=1), max_batch_size=1)
    running, _ahead, waits = bench.submit("background", "background", "background")
    bench.advance()
    bench.scheduler.cancel(waits, bench.now)
    bench.scheduler.cancel(running, bench.now)
    bench.scheduler.cancel(12345, bench.now)
    (replacement,) = bench.submit("background")
    bench.advance()
    assert bench.outcomes == {waits: "cancelled"}
    assert replacement not in bench.outcomes


def test_an_oversized_request_goes_in_parts_that_more_urgent_work_passes():
    bench = Bench(max_batch_size=4)
    (large,) = bench.submit("background", rows=10)
    first, second = bench.advance()
    (urgent,) = bench.submit("online")
    (small,) = bench.submit("background")
    bench.advance()
    third = bench.complete(first)
    fourth = bench.complete(second)
    parts = [(p.request_id, p.first_row, p.rows) for d in (first, second, *third, *fourth) for p in d.parts]
    assert parts == [(large, 0, 4), (large, 4, 4), (urgent, 0, 1), (large, 8, 2), (small, 0, 1)]


def test_the_first_failing_part_ends_a_split_request():
    bench = Bench(max_batch_size=4)
    (large,) = bench.submit("background", rows=12)
    first, second = bench.advance()
    assert bench.complete(first, ExecutorFailed("boom")) == []
    assert bench.outcomes == {large: "executor_error"}
    assert bench.complete(second) == []
    assert bench.scheduler.held == 0


def test_a_failed_dispatch_ends_its_callers_and_nobody_else():
    bench = Bench(max_batch_size=2)
    a, b, c, d = bench.submit(*["background"] * 4)
    first, second = bench.advance()
    bench.complete(first, ExecutorFailed("boom", "INVALID_ARG"))
    bench.complete(second)
    assert bench.outcomes == {a: "executor_error", b: "executor_error", c: "success", d: "success"}


def test_a_lost_dispatch_is_written_off_and_its_late_answer_dropped():
    bench = Bench(max_batch_size=1, executor_timeout=100 * MS)
    (lost,) = bench.submit("background")
    (dispatch,) = bench.advance()
    assert bench.scheduler.next_wakeup() == 100 * MS
    bench.at(100).advance()
    assert bench.outcomes == {lost: "unavailable"}
    assert bench.scheduler.written_off == 1
    (follower,) = bench.submit("background")
    (after,) = bench.advance()
    assert ids(after) == [follower]
    bench.complete(dispatch)
    assert bench.scheduler.late_answers == 1
    assert bench.scheduler.written_off == 0


def learned(bench):
    return bench.scheduler._executor.times.estimate("s", 1)


def test_nothing_is_learned_from_what_stood_behind_lost_dispatches():
    """The executor stands still, and then does what was given up before what is wanted."""
    bench = Bench(max_batch_size=1, executor_timeout=1000 * MS)
    bench.learn(50, times=2)  # one sample: a second one would move the median
    hung = bench.now
    bench.submit("background")
    (lost,) = bench.advance()
    bench.now = hung + 900 * MS
    bench.submit("background")
    (ahead,) = bench.advance()
    bench.now = hung + 1000 * MS
    bench.advance()
    bench.now = hung + 1100 * MS
    bench.submit("background")
    (behind,) = bench.advance()
    bench.now = hung + 1500 * MS
    bench.complete(lost)
    bench.now += 50 * MS
    bench.complete(ahead)
    assert learned(bench) == 50 * MS
    bench.now += 60 * MS
    bench.complete(behind)
    assert learned(bench) == 50 * MS
    assert bench.scheduler.late_answers == 1
    bench.learn(70, times=1)
    assert learned(bench) == 70 * MS, "it learns again"


def test_a_dispatch_that_never_comes_back_does_not_end_the_learning():
    bench = Bench(max_batch_size=1, executor_timeout=1000 * MS)
    bench.learn(50, times=2)
    bench.submit("background")
    bench.advance()
    bench.now += 1000 * MS
    bench.advance()
    bench.learn(70)
    assert bench.scheduler.written_off == 1
    assert learned(bench) == 70 * MS


def test_eight_lost_dispatches_refuse_until_one_comes_back():
    bench = Bench(max_batch_size=1, executor_timeout=10 * MS)
    lost = []
    for step in range(MAX_WRITTEN_OFF):
        bench.at(step * 20).submit("background")
        lost += bench.advance()
        bench.at(step * 20 + 10).advance()
    (refused,) = bench.submit("online")
    assert bench.advance() == []
    assert bench.outcomes[refused] == "unavailable"
    assert bench.complete(lost[0]) == []
    bench.submit("online")
    assert len(bench.advance()) == 1


def test_what_waits_when_the_executor_is_gone_is_answered():
    bench = Bench(max_batch_size=1, executor_timeout=10 * MS, instances=MAX_WRITTEN_OFF)
    requests = bench.submit(*["background"] * 40)
    bench.advance()
    bench.at(10).advance()
    assert set(bench.outcomes) == set(requests)
    assert set(bench.outcomes.values()) == {"unavailable"}


def test_draining_refuses_the_new_and_serves_what_waits():
    bench = Bench(max_batch_size=1)
    waiting = bench.submit("background", "background", "background")
    pending = bench.advance()
    bench.scheduler.drain()
    (refused,) = bench.submit("online")
    bench.advance()
    assert bench.outcomes == {refused: "unavailable"}
    while pending:
        pending = [sent for dispatch in pending for sent in bench.complete(dispatch)]
    assert [bench.outcomes[i] for i in waiting] == ["success"] * 3


def test_sends_ahead_just_before_the_predicted_completion():
    bench = Bench(max_batch_size=1)
    bench.learn(50)
    start = bench.now
    bench.submit("background", "background")
    assert len(bench.advance()) == 1
    wake = bench.scheduler.next_wakeup()
    assert wake is not None
    assert start + 45 * MS < wake < start + 50 * MS
    bench.now = wake - 1
    assert bench.advance() == []
    bench.now = wake
    assert len(bench.advance()) == 1


def test_an_urgent_request_that_arrives_late_still_passes_the_queue():
    bench = Bench(max_batch_size=1)
    bench.learn(50)
    bench.submit("background", "background")
    (running,) = bench.advance()
    bench.now += 40 * MS
    (urgent,) = bench.submit("online")
    bench.advance()
    bench.now += 10 * MS
    (following,) = bench.complete(running)
    assert ids(following) == [urgent]


def test_due_names_the_long_waiting_requests_of_the_next_dispatch_and_changes_nothing():
    bench = Bench(max_batch_size=2)
    bench.submit(*["background"] * 6)
    bench.advance()
    assert bench.scheduler.due(bench.now + 20 * MS, 20 * MS) == []
    waiting = bench.scheduler.due(bench.now + 21 * MS, 20 * MS)
    assert waiting == [4, 5]
    assert bench.scheduler.due(bench.now + 21 * MS, 20 * MS) == waiting


def test_worst_blocking_is_what_stood_before_the_more_urgent():
    bench = Bench(max_batch_size=1)
    bench.learn(50)
    bench.submit("background")
    (running,) = bench.advance()
    bench.now += 20 * MS
    bench.submit("online")
    bench.advance()
    bench.now += 30 * MS
    bench.complete(running)
    assert bench.scheduler.worst_blocking(bench.now) == {"online": 30 * MS, "background": 0}
    bench.now += 120_000 * MS
    assert bench.scheduler.worst_blocking(bench.now) == {"online": 0, "background": 0}


def test_a_lost_dispatch_blocks_until_it_is_written_off():
    bench = Bench(max_batch_size=1, executor_timeout=500 * MS)
    bench.learn(50)
    bench.submit("background")
    bench.advance()
    bench.now += 20 * MS
    bench.submit("online")
    bench.advance()
    bench.now += 480 * MS
    bench.advance()
    assert bench.scheduler.worst_blocking(bench.now)["online"] == 480 * MS


def test_overtaking_passes_a_waiting_dispatch_once():
    bench = Bench(max_batch_size=1, overtaking=True)
    bench.submit("background", "background")
    _running, waits = bench.advance()
    (urgent,) = bench.submit("online")
    (passing,) = bench.advance()
    assert ids(passing) == [urgent]
    bench.submit("online")
    assert bench.advance() == []
    assert waits.level == 2


def test_shared_executor_sends_the_most_urgent_at_once_up_to_its_limit():
    bench = Bench(max_batch_size=1, shared_executor=True, instances=1)
    bench.learn(50)
    bench.submit(*["online"] * 9)
    assert len(bench.advance()) == 4
    other = Bench(max_batch_size=1, shared_executor=True)
    other.learn(50)
    other.submit(*["background"] * 9)
    assert len(other.advance()) == 1


@pytest.mark.parametrize(
    ("class_name", "rows", "again"), [("nobody", 1, False), ("online", 0, False), ("online", 1, True)]
)
def test_what_must_not_reach_the_core_is_refused_loudly(class_name, rows, again):
    bench = Bench(ONLINE, BACKGROUND)
    if again:
        bench.submit("online")
        bench.next_id = 0
    with pytest.raises(ValueError, match="already held, class unknown or no rows"):
        bench.submit(class_name, rows=rows)


def test_two_humps_are_not_taken_for_their_median():
    bench = Bench(max_batch_size=1)
    for _ in range(4):
        bench.learn(10, times=2)
        bench.learn(410, times=2)
    bench.submit("background", "background")
    bench.advance()
    start = bench.now
    wake = bench.scheduler.next_wakeup()
    assert wake is not None
    assert start + 390 * MS < wake < start + 410 * MS


def test_nothing_is_sent_ahead_that_would_merge_with_what_waits():
    bench = Bench(max_batch_size=4, instances=2)
    bench.submit(*["background"] * 4)
    bench.advance()
    bench.submit(*["background"] * 4)
    first_two = len(bench.sent)
    bench.advance()
    assert first_two == 1
    assert len(bench.sent) == 2
    bench.submit("background")  # nothing is learned, so this one goes ahead at once
    bench.advance()
    assert len(bench.sent) == 3
    bench.submit("background")  # with the waiting one it would make a single batch
    bench.advance()
    assert len(bench.sent) == 3
    assert bench.scheduler.next_wakeup() == 60_000 * MS
    assert len(bench.complete(bench.sent[0])) == 1
