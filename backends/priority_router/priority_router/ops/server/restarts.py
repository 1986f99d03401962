# SPDX-License-Identifier: Apache-2.0
"""When a server that failed is started again, and when no more.

Law: pure; how long it had served comes in, the pause before the next start comes out.
"""

from __future__ import annotations

import math
from typing import Final

MOST_IN_A_ROW: Final = 5
"""Default; with pauses of 1 to 16 s between them, so that a fault that lasts is told within minutes."""

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0

STEADY_SECONDS: Final = 600.0
"""A server that served for so long was well: its failure is the first of a new row."""


class Restarts:
    """Counts the failures of one ``serve``.

    Attributes:
        count: restarts so far.
    """

    def __init__(self, most: int = MOST_IN_A_ROW) -> None:
        """None so far.

        Args:
            most: restarts in a row; 0 = never start again.
        """
        self.count = 0
        self._most = most
        self._row = 0

    def failed(self, served: float) -> float | None:
        """The server has failed.

        Args:
            served: seconds that it had served until then; 0 where it did not even start.

        Returns:
            Seconds to wait before the next start, each time twice as long; None to give up.
        """
        if served >= STEADY_SECONDS:
            self._row = 0
        if self._row >= self._most:
            return None
        self._row += 1
        self.count += 1
        return min(math.ldexp(FIRST_PAUSE_SECONDS, self._row - 1), LONGEST_PAUSE_SECONDS)
