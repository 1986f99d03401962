# SPDX-License-Identifier: Apache-2.0
"""`sweep` on executors whose times are known."""

import re

import pytest
from priority_router.ops import cli
from priority_router.ops import sweep as sweep_module
from support.models import Executor, X, write_executor, write_pair

BATCH_SECONDS = 0.02
BRIEF = ["--seconds", "0.6"]


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("sweep") / "repository"
    repository.mkdir()
    write_pair(repository, executor=Executor("guarded", inputs=(X,)))
    write_executor(repository, Executor(batch_seconds=BATCH_SECONDS, max_batch_size=8, inputs=(X,)))
    write_executor(repository, Executor("two", batch_seconds=BATCH_SECONDS, instances=2, inputs=(X,)))
    write_executor(repository, Executor("alone", max_batch_size=0, inputs=(X,), priority_levels=0))
    return start_server(repository)


def sweep(server, capsys, *words):
    status = cli.main(["sweep", "--url", f"http://{server.http}", *BRIEF, *words])
    return status, capsys.readouterr()


def measured(server, capsys, *words):
    """What a sweep prints; a machine that stalls for the whole of a measurement has none, and gets another chance."""
    for _ in range(4):
        status, said = sweep(server, capsys, *words)
        if "measure for longer" not in said.err:
            break
    assert status == 0, said.err
    return said


def rows(said):
    found = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+)$", said.out, re.MULTILINE)
    return {int(count): (float(rate), float(ms)) for count, rate, ms in found}


def test_every_row_count_is_measured_in_batches_of_its_own(server, capsys):
    said = measured(server, capsys)
    table = rows(said)
    assert list(table) == [1, 2, 4, 8]
    for count, (rate, ms) in table.items():
        # Two requests joined would give twice as much; a busy machine gives less.
        assert 0 < rate / (count / BATCH_SECONDS) < 1.5
        assert ms == pytest.approx(1e3 * count / rate, rel=0.1 / rate, abs=0.01)  # as both are rounded
    # Of the rates as they are printed; what is best is in the unit tests.
    best = sweep_module.smallest_efficient({count: rate for count, (rate, _) in table.items()}, 0.95)
    assert f"fewest rows within 95% of the best rows/s: {best}" in said.out


def test_several_instances_are_kept_busy(server, capsys):
    def are_kept_busy():
        one, both = (
            rows(measured(server, capsys, "--model", model, "--rows", "4", "--instances", instances))[4][0]
            for model, instances in (("executor", "1"), ("two", "2"))
        )
        return both > 1.1 * one

    # Where the machine holds up one of the two measurements, they do not compare.
    assert any(are_kept_busy() for _ in range(4)), "no more than one instance gives"


def test_a_model_without_a_batch_axis(server, capsys):
    assert list(rows(measured(server, capsys, "--model", "alone"))) == [1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--model", "guarded"], "call model 'router' instead"),
        (["--model", "nobody"], "unknown model"),
        (["--rows", "16"], "takes 8 rows at most"),
        (["--url", "http://127.0.0.1:9"], "refused"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_model_that_cannot_be_asked_is_one_line(server, capsys, words, reason):
    status, said = sweep(server, capsys, *words)
    assert status == 1
    assert reason in said.err
    assert said.err.startswith("priority-router sweep: error: ")
