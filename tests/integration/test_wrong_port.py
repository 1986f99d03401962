# SPDX-License-Identifier: Apache-2.0
"""What is told where a port is not Triton's HTTP port."""

import contextlib
import socket
import threading

import pytest
from priority_router.errors import PriorityRouterError
from priority_router.ops.bench import executor_stats
from priority_router.ops.simulate import asking

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n# HEL"
FRAMES = b"\x00\x00\x18\x04\x00\x00\x00\x00\x00\x00\x04\x00\x3f\xff\x00\x00\x05"


@contextlib.contextmanager
def answering(reply):
    """The address of something that answers whatever is asked so."""

    def serve():
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def said_of(reply, ask):
    with answering(reply) as address, pytest.raises(PriorityRouterError) as caught:
        ask(address)
    return str(caught.value)


ASKING = [
    lambda address: asking.connect(f"http://{address}").config("router"),
    lambda address: asking.connect(f"http://{address}").counters("router"),
    lambda address: executor_stats.get_json(address, "/v2/models/router/config"),
]


@pytest.mark.parametrize("ask", ASKING)
@pytest.mark.parametrize("reply", [PAGE, FRAMES], ids=["no JSON", "no HTTP"])
def test_another_port_is_told_in_a_line_of_text(ask, reply):
    said = said_of(reply, ask)
    assert "127.0.0.1" in said
    assert said.isprintable(), said
    assert "HTTP" in said
