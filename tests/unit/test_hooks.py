# SPDX-License-Identifier: Apache-2.0
"""The preloaded library as seen from Python, without the library."""

import os
import struct

import pytest
from priority_router.errors import SetupError
from priority_router.hooks import (
    LOADED_ENV,
    HookCounters,
    HookCounts,
    HookMarker,
    format_guarded_models,
    parse_guarded_models,
    read_marker,
)

CONTENT = struct.pack("@8sQQQQ", b"PRHOOKS2", 1, 2, 3, 4)


def counters_file(name="priority_router_hooks", content=CONTENT):
    descriptor = os.memfd_create(name)
    os.write(descriptor, content)
    return descriptor


@pytest.mark.parametrize(
    ("value", "marker"),
    [
        ("pid=12;fd=3;hooks=priority,dispatch,guard", HookMarker(12, 3, frozenset({"priority", "dispatch", "guard"}))),
        ("pid=12;fd=-1;hooks=", HookMarker(12, -1, frozenset())),
        ("pid=12;fd=3", None),
        ("pid=-12;fd=3;hooks=guard", None),
        ("pid=12;fd=3;hooks=guard\n", None),
        ("pid=12;fd=3;hooks=guard;more=1", None),
        ("", None),
    ],
)
def test_marker(value, marker):
    assert read_marker({LOADED_ENV: value}) == marker


def test_no_marker():
    assert read_marker({}) is None


def test_a_mark_counts_only_from_the_parent_itself():
    marker = HookMarker(12, 3, frozenset())
    assert marker.active_in(12)
    assert not marker.active_in(13)


def test_counters_are_read_live():
    descriptor = counters_file()
    counters = HookCounters.open(HookMarker(os.getpid(), descriptor, frozenset()))
    assert counters.read() == HookCounts(priorities_set=1, waits_cut=2, calls_refused=3, idle_waits_cut=4)
    os.pwrite(descriptor, struct.pack("@Q", 2**40), 16)
    assert counters.read().waits_cut == 2**40
    counters.close()
    os.close(descriptor)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("something_else", CONTENT, "another file"),
        ("priority_router_hooks", struct.pack("@8sQQQQ", b"PRHOOKS1", 1, 2, 3, 4), "another version"),
        ("priority_router_hooks", b"PRHOOKS2", "restart the server"),
    ],
)
def test_what_is_no_counters_file_is_refused(name, content, reason):
    descriptor = counters_file(name, content)
    with pytest.raises(SetupError, match=reason):
        HookCounters.open(HookMarker(os.getpid(), descriptor, frozenset()))
    os.close(descriptor)


@pytest.mark.parametrize("fd", [-1, 10**6])
def test_a_descriptor_that_is_gone(fd):
    with pytest.raises(SetupError, match="hook counters cannot be read"):
        HookCounters.open(HookMarker(os.getpid(), fd, frozenset()))


@pytest.mark.parametrize("routers", [{}, {"executor": "router"}, {"a": "r", "b": "r", "a b": "r-1.0"}])
def test_guarded_models_survive_the_environment(routers):
    assert parse_guarded_models(format_guarded_models(routers)) == routers


@pytest.mark.parametrize(
    "routers", [{"a;b": "r"}, {"a": "r=1"}, {"": "r"}, {"a": ""}, {" a": "r"}, {"a": "r\0"}, {"a\n": "r"}]
)
def test_names_that_cannot_be_written_are_refused(routers):
    with pytest.raises(SetupError, match="guard_executor = false"):
        format_guarded_models(routers)


@pytest.mark.parametrize(
    ("value", "routers"),
    [("", {}), ("a", {"a": ""}), ("; a=r;;", {"a": "r"}), ("a=1;a=2", {"a": "1"}), ("=r", {}), ("a=b=c", {"a": "b=c"})],
)
def test_a_list_written_by_hand(value, routers):
    assert parse_guarded_models(value) == routers
