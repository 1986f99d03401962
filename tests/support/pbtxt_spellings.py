# SPDX-License-Identifier: Apache-2.0
"""Ways of writing one and the same configuration, each with a test whether a text uses it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from support.pbtxt_reading import Field, Reading, Token

_BLOCK = "dynamic_batching"
_ENUMS = {"data_type", "format", "kind", "timeout_action"}
_BOOLEANS = {"optional", "allow_ragged_batch", "allow_timeout_override", "eager_batching", "enable", "decoupled"}
_LINE_OF_A_PROGRAM = 600
"""Characters of a line that nobody wrote by hand."""


def used(reading: Reading) -> set[str]:
    """Names of the spellings that a text uses."""
    return {name for name, occurs in SPELLINGS.items() if occurs(reading)}


def _strings(reading: Reading) -> Iterator[str]:
    return (token.text for token in reading.tokens if token.kind == "string")


def _numbers(reading: Reading) -> Iterator[str]:
    return (token.text for token in reading.tokens if token.kind == "number")


def _comments(reading: Reading) -> Iterator[Token]:
    return (token for token in reading.tokens if token.kind == "comment")


def _block(reading: Reading) -> tuple[Field, str] | None:
    """The batching block and its text."""
    found = next((field for field in reading.fields if field.name == _BLOCK), None)
    return (found, reading.text[found.start : found.end]) if found is not None else None


def _in_block(reading: Reading, pattern: str) -> bool:
    found = _block(reading)
    return found is not None and re.search(pattern, found[1]) is not None


def _before_block(reading: Reading) -> str:
    """What comes before the block, without the spaces in between; empty where there is no block."""
    found = _block(reading)
    return reading.text[: found[0].start].rstrip() if found is not None else ""


def _after_block(reading: Reading) -> str:
    """What comes behind the block, without the spaces in between; empty where there is no block."""
    found = _block(reading)
    return reading.text[found[0].end :].lstrip() if found is not None else ""


def _repeated(reading: Reading, listed: set[bool]) -> bool:
    """Whether one field of the top occurs several times, as messages written in just these ways."""
    ways: dict[str, list[Field]] = {}
    for field in reading.fields:
        if field.opening:
            ways.setdefault(field.name, []).append(field)
    return any(len(fields) > 1 and {field.listed for field in fields} == listed for fields in ways.values())


def _levels(reading: Reading) -> int:
    found = _block(reading)
    policies = Counter(field.name for field in found[0].fields) if found is not None else Counter[str]()
    return policies["priority_queue_policy"]


def _only_at_the_end(reading: Reading) -> bool:
    starts = [comment.start for comment in _comments(reading)]
    return bool(starts) and min(starts) > max(field.end for field in reading.fields)


SPELLINGS: dict[str, Callable[[Reading], bool]] = {
    "single quotes": lambda r: any(text.startswith("'") for text in _strings(r)),
    "both quotes": lambda r: {text[0] for text in _strings(r)} == {"'", '"'},
    "adjacent strings": lambda r: any(sum(t.kind == "string" for t in field.tokens) > 1 for field in r.walk()),
    "escaped quotes": lambda r: any(re.search(r"""\\['"]""", text) for text in _strings(r)),
    "escaped bytes": lambda r: any(re.search(r"\\[0-7xu]", text) for text in _strings(r)),
    "# inside a string": lambda r: any("#" in text for text in _strings(r)),
    "braces inside a string": lambda r: any(re.search(r"[{}<>]", text) for text in _strings(r)),
    "$$ inside a string": lambda r: any("$$" in text for text in _strings(r)),
    "fields end in ;": lambda r: any(field.after == ";" for field in r.walk()),
    "fields end in ,": lambda r: any(field.after == "," for field in r.walk()),
    "< >": lambda r: any(field.opening == "<" for field in r.walk()),
    "< > for the batching block": lambda r: any(field.opening == "<" for field in r.fields if field.name == _BLOCK),
    ": before a message": lambda r: any(field.colon for field in r.walk() if field.opening and not field.listed),
    ": before the batching block": lambda r: any(field.colon for field in r.fields if field.name == _BLOCK),
    ": before a list of messages": lambda r: any(field.colon for field in r.walk() if field.opening and field.listed),
    "space before :": lambda r: re.search(r"^\s*\w+ :", r.text, re.MULTILINE) is not None,
    "nothing behind :": lambda r: re.search(r"^[^#]*\w:[\"'\w\[]", r.text, re.MULTILINE) is not None,
    "several spaces behind :": lambda r: re.search(r"^\s*\w+:  +\S", r.text, re.MULTILINE) is not None,
    "[ right behind a name": lambda r: re.search(r"\w\[", r.text) is not None,
    "hexadecimal numbers": lambda r: any(re.match("0[xX]", number) for number in _numbers(r)),
    "octal numbers": lambda r: any(re.fullmatch("0[0-7]+", number) for number in _numbers(r)),
    "numbers for enums": lambda r: any(f.tokens[-1].kind == "number" for f in r.walk() if f.name in _ENUMS),
    "True, t, 1, 0": lambda r: any(
        field.tokens[-1].text not in ("true", "false") for field in r.walk() if field.name in _BOOLEANS
    ),
    "CRLF": lambda r: "\r\n" in r.text and not re.search(r"(?<!\r)\n", r.text),
    "line ends of both kinds": lambda r: "\r\n" in r.text and re.search(r"(?<!\r)\n", r.text) is not None,
    "no final newline": lambda r: not r.text.endswith("\n"),
    "tabs": lambda r: "\t" in r.text,
    "spaces before a line's end": lambda r: re.search(r"[ \t]\r?$", r.text, re.MULTILINE) is not None,
    "form feed or vertical tab": lambda r: re.search(r"[\f\v]", r.text) is not None,
    "begins with an empty line": lambda r: r.text.startswith("\n"),
    "one long line": lambda r: r.text.strip().count("\n") == 0 and len(r.text) > _LINE_OF_A_PROGRAM,
    "comment above the batching block": lambda r: _before_block(r).rpartition("\n")[2].lstrip().startswith("#"),
    "comment inside the batching block": lambda r: _in_block(r, "#"),
    "comment behind the batching block": lambda r: _after_block(r).startswith("#"),
    "a block in comments": lambda r: any(_BLOCK in comment.text for comment in _comments(r)),
    "comments only at the end": _only_at_the_end,
    "comment between name and value": lambda r: re.search(r"^\s*\w+ *#.*\n\s*:", r.text, re.MULTILINE) is not None,
    "comment right behind }": lambda r: re.search(r"[}\]>] ?#", r.text) is not None,
    "comments beyond ASCII": lambda r: any(not comment.text.isascii() for comment in _comments(r)),
    "comments in another charset": lambda r: any(re.search("[\udc80-\udcff]", c.text) for c in _comments(r)),
    "no batching block": lambda r: _block(r) is None,
    "empty batching block": lambda r: _in_block(r, r"[{<]\s*[}>][;,]?$"),
    "batching block in one line": lambda r: _block(r) is not None and not _in_block(r, r"\n"),
    "batching block in several lines": lambda r: _in_block(r, r"\n"),
    "batching block last": lambda r: bool(r.fields) and r.fields[-1].name == _BLOCK,
    "batching block before the inputs": lambda r: (
        next(f.name for f in r.fields if f.name in (_BLOCK, "input")) == _BLOCK
    ),
    "levels already": lambda r: _in_block(r, r"priority_levels\s*:\s*0*[xX]?[1-9]"),
    "a policy already": lambda r: _levels(r) == 1,
    "several policies already": lambda r: _levels(r) > 1,
    "default queue policy": lambda r: _in_block(r, "default_queue_policy"),
    "queue delay": lambda r: _in_block(r, "max_queue_delay_microseconds"),
    "preferred sizes": lambda r: _in_block(r, "preferred_batch_size"),
    "lists of messages": lambda r: any(field.listed for field in r.fields if field.opening),
    "messages one by one": lambda r: _repeated(r, {False}),
    "messages listed and one by one": lambda r: _repeated(r, {False, True}),
    "numbers one by one": lambda r: any(not field.listed for field in r.walk() if field.name == "dims"),
    "empty lists": lambda r: bool(r.empty_lists),
    "value before key": lambda r: any([e.name for e in f.fields] == ["value", "key"] for f in r.walk()),
}
