# SPDX-License-Identifier: Apache-2.0
"""Where the parts of a text stand: fields in messages, as they are written, without knowing what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from priority_router.ops.pbtxt.scan import Sort, Token, shown

MOST_DEEP: Final = 100
"""Brackets in each other; Triton's own definitions need under 20."""

_CLOSING: Final = {"{": "}", "<": ">"}
_GLUED: Final = (Sort.NAME, Sort.NUMBER, Sort.PLACEHOLDER)
"""What makes one word with a placeholder that it touches."""


class Span(NamedTuple):
    """Half-open, in characters of the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value that is no message.

    Attributes:
        tokens: strings that stand side by side, which are one value, or one token of another sort.
    """

    tokens: tuple[Token, ...]

    @property
    def span(self) -> Span:
        """From its first token to the end of its last."""
        return Span(self.tokens[0].start, self.tokens[-1].end)


@dataclass(frozen=True, slots=True)
class Message:
    """What stands between two brackets, or a whole text.

    Attributes:
        span: brackets included.
        inner: brackets left out.
        fields: in the order of the text.
    """

    span: Span
    inner: Span
    fields: tuple[Field, ...]


Value = Scalar | Message


@dataclass(frozen=True, slots=True)
class Field:
    """A name and what is written for it.

    Attributes:
        token: its name.
        values: one, or the elements of its list, which may be none.
        list_span: of the list with its brackets; None where it has none.
        span: from the name to the end of the value or list.
        separator: of a ``,`` or ``;`` behind it; None where there is none.
    """

    token: Token
    values: tuple[Value, ...]
    list_span: Span | None
    span: Span
    separator: Span | None

    @property
    def name(self) -> str:
        """As it is written."""
        return self.token.text

    @property
    def whole(self) -> Span:
        """With its separator."""
        return Span(self.span.start, self.separator.end if self.separator else self.span.end)


class NotATreeError(Exception):
    """The text is no sequence of fields.

    Attributes:
        offset: of the first character that does not fit.
        what: what is wrong; without a full stop.
        fix: what to write; likewise.
        partial: what is complete in front of it, with all that is open closed behind that.
        closing: the brackets that close it.
    """

    def __init__(self, offset: int, what: str, fix: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what
        self.fix = fix
        self.partial = Message(Span(0, 0), Span(0, 0), ())
        self.closing = ""


def parse(tokens: Iterable[Token], length: int) -> Message:
    """Reads a text.

    Any field may have a list or a message: what it may have is protobuf's to say. A placeholder may stand for a name,
    a value or whole fields; the latter is a field of that name, without values.

    Args:
        tokens: of the whole text, in order.
        length: of the text in characters.

    Returns:
        The text's message.

    Raises:
        NotATreeError: at the first place where that fails.
    """
    reader = _Reader(tokens, length)
    try:
        return reader.read()
    except NotATreeError as error:
        error.partial, error.closing = reader.partial()
        raise


def fields_with(message: Message, wanted: Callable[[Token], bool]) -> list[Span]:
    """The innermost fields whose name or value has such a token; with their separators."""
    found = []
    waiting = [message]
    while waiting:
        for field in waiting.pop().fields:
            tokens = [token for value in field.values if isinstance(value, Scalar) for token in value.tokens]
            if any(map(wanted, (field.token, *tokens))):
                found.append(field.whole)
            else:
                waiting += [value for value in field.values if isinstance(value, Message)]
    return found


class _Level:
    """A message or a list that has been opened and not yet closed."""

    def __init__(self, opening: Token | None, closing: str, name: Token | None) -> None:
        """Opens it.

        Args:
            opening: its bracket; None: it is the whole text.
            closing: its other bracket; empty: the end of the text.
            name: of the field that has it; None for the whole text and in a list.
        """
        self.opening = opening
        self.closing = closing
        self.name = name
        self.fields: list[Field] = []
        self.values: list[Value] = []


class _Reader:
    """A loop instead of a recursion."""

    def __init__(self, tokens: Iterable[Token], length: int) -> None:
        self._tokens = list(tokens)
        self._length = length
        self._next = 0
        self._levels = [_Level(None, "", None)]
        self._complete = 0

    def read(self) -> Message:
        whole = self._levels[0]
        while True:
            level = self._levels[-1]
            if level.closing == "]":
                self._element(level)
            elif level is whole and self._next == len(self._tokens):
                return Message(Span(0, self._length), Span(0, self._length), tuple(whole.fields))
            elif level is not whole and self._take(level.closing):
                self._close_message(level)
            else:
                self._field(level)

    def partial(self) -> tuple[Message, str]:
        """What is complete so far, and the brackets that close it."""
        end, closing = self._complete, ""
        while len(self._levels) > 1:
            level = self._levels.pop()
            closing += level.closing
            start = level.opening.start if level.opening else 0
            above = self._levels[-1]
            values: tuple[Value, ...] = tuple(level.values)
            in_list = Span(start, end) if level.closing == "]" else None
            if in_list is None:
                values = (Message(Span(start, end), Span(start + 1, end), tuple(level.fields)),)
            if level.name is None:
                above.values += values
            else:
                above.fields.append(Field(level.name, values, in_list, Span(level.name.start, end), None))
        return Message(Span(0, end), Span(0, end), tuple(self._levels[0].fields)), closing

    # Tokens.

    def _look(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _looks(self, marks: str) -> bool:
        """Whether the next token is one of these characters."""
        return self._next < len(self._tokens) and self._tokens[self._next].text in marks

    def _take(self, marks: str) -> Token | None:
        """The next token if it is one of these characters."""
        if not self._looks(marks):
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def _word(self) -> Token:
        """The next token, with what touches it where a placeholder is among them."""
        first = last = self._tokens[self._next]
        self._next += 1
        texts = [first.text]
        while (token := self._look()) is not None and token.start == last.end:
            if token.sort not in _GLUED or Sort.PLACEHOLDER not in (token.sort, last.sort):
                break
            texts.append(token.text)
            last = token
            self._next += 1
        return first if last is first else Token(Sort.PLACEHOLDER, "".join(texts), first.start)

    # Fields and values.

    def _field(self, level: _Level) -> None:
        token = self._look()
        if token is None or token.sort not in _GLUED:
            raise self._no_name(level, token)
        name = self._word()
        if name.sort is Sort.PLACEHOLDER and not self._looks(":{<["):
            self._finish(level, name, (), None)
            return
        colon = self._take(":")
        if self._looks("["):
            self._open("]", name)
        elif self._looks("{<"):
            self._open(_CLOSING[self._tokens[self._next].text], name)
        elif colon:
            self._finish(level, name, (self._scalar(level, name),), None)
        else:
            raise self._fault(f"':' is missing behind {_shown(name)}", f"write {_shown(name)}: VALUE")

    def _scalar(self, level: _Level, name: Token | None) -> Scalar:
        token = self._look()
        if token is None or token.sort not in (*_GLUED, Sort.STRING):
            what = f"the value of {_shown(name)}" if name else "a value"
            raise self._unfit(level, token, f"{what} is missing", "write it")
        if token.sort is not Sort.STRING:
            return Scalar((self._word(),))
        first = self._next
        while (token := self._look()) is not None and token.sort is Sort.STRING:
            self._next += 1
        return Scalar(tuple(self._tokens[first : self._next]))

    def _open(self, closing: str, name: Token | None) -> None:
        if len(self._levels) > MOST_DEEP:
            raise self._fault(f"more than {MOST_DEEP} brackets are open", "close those that are complete")
        self._levels.append(_Level(self._tokens[self._next], closing, name))
        self._next += 1
        self._complete = self._tokens[self._next - 1].end

    def _close_message(self, level: _Level) -> None:
        self._levels.pop()
        start, end = level.opening.start if level.opening else 0, self._tokens[self._next - 1].end
        value = Message(Span(start, end), Span(start + 1, end - 1), tuple(level.fields))
        above = self._levels[-1]
        if above.closing == "]":
            above.values.append(value)
            self._behind_element(above)
        elif level.name:
            self._finish(above, level.name, (value,), None)

    def _element(self, level: _Level) -> None:
        """The next value in a list, or its end where it has none."""
        if not level.values and self._take("]"):
            self._close_list(level)
        elif self._looks("{<"):
            self._open(_CLOSING[self._tokens[self._next].text], None)
        elif level.values and self._looks("]"):
            raise self._fault("a list ends with ','", "remove the ',' in front of the ']'")
        else:
            level.values.append(self._scalar(level, None))
            self._behind_element(level)

    def _behind_element(self, level: _Level) -> None:
        self._complete = self._tokens[self._next - 1].end
        if self._take("]"):
            self._close_list(level)
        elif not self._take(","):
            raise self._unfit(level, self._look(), "',' or ']' is missing in a list", "write ',' between its values")

    def _close_list(self, level: _Level) -> None:
        self._levels.pop()
        start, end = level.opening.start if level.opening else 0, self._tokens[self._next - 1].end
        if level.name:
            self._finish(self._levels[-1], level.name, tuple(level.values), Span(start, end))

    def _finish(self, level: _Level, name: Token, values: tuple[Value, ...], in_list: Span | None) -> None:
        end = self._tokens[self._next - 1].end
        mark = self._take(",;")
        separator = Span(mark.start, mark.end) if mark else None
        level.fields.append(Field(name, values, in_list, Span(name.start, end), separator))
        self._complete = self._tokens[self._next - 1].end

    # What does not fit.

    def _fault(self, what: str, fix: str) -> NotATreeError:
        """At the next token."""
        token = self._look()
        return NotATreeError(token.start if token else self._length, what, fix)

    def _no_name(self, level: _Level, token: Token | None) -> NotATreeError:
        if token is not None and token.sort is Sort.STRING:
            return self._fault(f"the name of a field is expected, not {_shown(token)}", "write names without quotes")
        if self._looks("["):
            return self._fault("a '[' without a field", "write the field's name in front of it")
        if self._looks("}>]"):
            return self._fault(f"'{token.text if token else ''}' closes nothing", self._closing_advice(level))
        if self._looks(",;"):
            return self._fault("a separator without a field in front of it", "remove it")
        return self._unfit(level, token, "the name of a field is expected", "write NAME: VALUE")

    def _closing_advice(self, level: _Level) -> str:
        return f"write '{level.closing}' or remove it" if level.closing else "remove it"

    def _unfit(self, level: _Level, token: Token | None, what: str, fix: str) -> NotATreeError:
        """What is special at the next token, or else the fault as it is."""
        if token is None and level.opening:
            level_text = f"the '{level.opening.text}' is never closed"
            return NotATreeError(level.opening.start, level_text, f"write its '{level.closing}'")
        if token is not None and token.sort is Sort.UNCLOSED:
            return self._fault("a string has no closing quote", f"write {token.text[0]} at its end, on the same line")
        if token is not None and token.text.startswith("/"):
            return self._fault("'/' begins no comment", "write # in front of a comment")
        if token is not None and token.sort is Sort.OTHER and not token.text.isprintable():
            return self._fault(
                f"the character {_shown(token)}", "remove it: servers take only ASCII outside of strings"
            )
        return self._fault(f"{what}, not {_shown(token)}" if token else what, fix)


def _shown(token: Token) -> str:
    if token.sort is Sort.OTHER and not (token.text.isascii() and token.text.isprintable()):
        return f"U+{ord(token.text):04X}"
    return shown(token.text)
