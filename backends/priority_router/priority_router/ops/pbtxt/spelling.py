# SPDX-License-Identifier: Apache-2.0
"""Spellings that protobuf in Python and the parser of a server (C++) both read, and read alike.

Each reads some that the other refuses, and there are a few that mean something else to each. What is not in both is
refused, since it is Python's protobuf that says here what a file means.
"""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf import text_encoding

from priority_router.ops.pbtxt.scan import Sort, Token, shown

_INTEGER: Final = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT: Final = re.compile(
    r"-?(?:(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?|(?i:inf|infinity|nan))"
)
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{0,2})|u([0-9a-fA-F]{0,4})|U([0-9a-fA-F]{0,8})|(.))")
_LETTERS: Final = frozenset("abfnrtv\\'\"")

_CHARACTERS_END: Final = 0x110000 if text_encoding.CUnescape(r"\U0001F600") == "\U0001f600".encode() else 0x80
"""Of those that ``\\u`` and ``\\U`` are read as; protobuf 4.25 makes something else of what is not ASCII."""

OCTAL: Final = re.compile(r"-?0[0-7]+")
"""What both read as an octal number."""


def doubt(field: Any, token: Token) -> tuple[int, str, str] | None:
    """What the two do not both read, or not alike, in a value.

    Args:
        field: its descriptor; of no message.
        token: a token of its value.

    Returns:
        Where, what is wrong and what to write; None where there is nothing. Whether the value is legal is left to
        protobuf.
    """
    if token.sort is Sort.STRING:
        return _doubtful_escape(token)
    if token.sort is Sort.NUMBER:
        floating = field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT)
        octal = field.enum_type is not None and OCTAL.fullmatch(token.text)
        if octal or not (_FLOAT if floating else _INTEGER).fullmatch(token.text):
            return (
                token.start,
                f"{shown(token.text)} is not a number of the usual form",
                "write digits alone, or 0x before them",
            )
        if token.text.startswith("-") and field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
            return token.start, f"{field.name} is negative", "write a number of at least 0"
    if token.sort is Sort.NAME and not token.text.isidentifier():
        return token.start, f"{shown(token.text)} is not a name", "write letters, digits and '_' alone"
    return None


def _doubtful_escape(token: Token) -> tuple[int, str, str] | None:
    if "\\" not in token.text:
        return None
    for match in _ESCAPE.finditer(token.text):
        octal, hexadecimal, *unicodes, letter = match.groups()
        if octal is not None:
            legal = int(octal, 8) < 256
        elif hexadecimal is not None:
            legal = bool(hexadecimal) and match.group()[1] == "x"
        elif letter is not None:
            legal = letter in _LETTERS
        else:
            legal = any(_is_character(digits, length) for digits, length in zip(unicodes, (4, 8), strict=True))
        if not legal:
            return (
                token.start + match.start(),
                f"parsers do not agree on what {shown(match.group())} is in a string",
                "write the character itself, or two backslashes for one",
            )
    return None


def _is_character(digits: str | None, length: int) -> bool:
    """Neither half of a pair, nor a backslash, which protobuf in Python takes as the begin of another escape."""
    if digits is None or len(digits) != length:
        return False
    code = int(digits, 16)
    return code < _CHARACTERS_END and not 0xD800 <= code < 0xE000 and code != ord("\\")
