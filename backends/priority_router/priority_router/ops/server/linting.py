# SPDX-License-Identifier: Apache-2.0
"""What `serve` does with ``priority-router lint`` before it starts a server.

Law: errors refuse the start; lint itself never does, whatever is missing for it or wrong with it, and then says so.
"""

from __future__ import annotations

import contextlib
import shlex
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from priority_router.errors import SetupError
from priority_router.ops import command_line
from priority_router.ops.rules.finding import Severity
from priority_router.ops.server import arguments

MOST_LINES: Final = 20
"""Of warnings and notes; more would bury the server's own first lines."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Nothing that keeps a server from being started.

    Attributes:
        lines: one for each warning and note, or for why nothing was checked.
        said: codes of the rules in these lines, each with the model whose file is to be mended.
    """

    lines: list[str]
    said: frozenset[tuple[str, str]] = frozenset()


def check(repositories: Sequence[Path], words: Sequence[str]) -> Outcome:
    """Checks what a server is about to serve.

    Args:
        repositories: model repositories.
        words: arguments for tritonserver.

    Raises:
        SetupError: errors were found, which are in its text; a repository is none; the words cannot be passed on.
    """
    passed = arguments.read(words, None)
    if passed.config_name is not None:
        return Outcome(["lint was skipped: --model-config-name lets the server read other files than config.pbtxt"])
    pool = passed.backend_settings.get("thread-pool-size", "")
    try:
        return _check(repositories, int(pool) if pool.isdecimal() else None, passed.loaded)
    except SetupError:
        raise
    except Exception as error:  # noqa: BLE001 - a fault of the check is no reason not to serve
        return Outcome([f"lint was skipped: {_reason(error)}"])


def _check(repositories: Sequence[Path], pool: int | None, loaded: frozenset[str] | None) -> Outcome:
    from priority_router.ops.lint import check, report

    found = check.check(repositories, pool)
    # What is not loaded refuses nobody, and may be mended before it is.
    refusing = [
        located for located in found.of(Severity.ERROR) if loaded is None or located.finding.place.model in loaded
    ]
    rest = [located for located in found.found if located not in refusing]
    if refusing:
        raise SetupError(
            f"lint finds {report.counted(len(refusing), 'error')}; mend what it names, or start with --no-lint:\n"
            + "\n".join(map(report.paragraph, refusing))
        )
    lines = [f"lint: {report.line(located)}" for located in rest]
    lines += [f"lint: not looked at: {remark}" for remark in found.remarks]
    if len(lines) > MOST_LINES:
        kept = lines[: MOST_LINES - 1]
        words = shlex.join(["priority-router", "lint", *map(str, repositories)])
        lines = [*kept, f"lint: and {len(lines) - len(kept)} more, which `{words}` shows"]
    return Outcome(lines, frozenset((one.finding.rule.code, one.finding.place.model) for one in rest))


def _reason(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        with contextlib.suppress(ModuleNotFoundError):
            return command_line.remedy(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"it failed, {type(error).__name__} ({text}) in {Path(last.filename).name}:{last.lineno}"
