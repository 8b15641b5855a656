"""PostgreSQL text -> statements of tokens. Nothing is executed; rows in COPY blocks are passed over unread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from margent.errors import Fault, SchemaError

Kind = Literal["word", "name", "text", "number", "sign", "odd"]


@dataclass(frozen=True, slots=True)
class Token:
    """A word (lower case), a quoted name, a text, a number, a sign, or a literal of a rarer kind; with its line."""

    kind: Kind
    text: str
    line: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords."""
        return self.kind == "word" and self.text in words

    def is_sign(self, *signs: str) -> bool:
        """Whether it is one of these signs."""
        return self.kind == "sign" and self.text in signs


_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*)
  | (?P<block>/\*)
  | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
  | (?P<odd>(?:[bBxXnN]|[uU]&)'(?:[^']|'')*'|[eE]'(?:[^'\\]|\\.|'')*'|[uU]&"(?:[^"]|"")*")
  | (?P<text>'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")+")
  | (?P<word>[^\W\d][\w$]*)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<open>['"])
  | (?P<sign>::|<=|>=|<>|!=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ROWS_END = re.compile(r"^\\\.\r?$", re.MULTILINE)


def sql_statements(text: str, subject: str) -> Iterator[list[Token]]:
    """The statements of a text, each without its semicolon.

    Raises: SchemaError naming the line where a text, name or comment does not end.
    """
    place, line = 0, 1
    statement: list[Token] = []
    while place < len(text):
        match = _TOKEN.match(text, place)
        assert match is not None
        sort, found, end = str(match.lastgroup), match.group(), match.end()
        if sort == "block":
            end = _block_end(text, place)
        elif sort == "dollar":
            closing = text.find(found, end)
            end = closing + len(found) if closing >= 0 else -1
        if end < 0 or sort == "open":
            raise SchemaError([Fault(f"line {line}", "a text, name or comment begins here and does not end")], subject)
        if sort == "sign" and found == "\\" and not statement:
            end = _line_end(text, place)  # a command of psql
        elif sort == "sign" and found == ";":
            if statement:
                yield statement
            if _copies_rows(statement):
                rows = _ROWS_END.search(text, end)
                end = rows.end() if rows else len(text)
            statement = []
        elif sort not in ("blank", "block"):
            statement.append(_token(sort, found, line))
        line += text.count("\n", place, end)
        place = end
    if statement:
        yield statement


def _token(sort: str, found: str, line: int) -> Token:
    if sort == "text":
        return Token("text", found[1:-1].replace("''", "'"), line)
    if sort == "name":
        return Token("name", found[1:-1].replace('""', '"'), line)
    if sort == "word":
        return Token("word", found.lower(), line)
    if sort == "number":
        return Token("number", found, line)
    return Token("sign", found, line) if sort == "sign" else Token("odd", "", line)


def _block_end(text: str, place: int) -> int:
    """Where a comment ends that may hold others; -1 where it does not."""
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(text, place):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    return -1


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _copies_rows(statement: list[Token]) -> bool:
    return bool(statement) and statement[0].is_word("copy") and any(token.is_word("stdin") for token in statement)
