# SPDX-License-Identifier: Apache-2.0
"""How texts are written into ``config.pbtxt`` and ``policy.toml``, and the seal that tells an edited file.

Law: pure; texts in, texts out.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Iterable
from typing import Final

COMMENT_WIDTH: Final = 120
"""Of a comment line, ``# `` included."""

_SEAL = re.compile(r"# Written by priority-router wrap [^\n]*\(digest ([0-9a-f]+)\)\.\n")
_PBTXT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def pbtxt_string(text: str) -> str:
    """A string of protobuf text, quotes included; letters outside of ASCII stay as they are."""
    return '"' + "".join(_PBTXT_ESCAPES.get(letter) or _octal(letter) for letter in text) + '"'


def _octal(letter: str) -> str:
    """Octal, since of an escape in hexadecimal the parsers do not agree where it ends."""
    return f"\\{ord(letter):03o}" if letter < " " or letter == "\x7f" else letter


def toml_string(text: str) -> str:
    """A basic string of TOML, quotes included."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> list[str]:
    """Lines that begin with ``#``; each line of ``text`` is filled up anew."""
    lines = []
    for line in text.splitlines():
        lines += textwrap.wrap(line, COMMENT_WIDTH - 2, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"# {line}".rstrip() for line in lines]


def sealed(lines: Iterable[str]) -> str:
    """A whole file: its first line says who wrote it and holds the digest of the rest."""
    body = "".join(f"{line}\n" for line in lines)
    return (
        "# Written by priority-router wrap and replaced by it as long as nobody has edited it "
        f"(digest {_digest(body)}).\n{body}"
    )


def is_sealed(text: str) -> bool:
    """Whether `sealed` made a file and nobody has changed it since."""
    found = _SEAL.match(text)
    return found is not None and found[1] == _digest(text[found.end() :])


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()[:16]
