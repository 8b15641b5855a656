"""CHECK expressions of PostgreSQL: the bounds and lists of single columns in them; everything else is not read.

age BETWEEN 0 AND 110    sex IN ('F', 'M')    (a >= 0) AND (a < 10)    x IS NULL OR x > 0
((sex)::text = ANY ((ARRAY['F'::character varying, 'M'::character varying])::text[]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from margent.schema.imports.sql_tokens import Token

Relation = Literal["<", "<=", ">", ">=", "in", "null", "not null"]

MAX_DEPTH = 50
_FLIPPED: dict[str, Relation] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SECOND_WORDS = {"character": ("varying",), "double": ("precision",), "bit": ("varying",)}


@dataclass(frozen=True, slots=True)
class Said:
    """One column stands in this relation to these values (texts, as they are written)."""

    column: str
    relation: Relation
    values: tuple[str, ...] = ()


class _NotReadError(Exception):
    """An expression of another form."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A column, a value, a list of values, a condition on a column, or several expressions together."""

    sort: Literal["column", "value", "list", "said", "and", "or", "unknown"]
    text: str = ""
    said: Said | None = None
    parts: tuple[_Node, ...] = ()


_UNKNOWN = _Node("unknown")


def read_check(tokens: Sequence[Token]) -> tuple[list[Said], bool]:
    """What a CHECK says of single columns, and whether that is all it says.

    >>> from margent.schema.imports.sql_tokens import sql_statements
    >>> (tokens,) = sql_statements("age >= 0 AND age < 10 AND f(age)", "")
    >>> read_check(tokens)
    ([Said(column='age', relation='>=', values=('0',)), Said(column='age', relation='<', values=('10',))], False)
    """
    reader = _Reader(list(tokens))
    try:
        node = reader.either()
        if reader.place < len(reader.tokens):
            return [], False
    except _NotReadError:
        return [], False
    parts = [_said(part) for part in _conjuncts(node)]
    return [each for said in parts for each in said or ()], None not in parts


def _conjuncts(node: _Node) -> Iterator[_Node]:
    if node.sort == "and":
        for part in node.parts:
            yield from _conjuncts(part)
    else:
        yield node


def _said(node: _Node) -> list[Said] | None:
    """What a condition says of one column, or None.

    A value that is absent passes every CHECK, so that "absent, or ..." says what stands after the "or".
    """
    if node.sort == "said" and node.said is not None:
        return [node.said]
    if node.sort != "or":
        return None
    branches = [[_said(part) for part in _conjuncts(branch)] for branch in node.parts]
    if any(said is None for branch in branches for said in branch):
        return None
    found = [[each for said in branch for each in said or ()] for branch in branches]
    if len({each.column for branch in found for each in branch}) != 1:
        return None
    told = [branch for branch in found if any(each.relation != "null" for each in branch)]
    if len(told) == 1:
        return told[0]
    if told and all(len(branch) == 1 and branch[0].relation == "in" for branch in told):
        return [Said(told[0][0].column, "in", tuple(value for branch in told for value in branch[0].values))]
    return None


@dataclass
class _Reader:
    """A reader of one expression by recursive descent, to a fixed depth."""

    tokens: list[Token]
    place: int = 0
    depth: int = 0
    end: Token = field(default_factory=lambda: Token("odd", "", 0))

    def peek(self, ahead: int = 0) -> Token:
        """The next token, or one that is nothing."""
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else self.end

    def take(self) -> Token:
        """The next token, passed over."""
        token = self.peek()
        self.place += 1
        return token

    def word(self, *words: str) -> bool:
        """Pass over a keyword if it is next."""
        if self.peek().is_word(*words):
            self.place += 1
            return True
        return False

    def sign(self, *signs: str) -> bool:
        """Pass over a sign if it is next."""
        if self.peek().is_sign(*signs):
            self.place += 1
            return True
        return False

    def need(self, sign: str) -> None:
        """Pass over a sign that must be there."""
        if not self.sign(sign):
            raise _NotReadError

    def either(self) -> _Node:
        """Expressions joined by OR."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _NotReadError
        parts = [self.both()]
        while self.word("or"):
            parts.append(self.both())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else _Node("or", parts=tuple(parts))

    def both(self) -> _Node:
        """Expressions joined by AND."""
        parts = [self.single()]
        while self.word("and"):
            parts.append(self.single())
        return parts[0] if len(parts) == 1 else _Node("and", parts=tuple(parts))

    def single(self) -> _Node:
        """One condition, or what stands in parentheses."""
        negated = False
        while self.word("not"):
            negated = True
        if negated:
            self.condition()
            return _UNKNOWN
        return self.condition()

    def condition(self) -> _Node:
        """A comparison, or whatever else an operand may be followed by."""
        left = self.operand()
        token = self.peek()
        if token.is_sign("=", "<", "<=", ">", ">=", "<>", "!="):
            self.place += 1
            if self.word("any"):
                self.need("(")
                right = self.operand()
                self.need(")")
                return _one_of(left, right) if token.text == "=" else _UNKNOWN
            return _compared(left, token.text, self.operand())
        if self.word("between"):
            low = self.operand()
            if not self.word("and"):
                raise _NotReadError
            high = self.operand()
            return _Node("and", parts=(_compared(left, ">=", low), _compared(left, "<=", high)))
        if token.is_word("in"):
            self.place += 1
            return _one_of(left, self.listed("(", ")"))
        if self.word("is"):
            wanted: Relation = "not null" if self.word("not") else "null"
            if not self.word("null"):
                raise _NotReadError
            return _Node("said", said=Said(left.text, wanted)) if left.sort == "column" else _UNKNOWN
        return left

    def listed(self, opening: str, closing: str) -> _Node:
        """Values between brackets."""
        self.need(opening)
        parts = [self.operand()]
        while self.sign(","):
            parts.append(self.operand())
        self.need(closing)
        return _Node("list", parts=tuple(parts)) if all(part.sort == "value" for part in parts) else _UNKNOWN

    def operand(self) -> _Node:
        """A column, a value or an expression in parentheses; casts after it are passed over."""
        token = self.take()
        if token.is_sign("("):
            node = self.either()
            self.need(")")
        elif token.is_sign("-", "+") and self.peek().kind == "number":
            node = _Node("value", ("-" if token.text == "-" else "") + self.take().text)
        elif token.kind in ("text", "number"):
            node = _Node("value", token.text)
        elif token.is_word("array") and self.peek().is_sign("["):
            node = self.listed("[", "]")
        elif token.is_word("date", "timestamp", "time", "timestamptz") and self.peek().kind == "text":
            node = _Node("value", self.take().text)
        elif token.is_word("true", "false"):
            node = _Node("value", token.text)
        elif token.kind in ("word", "name") and self.peek().is_sign("("):
            node = self.called()
        elif token.kind in ("word", "name"):
            node = _Node("column", token.text)
            while self.sign("."):
                node = _Node("column", self.take().text)
        else:
            raise _NotReadError
        while self.sign("::"):
            self.cast()
        return node

    def called(self) -> _Node:
        """Pass over what a function is called with; what it gives is not known."""
        depth = 0
        while self.place < len(self.tokens):
            token = self.take()
            depth += token.is_sign("(") - token.is_sign(")")
            if depth == 0:
                return _UNKNOWN
        raise _NotReadError

    def cast(self) -> None:
        """Pass over the name of a type."""
        token = self.take()
        if token.kind not in ("word", "name"):
            raise _NotReadError
        while self.sign("."):
            token = self.take()
        self.word(*_SECOND_WORDS.get(token.text, ()))
        if self.sign("("):
            while not self.sign(")"):
                if not (self.take().kind == "number" or self.tokens[self.place - 1].is_sign(",")):
                    raise _NotReadError
        if self.word("with", "without") and not (self.word("time") and self.word("zone")):
            raise _NotReadError
        if self.sign("["):
            self.need("]")


def _compared(left: _Node, sign: str, right: _Node) -> _Node:
    if left.sort == "value" and right.sort == "column":
        left, sign, right = right, _FLIPPED.get(sign, sign), left
    if left.sort != "column" or right.sort != "value":
        return _UNKNOWN
    if sign == "=":
        return _Node("said", said=Said(left.text, "in", (right.text,)))
    if sign in ("<", "<=", ">", ">="):
        return _Node("said", said=Said(left.text, sign, (right.text,)))  # type: ignore[arg-type]
    return _UNKNOWN


def _one_of(left: _Node, right: _Node) -> _Node:
    if left.sort != "column" or right.sort != "list":
        return _UNKNOWN
    return _Node("said", said=Said(left.text, "in", tuple(part.text for part in right.parts)))
