# SPDX-License-Identifier: Apache-2.0
"""The port check against real sockets."""

import socket

import pytest
from priority_router.errors import SetupError
from priority_router.ops.server import ports

LOOPBACK = "127.0.0.1"


def test_a_listening_socket_is_busy_and_free_again_once_closed():
    with socket.create_server((LOOPBACK, 0)) as owner:
        port = owner.getsockname()[1]
        with pytest.raises(SetupError, match=f"grpc port {port} on 127.0.0.1 is in use"):
            ports.check_free(LOOPBACK, port, "grpc")
    ports.check_free(LOOPBACK, port, "grpc")


def test_a_socket_that_no_longer_listens_still_holds_its_port():
    """A server that stops may answer nobody and yet keep the next one from starting."""
    with socket.socket() as owner:
        owner.bind((LOOPBACK, 0))
        port = owner.getsockname()[1]
        with pytest.raises(SetupError, match="is in use"):
            ports.check_free(LOOPBACK, port, "http")


def test_a_listener_on_every_address_makes_the_port_busy_on_loopback():
    with socket.create_server(("0.0.0.0", 0)) as owner:
        port = owner.getsockname()[1]
        with pytest.raises(SetupError, match="is in use"):
            ports.check_free(LOOPBACK, port, "http")


def test_connections_of_an_earlier_server_do_not_make_it_busy():
    with socket.create_server((LOOPBACK, 0)) as owner:
        port = owner.getsockname()[1]
        caller = socket.create_connection((LOOPBACK, port))
        answering, _ = owner.accept()
        # The side that closes first is left in TIME_WAIT.
        answering.close()
        caller.close()
    ports.check_free(LOOPBACK, port, "http")


def test_an_address_of_another_machine_is_said():
    with pytest.raises(SetupError, match=r"http port 8000 on 192\.0\.2\.1 cannot be used"):
        ports.check_free("192.0.2.1", 8000, "http")
    with pytest.raises(SetupError, match=r"no free port found on 192\.0\.2\.1"):
        ports.pick_free("192.0.2.1")


def test_picked_ports_are_free_distinct_and_never_those_of_outgoing_connections():
    picked: list[int] = []
    for _ in range(20):
        picked.append(ports.pick_free(LOOPBACK, picked))
    assert len(set(picked)) == 20
    lowest, highest = ports._ephemeral_range()
    assert all(not lowest <= port <= highest for port in picked)
    for port in picked:
        ports.check_free(LOOPBACK, port, "http")


def test_names_become_addresses():
    assert ports.resolve("localhost") == "127.0.0.1"
    assert ports.resolve("0.0.0.0") == "0.0.0.0"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "::1"])
def test_what_has_no_address_is_said(host):
    with pytest.raises(SetupError, match=f"--host {host}: no IPv4 address"):
        ports.resolve(host)
