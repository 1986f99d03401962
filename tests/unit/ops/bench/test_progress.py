# SPDX-License-Identifier: Apache-2.0
"""What a run says while it runs."""

from __future__ import annotations

import io

import pytest
from priority_router.ops.bench.progress import Progress, clock_text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def now():
    return [100.0]


def test_the_time_left_is_what_was_expected_until_a_step_has_ended(now):
    stream = io.StringIO()
    with Progress(stream, steps=4, seconds=30.0, clock=lambda: now[0]) as progress:
        progress.say("overload: about 2:00 min")
        progress.step("round 1 of 2: flat")
        now[0] += 10
        assert progress.left() == pytest.approx(20 + 3 * 30)
        now[0] += 50
        # It takes longer than expected; those to come are still taken for what they were.
        assert progress.left() == pytest.approx(3 * 30)
        progress.step("round 1 of 2: router")
        assert progress.left() == pytest.approx(3 * 60)
    assert stream.getvalue().splitlines() == [
        "bench: overload: about 2:00 min",
        "bench: round 1 of 2: flat (2:00 left)",
        "bench: round 1 of 2: router (3:00 left)",
    ]


def test_a_terminal_has_a_bar_which_every_line_replaces(now, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    progress = Progress(stream, steps=2, seconds=10.0, clock=lambda: now[0])
    progress.step("one")
    now[0] += 5
    progress.draw()
    assert stream.getvalue().endswith("\r       ########......................  25%, 0:15 left")
    progress.step("two")
    bar, _, line = stream.getvalue().rpartition("\r")
    assert bar.endswith(" " * 50)
    assert line == "bench: two (0:05 left)\n"


def test_nothing_is_drawn_before_the_first_step(now):
    stream = Terminal()
    Progress(stream, steps=2, seconds=10.0, clock=lambda: now[0]).draw()
    assert stream.getvalue() == ""


def test_times():
    assert [clock_text(seconds) for seconds in (-1, 0, 59.6, 125)] == ["0:00", "0:00", "1:00", "2:05"]
