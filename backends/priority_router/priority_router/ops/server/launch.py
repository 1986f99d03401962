# SPDX-License-Identifier: Apache-2.0
"""Becomes tritonserver, having asked the kernel to stop it should its parent die.

Run as a file, by its path: ``python launch.py PARENT_PID PROGRAM ARGS...``. The request survives the exec. A program of
its own asks for it, not a function between fork and exec, since that is unsafe in a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("priority-router: the starting process is gone already")
    os.execv(sys.argv[2], sys.argv[2:])
