# SPDX-License-Identifier: Apache-2.0
"""Numbers on their way to a metrics page that does not always take them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
from priority_router.runtime.export import Exporter
from priority_router.runtime.metrics import Family, Sample
from support.fake_triton import Metric, Triton

SERVED = Family("priority_router_served_total", "Requests served", counter=True)
WAITING = Family("priority_router_waiting", "Requests that wait", counter=False)


def refusing(metric: Metric, times: int) -> Callable[[float], None]:
    """An `increment` that fails so many times before it works again."""
    left = [times]

    def increment(change: float) -> None:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("the server is busy")
        Metric.increment(metric, change)

    return increment


@pytest.mark.parametrize("refused", [SERVED, WAITING])
def test_what_a_failed_flush_did_not_send_comes_with_the_next(refused: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton()
    exporter = Exporter(triton, "router")
    exporter.flush([Sample(SERVED, (), 1), Sample(WAITING, (), 4)])
    metric = triton.page[f'{refused.name}{{model="router"}}']
    monkeypatch.setattr(metric, "increment", refusing(metric, 1))
    with pytest.raises(RuntimeError):
        exporter.flush([Sample(SERVED, (), 6), Sample(WAITING, (), 3)])
    exporter.flush([Sample(SERVED, (), 8), Sample(WAITING, (), 2)])
    assert triton.page.read('priority_router_served_total{model="router"}') == 8
    assert triton.page.read('priority_router_waiting{model="router"}') == 2


def test_closing_takes_back_every_gauge_that_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    triton = Triton()
    exporter = Exporter(triton, "router")
    exporter.flush([Sample(WAITING, (("class", label),), 3) for label in ("a", "b", "c")])
    gauges = [triton.page[f'{WAITING.name}{{class="{label}",model="router"}}'] for label in ("a", "b", "c")]
    monkeypatch.setattr(gauges[1], "increment", refusing(gauges[1], 1))
    with pytest.raises(RuntimeError, match="the server is busy"):
        exporter.close()
    assert [gauge.value for gauge in gauges] == [0, 3, 0]
    exporter.close()


def test_closing_leaves_the_families_to_a_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting one would delete the metrics of the router that comes after, on the same names."""
    triton = Triton()
    made: list[weakref.ref[object]] = []
    family = triton.MetricFamily

    def noted(**options: str) -> object:
        one = family(**options)
        made.append(weakref.ref(one))
        return one

    noted.COUNTER, noted.GAUGE = family.COUNTER, family.GAUGE  # type: ignore[attr-defined]
    monkeypatch.setattr(triton, "MetricFamily", noted)
    exporter = Exporter(triton, "router")
    exporter.flush([Sample(SERVED, (), 1), Sample(WAITING, (), 4)])
    exporter.close()
    del exporter
    gc.collect()
    assert len(made) == 2
    assert all(one() is not None for one in made)


def test_a_gauge_whose_class_is_gone_goes_back_and_a_counter_stays() -> None:
    triton = Triton()
    exporter = Exporter(triton, "router")
    exporter.flush([Sample(SERVED, (), 1), Sample(WAITING, (), 4)])
    exporter.flush([])
    assert {name: metric.value for name, metric in triton.page.items()} == {
        'priority_router_served_total{model="router"}': 1,
        'priority_router_waiting{model="router"}': 0,
    }
    exporter.flush([Sample(WAITING, (), 2)])
    assert triton.page['priority_router_waiting{model="router"}'].value == 2
