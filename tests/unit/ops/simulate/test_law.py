# SPDX-License-Identifier: Apache-2.0
"""The simulator reads no clock and does no I/O, not by way of what it imports either."""

import grimp

PACKAGE = "priority_router.ops.simulate"
EDGE = {f"{PACKAGE}.{name}" for name in ("__main__", "asking", "command", "largest", "plot", "record", "worst_case")}
"""What people run: reads files, prints, and imports the rest."""
FORBIDDEN = {
    "asyncio",
    "datetime",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "select",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
}


def test_all_but_the_edge_is_free_of_io():
    graph = grimp.build_graph("priority_router", include_external_packages=True, cache_dir=None)
    modules = graph.find_descendants(PACKAGE) - EDGE
    assert len(modules) > 5
    reached = {module: graph.find_upstream_modules(module) & FORBIDDEN for module in modules}
    assert {module: sorted(names) for module, names in reached.items() if names} == {}
