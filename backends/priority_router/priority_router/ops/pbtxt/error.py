# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a ``config.pbtxt``, and where."""

from __future__ import annotations

from typing import Literal

from priority_router.errors import PriorityRouterError

Kind = Literal["syntax", "unknown_field", "placeholder", "encoding", "file", "unsupported"]
"""Of a fault.

- syntax: protobuf, or the parser of a server, cannot read it
- unknown_field: its message does not have that field
- placeholder: a template's ``${name}``
- encoding: bytes that are not UTF-8, or a byte order mark
- file: it cannot be opened
- unsupported: a legal file that nobody here dares to edit
"""


class PbtxtError(PriorityRouterError):
    """One fault; its text is ``file:line:column: what; fix``, without the numbers where the whole file is meant.

    Attributes:
        file: as it was given.
        line: 1-based; 0 where the whole file is meant.
        column: 1-based, in characters; 0 likewise.
        kind: see `Kind`.
        what: what is wrong, with the names and values; without a full stop.
        fix: what to write instead; likewise.
    """

    def __init__(self, file: str, line: int, column: int, kind: Kind, what: str, fix: str) -> None:
        where = f"{file}:{line}:{column}" if line else file
        super().__init__(f"{where}: {what}; {fix}")
        self.file = file
        self.line = line
        self.column = column
        self.kind: Kind = kind
        self.what = what
        self.fix = fix
