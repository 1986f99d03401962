# SPDX-License-Identifier: Apache-2.0
"""Counting, and what reaches the metrics page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from priority_router.core.admission import PredictedWaits
from priority_router.core.values import SECOND
from priority_router.errors import Outcome
from priority_router.hooks import HookCounts
from priority_router.runtime import metrics
from priority_router.runtime.driver import Observed
from priority_router.runtime.export import Exporter
from priority_router.runtime.hand_over import Counted, HandOver
from priority_router.runtime.metrics import NO_CLASS, Family, Lateness, Readings, Tally, samples
from support.fake_triton import Triton

MS = 1_000_000
CLASSES = ["online", "bulk"]


def readings(*tallies: Tally, **changes: Any) -> Readings:
    observed: dict[str, Any] = {
        "waiting": dict.fromkeys(CLASSES, 0),
        "rows_in_flight": 0,
        "written_off": 0,
        "late_answers": 0,
        "worst_blocking": dict.fromkeys(CLASSES, 0),
        "hand_over": Counted(),
        "predicted_waits": {},
    }
    observed.update({key: changes.pop(key) for key in list(changes) if key in observed})
    return Readings(tallies or (Tally(CLASSES),), Observed(**observed), changes.pop("counters", {}), **changes)


class Exported:
    def __init__(self) -> None:
        self.triton = Triton()
        self.exporter = Exporter(self.triton, "router")

    def flush(self, given: Readings) -> None:
        self.exporter.flush(samples(given))

    def read(self, name: str, **labels: str) -> float:
        text = ",".join(f'{key}="{value}"' for key, value in sorted({"model": "router", **labels}.items()))
        return self.triton.page.read(f"priority_router_{name}{{{text}}}")


@pytest.fixture
def exported() -> Exported:
    return Exported()


def test_every_outcome_of_every_class_is_there_from_the_start(exported: Exported) -> None:
    exported.flush(readings())
    for outcome in Outcome:
        for label in (*CLASSES, NO_CLASS):
            assert exported.read("requests_total", **{"class": label, "outcome": outcome.value}) == 0


def test_tallies_of_all_threads_are_added(exported: Exported) -> None:
    one, other = Tally(CLASSES), Tally(CLASSES)
    one.count("online", Outcome.SUCCESS, 3 * MS, 40 * MS)
    other.count("online", Outcome.SUCCESS, 7 * MS, 60 * MS)
    other.count("bulk", Outcome.QUEUE_FULL, None, None)
    exported.flush(readings(one, other))
    assert exported.read("requests_total", **{"class": "online", "outcome": "success"}) == 2
    assert exported.read("requests_total", **{"class": "bulk", "outcome": "queue_full"}) == 1
    assert exported.read("queue_seconds_sum", **{"class": "online"}) == pytest.approx(0.010)
    assert exported.read("executor_seconds_count", **{"class": "online"}) == 2
    assert exported.read("queue_seconds_count", **{"class": "bulk"}) == 0
    assert (one.answered, other.answered) == (1, 2)


def test_hand_overs_have_buckets_without_a_class(exported: Exported) -> None:
    counted = HandOver()
    for microseconds in (90, 450, 480, 200_000):
        counted.add(microseconds * 1000)
    exported.flush(readings(hand_over=counted.read()))
    buckets = {le: exported.read("hand_over_seconds_bucket", le=le) for le in ("0.0001", "0.0004", "0.0005", "+Inf")}
    assert buckets == {"0.0001": 1, "0.0004": 1, "0.0005": 3, "+Inf": 4}
    assert exported.read("hand_over_seconds_count") == 4
    assert exported.read("hand_over_seconds_sum") == pytest.approx(0.20102)


def test_predicted_and_actual_waits_are_there_for_classes_that_are_refused_early(exported: Exported) -> None:
    exported.flush(readings(predicted_waits={"bulk": PredictedWaits(2, 300 * MS, 250 * MS)}))
    names = ("predicted_wait_seconds_sum", "predicted_wait_seconds_count", "actual_wait_seconds_sum")
    assert [exported.read(name, **{"class": "bulk"}) for name in names] == pytest.approx([0.3, 2, 0.25])
    assert "predicted_wait_seconds" not in str(list(samples(readings())))


def test_buckets_are_cumulative_and_closed_above(exported: Exported) -> None:
    tally = Tally(CLASSES)
    for milliseconds in (1, 1.5, 2.5, 2.6, 70_000):
        tally.count("online", Outcome.SUCCESS, int(milliseconds * MS), None)
    exported.flush(readings(tally))

    def bucket(le: str) -> float:
        return exported.read("queue_seconds_bucket", **{"class": "online", "le": le})

    assert [bucket("0.001"), bucket("0.0025"), bucket("0.005"), bucket("60"), bucket("+Inf")] == [1, 3, 4, 4, 5]
    assert exported.read("queue_seconds_count", **{"class": "online"}) == 5


def test_a_reader_in_the_middle_of_a_flush_never_sees_a_bucket_above_a_wider_one() -> None:
    tally = Tally(CLASSES)
    seen: dict[str, float] = {}
    for round_number in range(3):
        for milliseconds in (0.5, 3, 300):
            tally.count("online", Outcome.SUCCESS, int(milliseconds * MS), None)
        for family, labels, value in samples(readings(tally)):
            if family is not metrics.QUEUE_BUCKET or labels[0] != ("class", "online"):
                continue
            seen[labels[1][1]] = value
            ordered = [seen[le] for le in sorted(seen, key=lambda le: float(le.replace("+Inf", "inf")))]
            assert ordered == sorted(ordered), round_number


def test_only_what_changed_is_sent(exported: Exported) -> None:
    tally = Tally(CLASSES)
    exported.flush(readings(tally))
    assert sum(metric.calls for metric in exported.triton.page.values()) == 0
    tally.count("online", Outcome.TIMEOUT, None, None)
    exported.flush(readings(tally))
    exported.flush(readings(tally))
    assert sum(metric.calls for metric in exported.triton.page.values()) == 1


def test_gauges_go_down_and_counters_do_not(exported: Exported) -> None:
    exported.flush(readings(waiting={"online": 5, "bulk": 0}, late_answers=3))
    exported.flush(readings(waiting={"online": 2, "bulk": 0}, late_answers=1))
    assert exported.read("queue_size", **{"class": "online"}) == 2
    assert exported.read("late_answers_total") == 3


def test_a_router_that_leaves_takes_its_gauges_along_but_not_its_counts(exported: Exported) -> None:
    tally = Tally(CLASSES)
    tally.count("online", Outcome.SUCCESS, None, None)
    exported.flush(readings(tally, rows_in_flight=7))
    exported.exporter.close()
    assert exported.read("in_flight_rows") == 0
    assert exported.read("requests_total", **{"class": "online", "outcome": "success"}) == 1


def test_hooks_and_plain_counters_are_exported(exported: Exported) -> None:
    exported.flush(
        readings(
            counters={metrics.GUARD_ACTIVE: True, metrics.DISPATCHES: 4},
            hooks=HookCounts(1, 2, 3, 4),
            hook_working={"dispatch": False, "priority": True},
            worst_blocking={"online": 50 * MS, "bulk": 0},
        )
    )
    assert exported.read("guard_active") == 1
    assert exported.read("dispatches_total") == 4
    assert exported.read("hook_priorities_set_total") == 1
    assert exported.read("hook_waits_cut_total") == 2
    assert exported.read("hook_calls_refused_total") == 3
    assert exported.read("hook_idle_waits_cut_total") == 4
    assert exported.read("hook_working", hook="dispatch") == 0
    assert exported.read("hook_working", hook="priority") == 1
    assert exported.read("worst_blocking_seconds", **{"class": "online"}) == pytest.approx(0.05)


def test_names_follow_prometheus() -> None:
    for family in vars(metrics).values():
        if not isinstance(family, Family):
            continue
        assert re.fullmatch(r"priority_router_[a-z_]+", family.name)
        of_histogram = family.name.endswith(("_bucket", "_sum", "_count"))
        assert family.counter == (family.name.endswith("_total") or of_histogram), family.name
        assert family.help


def test_lateness_keeps_the_worst_of_the_last_one_to_two_minutes() -> None:
    lateness = Lateness()
    for late in (3, 9, 1):
        lateness.add(late, 0)
    assert (lateness.count, lateness.total, lateness.worst(59 * SECOND)) == (3, 13, 9)
    lateness.add(2, 60 * SECOND)
    assert lateness.worst(119 * SECOND) == 9
    assert lateness.worst(120 * SECOND) == 2
    assert lateness.worst(180 * SECOND) == 0
    assert lateness.total == 15
