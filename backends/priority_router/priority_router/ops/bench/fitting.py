# SPDX-License-Identifier: Apache-2.0
"""A scenario on models of one's own: what they are, what they can do, and loads that ask the same share of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from priority_router.errors import SetupError
from priority_router.ops.bench import capacity, model_inputs, own_model, own_repository, remote
from priority_router.ops.bench.arms import ARMS, ROUTER
from priority_router.ops.bench.own_model import Facts
from priority_router.ops.bench.own_repository import Copied
from priority_router.ops.bench.remote import Remote
from priority_router.ops.bench.scenarios import Scenario
from priority_router.ops.bench.traffic import Payloads
from priority_router.ops.bench.venue import Models, Venue
from priority_router.ops.loads import ExecutorShape


def fitted(scenario: Scenario, shipped: bool, models: Models) -> tuple[Scenario, Venue]:
    """A scenario for models of one's own, and where it runs.

    Args:
        scenario: as it was chosen.
        shipped: it is one of the shipped scenarios, whose loads are shares of what its executor can do; those of a plan
            are rates and stay what they are.
        models: which models.

    Raises:
        SetupError: the models cannot be used.
        LoadError: their capacity could not be measured.
    """
    if models.url:
        offer, payloads = remote.look(
            models.url, models.router or ROUTER, models.executor, lambda known: _payloads(models, known)
        )
        scenario = own_model.renamed(scenario, models.classes) if models.classes else scenario
        venue = Remote(models.url, offer, scenario, payloads)
        made = _of_capacity(scenario, shipped, models, offer.known, venue, payloads)
        return made, replace(venue, scenario=made)
    own = own_repository.read(Path(models.router))
    payloads = _payloads(models, own.facts)
    classes = models.classes or own.classes
    if shipped:
        scenario = own_model.renamed(scenario, classes)
    elif unknown := sorted(set(scenario.levels) - set(own.classes)):
        raise SetupError(f"{scenario.name}: {models.router} has no class {unknown[0]}; it has {', '.join(own.classes)}")
    copied = Copied(own, scenario, payloads, models.limits)
    made = _of_capacity(scenario, shipped, models, own.facts, copied, payloads)
    return made, replace(copied, scenario=made)


def _payloads(models: Models, known: Facts) -> Payloads:
    return model_inputs.chosen(known.inputs, known.batched, models.input_data, models.seed)


def _of_capacity(
    scenario: Scenario, shipped: bool, models: Models, known: Facts, venue: Venue, payloads: Payloads
) -> Scenario:
    """The scenario with the executor that there is; a shipped one with loads that are shares of its capacity."""
    if not shipped:
        return replace(scenario, executor=ExecutorShape(0, 0, known.max_batch_size, known.instances))
    rows_per_s = models.capacity
    if rows_per_s is None:
        arms = [name for name in (*scenario.arms, *ARMS) if name not in venue.refused([name])]
        if not arms:
            raise SetupError(f"no arm can be run: {'; '.join(venue.refused(scenario.arms).values())}")
        seconds = capacity.WARMUP_SECONDS + capacity.SECONDS
        models.say(f"capacity of {known.executor}: {seconds:g} s of as much as it takes, by {arms[0]}")
        with venue.stage(ARMS[arms[0]]) as stage:
            lowest = max(scenario.levels, key=lambda name: scenario.levels[name])
            rows_per_s = capacity.measured(stage, known, payloads, lowest)
        models.say(f"capacity: {rows_per_s:.3g} rows/s")
    return own_model.fitted(scenario, known, rows_per_s)
