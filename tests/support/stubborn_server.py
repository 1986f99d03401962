# SPDX-License-Identifier: Apache-2.0
"""Stands in for tritonserver, run as its binary: ready at once, with a router that never reports the drain as done.
It says one line, which whoever passes its output on has to get rid of.

It ignores SIGTERM, and so do its children, of which one has left the process group. At SIGUSR1 it does what
tritonserver does when it crashes and its crash handler hangs; from SIGUSR2 on it takes connections and answers none.
"""

import http.server
import os
import signal
import socket
import sys
import threading
from pathlib import Path

from priority_router.control import CONTROL_DIR_ENV


class Ready(http.server.BaseHTTPRequestHandler):
    """Answers 200 to everything."""

    def do_GET(self) -> None:
        if mute.is_set():
            threading.Event().wait()
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


mute = threading.Event()


def fall_silent(*_: object) -> None:
    mute.set()
    os.write(2, b"from now on nothing is answered\n")


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
    signal.signal(signal.SIGUSR2, fall_silent)
    answering = http.server.ThreadingHTTPServer(http_, Ready)
    answering.daemon_threads = True
    with socket.create_server(grpc), socket.create_server(metrics), answering as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
