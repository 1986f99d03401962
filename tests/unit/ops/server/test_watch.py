# SPDX-License-Identifier: Apache-2.0
import signal

import pytest
from priority_router.ops.server.watch import (
    CRASH_SECONDS,
    MUTE_SECONDS,
    ROUTER_SECONDS,
    SILENT_CHECKS,
    SILENT_SECONDS,
    Vitals,
)


@pytest.fixture
def vitals():
    return Vitals()


def miss(vitals, *times, unaccepted=1):
    for began in times:
        vitals.checked(began, answered=False, unaccepted=unaccepted)


def test_silence_counts_from_its_first_check(vitals):
    miss(vitals, 100, 108, 116, 124)
    assert vitals.fault(100 + SILENT_SECONDS - 0.1) is None
    assert "for 30 s it has taken no connection" in vitals.fault(100 + SILENT_SECONDS)


def test_few_checks_far_apart_say_nothing(vitals):
    """As when this process was stopped, too."""
    miss(vitals, *range(SILENT_CHECKS - 1))
    assert vitals.fault(1e6) is None


def test_an_answer_begins_anew(vitals):
    miss(vitals, 1, 2, 3, 4)
    vitals.checked(5, answered=True, unaccepted=0)
    miss(vitals, 6, 7, 8, 9)
    assert vitals.fault(6 + SILENT_SECONDS - 1) is None
    assert vitals.fault(6 + SILENT_SECONDS) is not None


def test_a_server_that_accepts_connections_is_busy_and_in_the_end_mute(vitals):
    miss(vitals, *range(0, 56, 8), unaccepted=0)
    assert vitals.fault(MUTE_SECONDS - 0.1) is None
    assert "for 60 s it has taken connections on its HTTP port and answered none" in vitals.fault(MUTE_SECONDS)
    vitals.checked(MUTE_SECONDS, answered=True, unaccepted=0)
    assert vitals.fault(2 * MUTE_SECONDS) is None


SILENT = "no answer within 5 s"


def test_a_silent_router_is_told_with_the_reason(vitals):
    vitals.asked("other", 100, None)
    for began in (100, 102, 104):
        vitals.asked("router", began, SILENT)
    assert vitals.fault(100 + ROUTER_SECONDS - 0.1) is None
    said = "router 'router' hangs: for 20 s it has answered no liveness request (no answer within 5 s)"
    assert vitals.fault(100 + ROUTER_SECONDS) == said
    assert vitals.fault(100 + ROUTER_SECONDS, 30) is None
    vitals.asked("router", 120, None)
    assert vitals.fault(200) is None


def test_few_questions_to_a_router_say_nothing(vitals):
    for began in (100, 102):
        vitals.asked("router", began, SILENT)
    assert vitals.fault(1000) is None


def test_a_router_in_a_server_that_answers_nothing_is_not_blamed(vitals):
    for began in (100, 102, 104):
        vitals.asked("router", began, SILENT)
    miss(vitals, 101, unaccepted=0)
    assert vitals.fault(120) is None
    vitals.checked(121, answered=True, unaccepted=0)
    assert "router 'router' hangs" in vitals.fault(121)


def test_a_crash_that_was_announced_has_some_seconds_to_end(vitals):
    vitals.announced(frozenset({15}), 1)
    assert vitals.crash is None
    vitals.announced(frozenset({15, 6}), 2)
    vitals.announced(frozenset({15, 6}), 3)
    assert vitals.crash is signal.SIGABRT
    assert vitals.fault(2 + CRASH_SECONDS - 0.1) is None
    assert "crashed with signal SIGABRT and hangs" in vitals.fault(2 + CRASH_SECONDS)
