# SPDX-License-Identifier: Apache-2.0
"""Stands in for tritonserver, run as its binary: ready at once, with a router that never reports the drain as done.
It says one line, which whoever passes its output on has to get rid of.

It ignores SIGTERM, and so do its children, of which one has left the process group. At SIGUSR1 it does what
tritonserver does when it crashes and its crash handler hangs.
"""

import http.server
import os
import signal
import socket
import sys
from pathlib import Path

from priority_router.control import CONTROL_DIR_ENV


class Ready(http.server.BaseHTTPRequestHandler):
    """Answers 200 to everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def crash(*_: object) -> None:
    os.write(2, b"Signal (6) received.\n")
    signal.signal(signal.SIGTERM, lambda *_: os.write(2, b"Signal (15) received.\n"))
    while True:
        signal.pause()


def main() -> None:
    options = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"started\n")
    for own_group in (False, True):
        if os.fork() == 0:
            if own_group:
                os.setpgid(0, 0)
            while True:
                signal.pause()
    Path(os.environ[CONTROL_DIR_ENV], f"router.{os.getpid()}.router").touch()
    grpc, metrics, http_ = (("127.0.0.1", int(options[f"{name}-port"])) for name in ("grpc", "metrics", "http"))
    signal.signal(signal.SIGUSR1, crash)
    with socket.create_server(grpc), socket.create_server(metrics), http.server.HTTPServer(http_, Ready) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
