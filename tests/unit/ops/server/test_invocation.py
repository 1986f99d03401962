# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from priority_router.ops.server import arguments, invocation

ADDRESSES = invocation.Addresses("127.0.0.1", {"http": 1, "grpc": 2, "metrics": 3})


def server_arguments(addresses=ADDRESSES, words=(), pool=32):
    passed = arguments.read(words, 32)
    return invocation.server_arguments(
        [Path("/a"), Path("/b")], Path("/backends"), addresses, pool=pool, region_prefix="p_", passed=passed
    )


def environment(base, **changes):
    given = {
        "python": Path("/venv/bin/python"),
        "libraries": (Path("/first"), Path("/second")),
        "control": Path("/control"),
        "hooks": Path("/hooks.so"),
        "guarded": {"executor": "router"},
        "extra": {},
        **changes,
    }
    return invocation.server_environment(base, **given)


def test_every_service_gets_its_address():
    made = server_arguments()
    assert made[:3] == ["--model-repository=/a", "--model-repository=/b", "--backend-directory=/backends"]
    for expected in ("--http-address=127.0.0.1", "--http-port=1", "--grpc-port=2", "--metrics-port=3"):
        assert expected in made
    assert "--backend-config=python,thread-pool-size=32" in made
    assert "--backend-config=python,shm-region-prefix-name=p_" in made


def test_the_users_arguments_come_last_and_replace_settings():
    made = server_arguments(words=["--backend-config=python,thread-pool-size=64", "--exit-timeout-secs=9"], pool=32)
    assert made[-2:] == ["--backend-config=python,thread-pool-size=64", "--exit-timeout-secs=9"]
    assert "--backend-config=python,thread-pool-size=32" not in made


def test_a_service_that_is_off_gets_no_address():
    made = server_arguments(
        invocation.Addresses("127.0.0.1", {"http": 1}), ["--allow-grpc=false", "--allow-metrics=false"]
    )
    assert not [word for word in made if word.startswith(("--grpc-", "--metrics-"))]


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1:1"), ("0.0.0.0", "127.0.0.1:1"), ("10.1.2.3", "10.1.2.3:1")],
)
def test_clients_connect_to_something_that_answers(host, address):
    addresses = invocation.Addresses(host, {"http": 1})
    assert addresses.of("http") == address
    assert addresses.of("grpc") is None


def test_environment_is_changed_for_the_child_only_and_keeps_what_was_there():
    base = {"PATH": "/usr/bin", "LD_LIBRARY_PATH": "/cuda", "LD_PRELOAD": "/other.so", "HOME": "/root"}
    made = environment(base)
    assert base["PATH"] == "/usr/bin"
    assert made["PATH"] == "/venv/bin:/usr/bin"
    assert made["LD_LIBRARY_PATH"] == "/first:/second:/cuda"
    assert made["LD_PRELOAD"] == "/hooks.so:/other.so"
    assert made["PRIORITY_ROUTER_GUARDED_MODELS"] == "executor=router"
    assert made["PRIORITY_ROUTER_CONTROL_DIR"] == "/control"
    assert made["HOME"] == "/root"


def test_empty_lists_do_not_add_the_current_folder():
    made = environment({"LD_LIBRARY_PATH": ""})
    assert made["LD_LIBRARY_PATH"] == "/first:/second"
    assert made["PATH"] == "/venv/bin"


def test_without_hooks_nothing_is_preloaded():
    made = environment({}, hooks=None)
    assert "LD_PRELOAD" not in made
    assert "PRIORITY_ROUTER_GUARDED_MODELS" not in made


def test_nvidias_image_keeps_its_own_paths():
    made = environment({"PATH": "/usr/bin"}, python=None, libraries=())
    assert made["PATH"] == "/usr/bin"
    assert "LD_LIBRARY_PATH" not in made


def test_extra_variables_win():
    assert environment({}, extra={"PRIORITY_ROUTER_GUARDED_MODELS": ""})["PRIORITY_ROUTER_GUARDED_MODELS"] == ""
