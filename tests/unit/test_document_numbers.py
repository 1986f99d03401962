# SPDX-License-Identifier: Apache-2.0
"""No quantity stands in README.md or docs/ that is neither measured nor known.

Measured ones are written by scripts/results.py, tables of the code by scripts/reference.py. Whatever else looks like a
quantity is one of ``FROM_CODE``, which must be what the code says, or of ``FROM_ELSEWHERE``, with where it comes from.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from priority_router import control, hooks
from priority_router.config import load_policy
from priority_router.core import executor_model, lead, ledger, service_times
from priority_router.core.executor_model import SHARED_IN_FLIGHT
from priority_router.core.scheduler import MAX_WRITTEN_OFF
from priority_router.core.shares import LEAST_CLAIM
from priority_router.core.values import MILLISECOND, SECOND
from priority_router.interface import BATCHES_PER_REQUEST
from priority_router.ops.bench import compare, compare_command, paired
from priority_router.ops.bench.client_rate import RATE_OF_A_GRPC_PROCESS
from priority_router.ops.demo import filetype, measurements
from priority_router.ops.loads import OVERLOAD
from priority_router.ops.probe.command import DEFAULT_SECONDS
from priority_router.ops.server.process import DRAIN_SECONDS, STOP_SECONDS
from priority_router.ops.server.restarts import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, STEADY_SECONDS
from priority_router.ops.server.serve import READY_SECONDS
from priority_router.ops.server.watch import MUTE_SECONDS, ROUTER_SECONDS, SILENT_SECONDS
from priority_router.ops.soak import checks, mixed, overload
from priority_router.ops.wrap.options import TEACHING_CLASSES
from priority_router.policy_checks import MAX_TENANT_BYTES
from priority_router.policy_fields import DEFAULT_BATCH_EFFICIENCY, DEFAULT_MAX_FILL_SLOWDOWN
from priority_router.runtime import cancels, housekeeping, policy_watch, watch
from support.modules import load_module

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "model_repository"
DOCUMENTS = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]

GENERATED = re.compile(r"<!-- (results|reference): .*?<!-- end of \1 -->", re.DOTALL)
CODE = re.compile(r"^ *```(?!console)\w+$.*?^ *```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ *\$ .*(?:(?<=\\)\n.*)*", re.MULTILINE)
FRACTION = r"(?:third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|twentieth|hundredth|thousandth)"
NUMBER = (
    r"(?:\d[\d,._]*(?:(?: to |-)\d[\d,.]*)?"
    rf"|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundred|thousand|half|an? {FRACTION})s?\b)"
    r"(?: of)?(?: an?)?"
)
UNIT = (
    r"(?:ns|us|µs|μs|ms|s|min|(?:micro|milli)?seconds?|minutes?|hours?|%|percent|times|fold|[KMG]i?B|bytes|cores?"
    r"|(?:\w+/s|\w+ (?:per|a) second)\b)"
)
QUANTITY = re.compile(rf"(?<![\w.,]){NUMBER}[ -]?{UNIT}(?!\w)|\b(?:an?|one) {FRACTION}\b")
"""In text whose white space is single blanks."""

WORDS = {2: "twice", 3: "three", 5: "five", 10: "ten", 12: "twelve", 0.1: "a tenth"}


def c_constant(name: str) -> int:
    """A number of the hooks library."""
    source = (ROOT / "backends" / "priority_router" / "hooks" / "priority_router_hooks.c").read_text()
    return int(re.findall(rf"\b{name} = (\d+)", source)[0])


def setting(model: str, name: str) -> int:
    """A number of a shipped config.pbtxt."""
    return int(re.findall(rf"\b{name}: (\d+)", (MODELS / model / "config.pbtxt").read_text())[0])


POLICY = load_policy(MODELS / "router" / "1" / "policy.toml").scheduling
WAITING = sum(one.max_queue_size for one in POLICY.classes)
ROW_BYTES = 4 * int(re.findall(r"TYPE_INT32 dims: \[ (\d+) \]", (MODELS / "router" / "config.pbtxt").read_text())[0])
MOST_ROWS = setting("router", "max_batch_size")
BLOCK = filetype.load_rule(MODELS).BLOCK_SIZE
EFFICIENCY = f"{DEFAULT_BATCH_EFFICIENCY:.0%}".replace("%", " %")
GIVEN_AWAY = f"{1 - DEFAULT_BATCH_EFFICIENCY:.0%}".replace("%", " %")
DEMANDED = measurements.ONLINE_SHARE + measurements.BACKGROUND_SHARE
SLICE = c_constant("DEFAULT_SLICE_MICROSECONDS")
IDLE_SLICES = c_constant("IDLE_SLICES")
IDLE_SLICED = f"{SLICE * (2**IDLE_SLICES - 1) / 1e6:.1f} s"
IDLE_WAIT = f"{c_constant('idle_wait') / 1e6:.0f} ms"
QUESTION_MS = 0.08
"""What Triton takes to tell whether a request is cancelled, as ``runtime.cancels`` reckons."""
CANCEL_NOTICED = (
    f"within about {QUESTION_MS / (cancels.SWEEP_SHARE / 2):g} ms for each waiting request, "
    f"plus {(cancels.MIN_WAIT + cancels.PERIOD) / MILLISECOND:g} ms"
)
OUTSTANDING = load_module("measure_hooks", ROOT / "scripts" / "measure_hooks.py").OUTSTANDING

FROM_CODE = {
    "README.md": [
        f"with {DEMANDED:g} times the capacity offered",
        CANCEL_NOTICED,
        f"up to {GIVEN_AWAY} of the rows per second is what `batch_efficiency` gives away",
        f"for up to {DRAIN_SECONDS:g} seconds; all is gone within {STOP_SECONDS:g}",
        f"short, for up to {GIVEN_AWAY} of the rows/s",
        *(f"{one.max_queue} may wait, {one.timeout_us / 1e3:g} ms at most" for one in TEACHING_CLASSES),
        f"slow it down by more than {WORDS[DEFAULT_MAX_FILL_SLOWDOWN]}",
        f"as it must be for {EFFICIENCY} of the best rows/s",
    ],
    "docs/bench.md": [
        f"a process is taken to send {RATE_OF_A_GRPC_PROCESS:g} requests/s",
        f"so is less than {100 * paired.LEAST_SHARE:g} %",
        f"moved by {100 * compare_command.TOLD_SHARE:g} % or more",
        f"differ by up to {100 * compare.NEAR:g} %",
    ],
    "docs/clients.md": [
        CANCEL_NOTICED,
        f"where one question takes it {QUESTION_MS * 1e3:g} us",
        f"has waited over {cancels.MIN_WAIT / MILLISECOND:g} ms",
        f"These questions take at most {100 * cancels.SWEEP_SHARE:g} % of a core",
        f"within another {100 * cancels.FULL_CLASS_SHARE:g} %",
        f"a text of at most {MAX_TENANT_BYTES} bytes",
    ],
    "docs/design.md": [
        f"(p90 of the last {lead.SAMPLES})",
        f"at least {lead.SHORTEST / MILLISECOND:g} ms",
        f"the median of the last {service_times.SAMPLES}",
        f"an LRU of {service_times.KEYS} keys",
        f"sent {WORDS[service_times.TRIALS]} times early on",
        f"once more every {service_times.TRIAL_AGAIN} dispatches",
        f"at least {service_times.DOUBTFUL[0] / service_times.DOUBTFUL[1]:g} times as long as at best, "
        f"one is tried every {service_times.TRIAL_AGAIN} dispatches",
        f"At {MAX_WRITTEN_OFF} written off",
        f"up to {SHARED_IN_FLIGHT} I dispatches",
    ],
    "docs/ensemble.md": [
        f"the last {BLOCK // 1024} KiB matter: of a file over {2 * BLOCK // 1024} KiB",
        f"at most {setting('file_type_label', 'max_queue_size')} waiting requests",
    ],
    "docs/existing-server.md": [
        f"`thread-pool-size`: {control.CALLS_PER_INSTANCE} for each instance of the executor and "
        f"{control.OTHER_THREADS} more, at least {control.TRITON_DEFAULT_POOL}.",
    ],
    "docs/gpu.md": [
        f"the fewest rows within {EFFICIENCY} of the best rows/s",
        f"only as large as {EFFICIENCY} of the best rows/s need",
        f"medians of the last {service_times.SAMPLES}",
    ],
    "docs/hooks.md": [
        f"into slices of {SLICE / 1e3:g} ms",
        f"waits {IDLE_WAIT} for a request",
        f"the next arrival, or {IDLE_WAIT}.",
        f"double from {SLICE / 1e3:g} ms on: after {WORDS[IDLE_SLICES]} in vain ({IDLE_SLICED})",
        f"{IDLE_WAIT} to within one",
        f"in {hooks._LAYOUT.size} bytes of shared memory",
        f"a closed loop of {OUTSTANDING} requests",
        f"takes {OVERLOAD.executor.batch_us / 1e3:g} ms per batch of {OVERLOAD.executor.max_batch_size}",
        f"at most {WORDS[IDLE_SLICES]} slices within {IDLE_SLICED}",
    ],
    "docs/metrics.md": [
        f"at most {WORDS[SECOND // housekeeping.FLUSH_PERIOD]} a second, so a value may be half a second old",
        f"over at least {watch.LEAST_SPAN / SECOND:g} s and {watch.LEAST_COMPLETIONS} executor calls",
        f"With {MAX_WRITTEN_OFF} of them the router refuses everything",
    ],
    "docs/operations.md": [
        f"`--ready-timeout` ({READY_SECONDS:g} s)",
        f"within its `--timeout` ({DEFAULT_SECONDS:g} s)",
        f"for `--router-timeout` ({ROUTER_SECONDS:g} s)",
        f"takes no connection for {SILENT_SECONDS:g} s, or answers none for {MUTE_SECONDS:g} s",
        f"a start is {FIRST_PAUSE_SECONDS:g} s, twice as long each time up to {LONGEST_PAUSE_SECONDS:g} s",
        f"followed by {WORDS[STEADY_SECONDS / 60]} minutes of service",
        f"served for up to {DRAIN_SECONDS:g} s",
        f"gone within {STOP_SECONDS:g} s",
        f"A backlog that takes longer than {DRAIN_SECONDS:g} s",
        f"a row has {ROW_BYTES // 1024} KiB",
        f"{WAITING:,} requests of one row are {WAITING * ROW_BYTES / 2**20:.0f} MiB",
        f"{WAITING * ROW_BYTES * MOST_ROWS / 2**30:.0f} GiB if each had the {MOST_ROWS} rows",
    ],
    "docs/policies.md": [
        f"the contents of the file, read {WORDS[1 / policy_watch.PERIOD_SECONDS]} a second",
        f"before {WORDS[executor_model.ENOUGH_SAMPLES]} executions were learned from",
        f"after {service_times.TRIAL_AGAIN} dispatches of its signature",
        f"at most one dispatch in {service_times.TRIAL_AGAIN} exceeds",
        f"for each tenant with work up to {ledger.MOST_TENANTS}",
        f"the rest share {ledger.SHARED_ACCOUNTS} by a hash",
        f"without work {ledger.MOST_DEBTS} charges are remembered",
        f"it at most {ledger.LONGEST_LEAD // SECOND} s, or its last dispatch",
        *(["counts at least half as its own", "since at least half of it"] if LEAST_CLAIM == 1 / 2 else []),
    ],
    "docs/policy.md": [f"has more than {MAX_TENANT_BYTES} bytes is refused"],
    "docs/reliability.md": [
        f"paused for {FIRST_PAUSE_SECONDS:g} s",
        f"`--router-timeout` ({ROUTER_SECONDS:g} s)",
        f"{SILENT_SECONDS:g} s and {MUTE_SECONDS:g} s, then",
        f"the drain, {DRAIN_SECONDS:g} s at most; all is gone within {STOP_SECONDS:g} s",
        f"{sum(mixed.IN_FLIGHT)} requests are in flight all the time, {mixed.IN_FLIGHT[0]} over HTTP and "
        f"{mixed.IN_FLIGHT[1]} over gRPC",
        f"rows/s must be at least {checks.KEPT:g} times, latencies of the classes at most {checks.SLOWER:g} times",
        f"at most {WORDS[checks.GROWN]} or {checks.GROWN_MIB:g} MiB more, threads, descriptors and sockets at most "
        f"{checks.MORE:g} more",
        "with {online} online and {background} background requests that may wait".format(**overload.LIMITS),
        f"background at {overload.TIMES:g} times the capacity beside online at half of it",
        f"the online p99 be at most {overload.SLOWER:g} times that under the first load; then both at "
        f"{overload.TIMES:g} times",
        f"after {overload.longest_batches():g} batch times at most",
    ],
    "docs/troubleshooting.md": [
        f"with {MAX_WRITTEN_OFF} such calls the router refuses everything",
        f"Up to {GIVEN_AWAY} by `batch_efficiency`",
    ],
    "docs/wrap.md": [
        *(f"(level {one.level}, {one.max_queue} waiting, {one.timeout_us / 1e3:g} ms" for one in TEACHING_CLASSES),
        f"`max_batch_size` is {BATCHES_PER_REQUEST} times the executor's",
    ],
}

TRITONS = "how long Triton waits by its own source"
EXAMPLE = "an example to calculate with"
DEFAULT = "a default of Triton or of container engines"
PARTS = "a count of parts, not a measurement"
FROM_ELSEWHERE = {
    "README.md": {
        "the next arrival does, or half a second": TRITONS,
        "notice a free instance at once, not after half a second": TRITONS,
    },
    "docs/concepts.md": {"The two times in a reply": PARTS},
    "docs/design.md": {"expired requests every 500 ms": TRITONS},
    "docs/ensemble.md": {"may sleep for half a second": TRITONS},
    "docs/gpu.md": {
        "the server's pool, 256 MB unless": DEFAULT,
        "has 64 MB by default": DEFAULT,
    },
    "docs/hooks.md": {
        "the next arrival wakes it, or 500 ms": TRITONS,
        "that can last 500 ms": TRITONS,
    },
    "docs/metrics.md": {"at thousands of requests per second": EXAMPLE},
    "docs/operations.md": {
        "allow 20 s before a kill": "advice, the time to stop and some more",
        "With C = 100 rows/s, requests of one row, and online at most 20 rows/s: online with a timeout of 2 s": EXAMPLE,
        "10,000 / 80 = 125 s": EXAMPLE,
        "is 64 MB in a container": DEFAULT,
        "at thousands of requests per second": EXAMPLE,
    },
    "docs/troubleshooting.md": {
        "looks every 500 ms at most": TRITONS,
        "up to half a second at a time": TRITONS,
    },
    "docs/wrap.md": {"such as `50ms`": EXAMPLE, "plus `CLASS` and the two times": PARTS},
}
"""Phrase to where its number comes from."""


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def sentences():
    """The numbers within sentences that scripts/results.py writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        patch.delitem(sys.modules, "result_sentences", raising=False)
        return load_module("result_sentences", ROOT / "scripts" / "result_sentences.py")


def unexplained(sentences: Any, document: str, text: str) -> list[str]:
    """Quantities that nothing stands behind, each with what is around it."""
    text = flat(COMMAND.sub("", CODE.sub("", GENERATED.sub("", text))))
    known = [*FROM_CODE.get(document, ()), *FROM_ELSEWHERE.get(document, ())]
    explained = [found.span() for phrase in known for found in re.finditer(re.escape(phrase), text)]
    explained += sentences.spans(document, text)
    return [
        text[max(0, found.start() - 40) : found.end() + 20]
        for found in QUANTITY.finditer(text)
        if not any(begin <= found.start() and found.end() <= end for begin, end in explained)
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_quantity_is_measured_or_known(sentences, document):
    assert unexplained(sentences, document, (ROOT / document).read_text()) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_figures_are_those_of_the_code(document):
    text = flat((ROOT / document).read_text())
    assert [figure for figure in FROM_CODE.get(document, ()) if figure not in text] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_nothing_is_excused_that_is_gone(document):
    text = flat((ROOT / document).read_text())
    assert [phrase for phrase in FROM_ELSEWHERE.get(document, {}) if phrase not in text] == []


@pytest.mark.parametrize(
    "written",
    [
        "It costs 370 µs of CPU.",
        "45 % of it is\nthe kernel.",
        "It serves 3,207 requests/s here.",
        "It needs an eighth of a core.",
        "The last after 30 to 71 ms.",
        "It is 2.5 times as fast.",
        "It took half a minute.",
        "About 20 us each, at 5000 requests per second.",
        "| router | 12 ms |",
        "```console\n$ scripts/demo\np50 24 ms\n```",
    ],
)
def test_a_measured_number_written_by_hand_is_found(sentences, written):
    text = (ROOT / "docs" / "design.md").read_text()
    assert unexplained(sentences, "docs/design.md", f"{text}\n{written}\n") != []
