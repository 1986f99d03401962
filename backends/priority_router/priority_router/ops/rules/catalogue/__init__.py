# SPDX-License-Identifier: Apache-2.0
"""Every rule, by the file or model that is to be mended; ``docs/lint.md`` is made from this.

Law: data only. A code once given keeps its meaning; whoever checks a rule takes it from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from priority_router.ops.rules.catalogue import executor, files, promises, router, together
from priority_router.ops.rules.finding import Rule

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        rule.code: rule
        for module in (files, executor, router, together, promises)
        for rule in vars(module).values()
        if isinstance(rule, Rule)
    }
)
"""By code, in the order of the codes."""
