# SPDX-License-Identifier: Apache-2.0
"""Tensors that find no room in the server's shared memory: callers are told, and what fits is served as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import hostile
from support.clients import Call, client
from support.fleet import eventually
from support.models import TAG, ErrorReply, Executor, Router, Tensor, write_pair
from support.serving import in_small_memory, region_files, served, serving

MIB = 1 << 20
GROWN_BLOCKS = 3 * MIB // 512
"""A region grows by a MiB when more requests are on their way at once than ever before; a leak would take many more."""

ANY_X = Tensor("X", "TYPE_FP32", (-1,))


def sized(mebibytes: int) -> Call:
    return Call(tag=1, inputs={"X": np.zeros((1, mebibytes * MIB // 4), np.float32)})


def test_inputs_that_are_too_large_are_refused_with_what_they_need_and_what_is_free(tmp_path: Path) -> None:
    write_pair(tmp_path / "repository", Router(), Executor(inputs=(ANY_X, TAG)))
    words = ("--model-repository", tmp_path / "repository")
    with serving(tmp_path, *words, program=in_small_memory(64)) as command:
        _, grpc, _ = command.ready()
        with client(grpc) as sender:
            for _ in range(3):
                assert sender.infer("router", sized(4)).ok
                within = sender.infer("router", sized(16))
                assert within.code == "UNAVAILABLE", within
                said = "too small: a call of 'executor' with inputs of 16.0 MiB found no room, of 64.0 MiB in /dev/shm"
                assert said in within.message
                assert "MiB are free" in within.message
                # These do not even reach the router: Triton's own words.
                for size in (40, 64):
                    beyond = sender.infer("router", sized(size))
                    assert (beyond.code, "shared memory pool" in beyond.message) == ("INTERNAL", True), beyond
        assert said in command.log
        assert "error: " not in "".join(line for line in command.log.splitlines() if "priority-router serve" in line)
        command.order()
        assert command.ended() == 0


def test_it_stays_as_large_as_it_was_whatever_becomes_of_requests(tmp_path: Path) -> None:
    """Served, refused by the router and by the executor, timed out and turned away, thousands of each kind."""
    limits = ({"name": "interactive", "level": 1, "max_queue_size": 8}, {"name": "bulk", "level": 2})
    executor = Executor(error_tags={13: ErrorReply("no", "INVALID_ARG")})
    with served(tmp_path, (Router(classes=limits), executor)) as it:
        owner = it.command.process.pid

        def used() -> int:
            return sum(Path("/dev/shm", name).stat().st_blocks for name in region_files(owner))

        def call(number: int) -> Call:
            kinds: tuple[dict[str, Any], ...] = (
                {"traffic_class": "interactive"},
                {"traffic_class": "gold"},
                {"rows": 1 + number % 40},
                {"timeout_us": 1},
                {},
            )
            return Call(tag=number % 26, **kinds[number % len(kinds)])

        def send(count: int) -> set[str]:
            replies = [it.sender.send("router", call(number)) for number in range(count)]
            return {reply.result().code for reply in replies}

        assert send(1500) == {"OK", "INVALID_ARGUMENT", "UNAVAILABLE", "INTERNAL"}
        before = used()
        assert before > 0
        send(5000)
        assert used() <= before + GROWN_BLOCKS


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_caller_whose_reply_finds_no_room_is_told(tmp_path: Path, protocol: str) -> None:
    """16 rows in 4 parts: the parts come back, and the whole of them does not fit beside them."""
    hostile.write_large_answers(tmp_path / "repository", 4)
    words = ("--model-repository", tmp_path / "repository")
    with serving(tmp_path, *words, program=in_small_memory(100)) as command:
        http, grpc, _ = command.ready()
        warning = (
            "router 'router' accepts requests of 64 rows, for which shared memory is too small: one needs 256.0 MiB"
        )
        assert f"priority-router serve: warning: {warning} at least, /dev/shm has " in command.log

        def ask(rows: int) -> Any:
            with client({"http": http, "grpc": grpc}[protocol], protocol) as sender:
                return sender.infer("router", Call(rows=rows, inputs={"X": np.zeros((rows, 4), np.float32)}))

        for _ in range(2):
            assert ask(1).ok
            reply = ask(16)
            assert (reply.code, reply.message) == (
                {"grpc": "INTERNAL", "http": "500"}[protocol],
                "expected a single response, got 0",
            )
        said = "a reply could not be sent: the server's shared memory is too small: a reply of 64.0 MiB found no room"
        eventually(lambda: said in command.log)
        assert ask(1).ok
        command.order()
        assert command.ended() == 0
