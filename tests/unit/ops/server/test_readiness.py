# SPDX-License-Identifier: Apache-2.0
import pytest
from priority_router.ops.server import readiness

MODEL_FAILED = """\
I1130 09:03:36.1 19733 model_lifecycle.cc:473] "loading: broken:1"
E1130 09:03:37.1 1 model_lifecycle.cc:642] "failed to load 'broken' version 1: Internal: no weights"
I1130 09:03:37.2 19733 server.cc:674] "
| broken   | 1       | UNAVAILABLE: Internal: no weights |
error: creating server: Internal - failed to load all models
"""
ESCAPED = r"""
E1130 09:03:37.1 1 model_lifecycle.cc:642] "failed to load 'broken' version 1: Internal: mode = \"levels\" in C:\\new\n\nAt:\n  /x/model.py(56): initialize\n"
"""  # noqa: E501
OLD_STYLE = """\
E0101 00:00:00.1 7 model_lifecycle.cc:621] failed to load 'broken' version 3: Invalid argument: bad config
error: creating server: Internal - failed to load all models
"""
POLL_FAILED = """\
E1130 09:03:37.1 1 model_repository_manager.cc:1] "Poll failed for model directory 'odd': unexpected platform type 'x'"
error: creating server: Internal - failed to load all models
"""
PORT_TAKEN = """\
I1130 09:03:37.1 19733 server.cc:1] "all is well"
E1130 09:03:38.1 19733 main.cc:248] "failed to start GRPC service: Unavailable - Socket '127.0.0.1:1' already in use "
"""
UNKNOWN_OPTION = """\
/x/bin/tritonserver: unrecognized option '--no-such-option=1'
Usage: tritonserver [options]
  --help
\tPrint usage

"""
BAD_VALUE = """\
Usage: tritonserver [options]
  --help
\tPrint usage

Bad option: "--log-verbose".
Invalid option value. Got x

"""


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (MODEL_FAILED, "model broken: Internal: no weights"),
        (ESCAPED, 'model broken: Internal: mode = "levels" in C:\\new'),
        (OLD_STYLE, "model broken: Invalid argument: bad config"),
        (POLL_FAILED, "model odd: unexpected platform type 'x'"),
        (PORT_TAKEN, "failed to start GRPC service: Unavailable - Socket '127.0.0.1:1' already in use"),
        (UNKNOWN_OPTION, "unrecognized option '--no-such-option=1'"),
        (BAD_VALUE, 'Bad option: "--log-verbose". Invalid option value. Got x'),
        ("something\nwent wrong\n", "its last words were:\nsomething\nwent wrong"),
    ],
)
def test_the_reason_is_found_in_the_log(log, reason):
    assert readiness.explain(log) == reason


def test_each_reason_once():
    assert readiness.explain(MODEL_FAILED + MODEL_FAILED + POLL_FAILED).count("\n") == 1
