# SPDX-License-Identifier: Apache-2.0
"""What a run says, on a terminal and into a pipe."""

from __future__ import annotations

import io

from priority_router.ops.demo.progress import Progress


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def screen(written):
    """What stands on a terminal: a carriage return writes over the line."""
    lines = []
    for line in written.split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown.rstrip())
    return lines


def run(stream, clock):
    progress = Progress(stream, clock)
    progress.step("levels: stock Triton", 28)
    clock.now += 7
    progress.draw()
    middle = stream.getvalue()
    clock.now += 21
    progress.draw()
    progress.say("done")
    return middle


def test_on_a_terminal_the_seconds_pass_below_the_line():
    stream = Terminal()
    middle = run(stream, Clock())
    assert screen(middle) == [
        "[   0 s] levels: stock Triton",
        "         #######....................... 7 of about 28 s",
    ]
    assert screen(stream.getvalue()) == ["[   0 s] levels: stock Triton", "[  28 s] done", ""]


def test_the_thread_draws_only_on_a_terminal_that_can(monkeypatch):
    class Ended:
        def __init__(self):
            self.asked = 0

        def wait(self, seconds):
            self.asked += 1
            return self.asked > 3

        def set(self):
            pass

    def drawn(stream):
        with Progress(stream, Clock()) as progress:
            progress.step("levels: stock Triton", 28)
        return stream.getvalue()

    monkeypatch.setattr("priority_router.ops.terminal_bar.threading.Event", Ended)
    monkeypatch.setenv("TERM", "xterm")
    plain = "[   0 s] levels: stock Triton\n"
    assert drawn(io.StringIO()) == plain
    monkeypatch.setenv("TERM", "dumb")
    assert drawn(Terminal()) == plain


def test_a_step_longer_than_expected_fills_the_bar():
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, clock)
    progress.step("slow", 10)
    clock.now += 25
    progress.draw()
    assert screen(stream.getvalue())[-1] == f"         {'#' * 30} 25 of about 10 s"


def test_leaving_takes_the_bar_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Terminal(), Clock()
    with Progress(stream, clock) as progress:
        progress.step("a", 10)
        progress.draw()
        assert "of about" in screen(stream.getvalue())[-1]
    assert screen(stream.getvalue()) == ["[   0 s] a", ""]
