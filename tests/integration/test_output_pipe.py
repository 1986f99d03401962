# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

from priority_router.ops import command_line


def test_output_that_nobody_reads_to_its_end_is_no_fault():
    """As behind `| head`: no traceback, neither at once nor at the interpreter's end."""
    program = (
        "import sys\nfrom priority_router.ops import command_line\n"
        "def run():\n    for _ in range(100_000):\n        print('a line')\n    return 0\n"
        "sys.exit(command_line.exit_status('it', run))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""
    assert process.returncode == command_line.FAILED
