# SPDX-License-Identifier: Apache-2.0
"""Loaded is not working: whether the hooks do what this router relies on.

Law: pure; counts in, a verdict out. The texts for the log live here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from priority_router.core.values import SECOND
from priority_router.hooks import DISPATCH, PRIORITY, HookCounts

LEAST_SPAN: Final = 10 * SECOND
"""ns over which a verdict is formed: a quiet moment proves nothing."""

LEAST_COMPLETIONS: Final = 10
"""Executor calls that must have come back in that time, for the same reason."""

COMPLAINTS: Final[Mapping[str, str]] = {
    PRIORITY: (
        "executor calls asked for their level, but the priority hook has set none: work inside Triton is not ordered; "
        'the hooks were not built for this release of Triton, so set mode = "plain" and report the release'
    ),
    DISPATCH: (
        "requests were waiting all the time, but the dispatch hook has cut no wait of Triton's batcher: the executor "
        "idles up to 500 ms between batches; the hooks were not built for this release of Triton, so set "
        'mode = "plain" and report the release'
    ),
}


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen at one moment; counts since any fixed start.

    Attributes:
        at: ns.
        completions: executor calls that came back.
        levels_sent: executor calls that asked for a level.
        backlog: requests wait now.
        hooks: the hooks' own counts.
    """

    at: int
    completions: int
    levels_sent: int
    backlog: bool
    hooks: HookCounts


def silent_hooks(first: Sight, last: Sight, backlog_throughout: bool) -> frozenset[str] | None:
    """Hooks that did nothing between two sights although they had to.

    Args:
        first: the earlier sight.
        last: the later one.
        backlog_throughout: requests waited at both and at every sight between them.

    Returns:
        None where too little happened to tell.
    """
    if last.at - first.at < LEAST_SPAN or last.completions - first.completions < LEAST_COMPLETIONS:
        return None
    silent = set()
    if last.levels_sent > first.levels_sent and last.hooks.priorities_set == first.hooks.priorities_set:
        silent.add(PRIORITY)
    if backlog_throughout and _cuts(last.hooks) == _cuts(first.hooks):
        silent.add(DISPATCH)
    return frozenset(silent)


def _cuts(counts: HookCounts) -> int:
    """Of both waits: with the backlog in the router Triton's batcher mostly stands in the idle one."""
    return counts.waits_cut + counts.idle_waits_cut


class HookWatch:
    """Collects sights until they suffice for a verdict, then begins anew.

    Attributes:
        working: per hook, what the last verdict said; True before the first.
    """

    def __init__(self) -> None:
        self._first: Sight | None = None
        self._backlog = True
        self.working = {PRIORITY: True, DISPATCH: True}

    def see(self, sight: Sight) -> list[str]:
        """Takes in a sight.

        Returns:
            Complaints that are new with it.
        """
        if self._first is None:
            self._first, self._backlog = sight, sight.backlog
            return []
        self._backlog = self._backlog and sight.backlog
        silent = silent_hooks(self._first, sight, self._backlog)
        if silent is None:
            return []
        new = [COMPLAINTS[hook] for hook, worked in self.working.items() if worked and hook in silent]
        for hook in self.working:
            if hook in silent:
                self.working[hook] = False
            elif hook == PRIORITY or self._backlog:
                self.working[hook] = True
        self._first, self._backlog = sight, sight.backlog
        return new
