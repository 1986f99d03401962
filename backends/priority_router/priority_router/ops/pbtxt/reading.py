# SPDX-License-Identifier: Apache-2.0
"""Reads a text with protobuf and with the scanner, and says what is wrong where either of them, or a server, balks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from priority_router.ops.pbtxt import scan, templates, tree
from priority_router.ops.pbtxt.error import Kind, PbtxtError
from priority_router.ops.pbtxt.outline import Outline, outline
from priority_router.ops.pbtxt.scan import Lines, Sort, Token, shown
from priority_router.ops.pbtxt.tree import Message, NotATreeError, Span

_BYTE_ORDER_MARK: Final = "\ufeff"
_UTF_16_MARKS: Final = ("\udcff\udcfe", "\udcfe\udcff")
_UNDECODABLE: Final = re.compile("[\ud800-\udfff]")
_NEVER_FROM_BYTES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")

_REMEDIES: Final = (
    (re.compile(r"Couldn't parse integer"), "write a whole number, without quotes"),
    (re.compile(r"Couldn't parse float"), "write a number, without quotes"),
    (re.compile(r"Value out of range"), "write a number that fits"),
    (re.compile(r"Expected string but found"), "write a text in quotes"),
    (re.compile(r'Expected "true" or "false"'), "write true or false, without quotes"),
    (re.compile(r"Field .* is specified along with field"), "keep one of the two"),
)
"""Protobuf's own sentences, and what helps."""

_CUT_BY_COMMENT: Final = re.compile(r"[\w.+-]+#")
_HIDDEN_IN_COMMENT: Final = re.compile(r"[^\s#][ \t]*#\w[^\n]*\n\s*\Z")
_IS_COMMENT: Final = "; what follows # is a comment"
_MOST_HIDDEN: Final = 1000
"""Characters in front of a fault that are looked through for a comment that was meant as a value."""

_MOST_WORDS: Final = 200
"""Characters of a sentence of protobuf's."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text without faults.

    Attributes:
        config: what it means.
        tree: where its parts stand.
        outline: what they are.
        lines: of the text.
    """

    config: Any
    tree: Message
    outline: Outline
    lines: Lines


def examine(text: str, name: str) -> Reading | list[PbtxtError]:
    """Reads a text.

    Args:
        text: of a whole file, undecodable bytes as ``errors="surrogateescape"`` gives them.
        name: of the file, for messages.

    Returns:
        What it says, or its faults in order, at least one.
    """
    return _Examination(text, name).run()


class _Examination:
    """Collects the faults of one text."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._lines = Lines(text)
        self._faults: list[PbtxtError] = []

    def run(self) -> Reading | list[PbtxtError]:
        if not self._is_text():
            return self._faults
        tokens = list(scan.tokens(self._text))
        broken: NotATreeError | None = None
        try:
            message = tree.parse(tokens, len(self._text))
        except NotATreeError as error:
            broken, message = error, error.partial
        found = outline(message, model_config_pb2.ModelConfig.DESCRIPTOR)
        left_out = [misfit.span for misfit in found.misfits]
        for misfit in found.misfits:
            cut = _CUT_BY_COMMENT.match(self._text, misfit.start)
            self._fault(misfit.start, misfit.kind, misfit.what, f"{misfit.fix}{_IS_COMMENT if cut else ''}")
        self._placeholders(tokens)
        self._undecodable(tokens)
        if self._faults or broken:
            left_out += tree.fields_with(message, _is_unreadable)
        closing = broken.closing if broken else ""
        config = self._parsed(f"{_blanked(self._text[: message.span.end], left_out)}{closing}")
        if broken and not self._stands_at(broken.offset):
            hidden = _HIDDEN_IN_COMMENT.search(self._text[max(0, broken.offset - _MOST_HIDDEN) : broken.offset])
            self._fault(broken.offset, "syntax", broken.what, f"{broken.fix}{_IS_COMMENT if hidden else ''}")
        if self._faults:
            return sorted(self._faults, key=lambda fault: (fault.line, fault.column))
        return Reading(config, message, found, self._lines)

    def _fault(self, offset: int, kind: Kind, what: str, fix: str) -> None:
        self._faults.append(PbtxtError(self._name, *self._lines.place(offset), kind, what, fix))

    def _stands_at(self, offset: int) -> bool:
        """Whether a fault is known there."""
        return any((fault.line, fault.column) == self._lines.place(offset) for fault in self._faults)

    def _is_text(self) -> bool:
        """Whether the whole can be looked at; otherwise that is the only fault."""
        if self._text.startswith(_UTF_16_MARKS):
            self._fault(0, "encoding", "the file is UTF-16", "save it as UTF-8 without a byte order mark")
        elif self._text.startswith(_BYTE_ORDER_MARK):
            self._fault(0, "encoding", "a byte order mark, which servers refuse", "save it as UTF-8 without one")
        elif (nul := self._text.find("\0")) >= 0:
            self._fault(nul, "syntax", "a NUL character, which ends the text for servers", "remove it")
        elif found := _NEVER_FROM_BYTES.search(self._text):
            self._fault(found.start(), "encoding", "half of a surrogate pair, which no file can have", "remove it")
        return not self._faults

    def _undecodable(self, tokens: Iterable[Token]) -> None:
        """The first byte that is not UTF-8; in comments they do no harm."""
        if not _UNDECODABLE.search(self._text):
            return
        for token in tokens:
            if found := _UNDECODABLE.search(token.text):
                byte = ord(found.group()) & 0xFF
                what = f"the byte 0x{byte:02X}, which is not UTF-8"
                fix = "save the file as UTF-8" if token.sort is Sort.STRING else "remove it"
                self._fault(token.start + found.start(), "encoding", what, fix)
                return

    def _placeholders(self, tokens: Iterable[Token]) -> None:
        for placeholder, names in templates.placeholders(tokens):
            where = f"in {shown('.'.join(names), _MOST_WORDS)}" if names else "at the top of the file"
            what = f"the placeholder {shown(placeholder.text)} {where}"
            self._fault(placeholder.start, "placeholder", what, "fill in the template, or write what it stands for")

    def _parsed(self, text: str) -> Any:
        """What protobuf makes of it; adds what it balks at."""
        made = model_config_pb2.ModelConfig()
        try:
            text_format.Parse(text, made)
        except text_format.ParseError as error:
            offset = self._lines.offset(error.GetLine() or 1, error.GetColumn() or 1)
            self._fault(offset, "syntax", *_protobufs_words(error, text, offset))
        except (ValueError, OverflowError) as error:
            what = f"protobuf: {shown(str(error), _MOST_WORDS)}"
            self._fault(0, "syntax", what, "correct the value that it speaks of")
        return made


def _protobufs_words(error: Exception, text: str, offset: int) -> tuple[str, str]:
    """What is wrong and what to write, without the line that protobuf quotes."""
    start, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
    quoted = text[start : end if end >= 0 else None]
    words = str(error).partition(" : ")[2].removeprefix(f"'{quoted}': ")
    fix = next((fix for pattern, fix in _REMEDIES if pattern.match(words)), "correct it")
    return f"protobuf: {shown(words, _MOST_WORDS).rstrip('.')}", fix


def _is_unreadable(token: Token) -> bool:
    return any(True for _ in templates.left_in(token)) or _UNDECODABLE.search(token.text) is not None


def _blanked(text: str, spans: Iterable[Span]) -> str:
    """A text with spaces in the place of what is left out, so that all else stands where it stood."""
    pieces, end = [], 0
    for start, stop in sorted(spans):
        if stop > end:
            pieces += [text[end : max(start, end)], re.sub(r"[^\n]", " ", text[max(start, end) : stop])]
            end = stop
    return "".join((*pieces, text[end:]))
