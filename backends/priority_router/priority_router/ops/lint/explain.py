# SPDX-License-Identifier: Apache-2.0
"""What one rule means, for people: ``priority-router lint --explain PR101``."""

from __future__ import annotations

import difflib
import textwrap

from priority_router.ops.lint.examples import EXAMPLES
from priority_router.ops.rules.catalogue import RULES

_WIDTH = 100


class UnknownCodeError(Exception):
    """There is no such rule; the text names those that are nearest."""


def explain(code: str) -> str:
    """Title, severity, what happens, what to do, and an example.

    Args:
        code: of a rule, in letters of any case.

    Raises:
        UnknownCodeError: there is none.
    """
    rule = RULES.get(code.upper())
    if rule is None:
        near = difflib.get_close_matches(code.upper(), RULES, n=3, cutoff=0.5)
        hint = f"the nearest are {', '.join(sorted(near))}" if near else f"they go from {min(RULES)} to {max(RULES)}"
        raise UnknownCodeError(f"there is no rule {code!r}; {hint}")
    parts = [f"{rule.code}: {rule.title} ({rule.severity.value})", f"why: {rule.why}", f"fix: {rule.remedy}"]
    lines = [textwrap.fill(part, _WIDTH, subsequent_indent="     ") for part in parts]
    if example := EXAMPLES.get(rule.code):
        lines += [f"for example, in {example.file}:", textwrap.indent(example.wrong, "  ")]
        lines += ["better:", textwrap.indent(example.right, "  ")] if example.right else []
    return "\n".join(lines)
