# SPDX-License-Identifier: Apache-2.0
"""How much executor time short urgent dispatches may cost the rest (rule 1).

Law: one number. It knows what a dispatch cost and what its rows would have cost in full batches, nothing else.

An urgent dispatch that is sent short, because less urgent rows would have lengthened it, wastes what the executor could
have done meanwhile. Where a batch has a large fixed cost that waste is most of the executor: with 20 ms and 1 ms per
row, 32 rows at most, 247 rows/s were left of 613 (simulated). So the waste is paid from a budget, the share of time
that ``batch_efficiency`` gives away; once it is spent, urgent dispatches are filled until it has recovered.
"""

from __future__ import annotations


class FillBudget:
    """A debt in ns of executor time, paid off by every dispatch."""

    def __init__(self, batch_efficiency: float) -> None:
        self._give_away = 1 - batch_efficiency
        self._debt = 0.0

    @property
    def spent(self) -> bool:
        """Whether urgent dispatches must be filled for now."""
        return self._debt > 0

    def charge(self, took: int, wasted: int, most_credit: int) -> None:
        """Take in one dispatch.

        Args:
            took: ns it is expected to take.
            wasted: ns more than its rows would take in efficient batches; 0 when nothing was held back from it.
            most_credit: ns that may be saved up at most, so that a quiet time does not pay for a long waste.
        """
        self._debt = max(self._debt + wasted - self._give_away * took, -float(most_credit))

    def adopt(self, batch_efficiency: float) -> None:
        """Give away another share from now on; what is owed stays owed."""
        self._give_away = 1 - batch_efficiency

    def clear(self) -> None:
        """Nothing waits any more: nobody is owed anything."""
        self._debt = 0.0
