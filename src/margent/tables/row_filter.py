"""Conditions on one row of a database's table: a small language that can say nothing about any other row.

    age >= 18 AND (region IN ('N', 'S') OR NOT closed = true) AND left IS NULL

Columns are compared with constants, and nothing else: no function, no column beside a column, no query. So whatever is
written, a row is kept or not by what it holds itself. Each constant is turned into its column's type before the rows
are looked at, so that no row can make the comparison fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from margent.errors import UsageError
from margent.tables.address import quoted

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")+")
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>\w+)|(?P<sign><=|>=|<>|!=|[=<>(),]))""",
    re.VERBOSE,
)
_COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_DEEPEST = 32
_FORM = (
    "a condition compares columns with constants: age >= 18 AND (region IN ('N', 'S') OR NOT closed = true) AND "
    "gone IS NULL; with =, <>, <, <=, >, >=, BETWEEN x AND y, IN, IS NULL, AND, OR, NOT and parentheses, texts in "
    "single quotes and odd names in double ones. What needs more is a query: query=SQL with --query-is-row-wise"
)

Literal = Callable[[str, str], str]
"""SQL of a constant (its text) in the type of a column (its name)."""


@dataclass(frozen=True)
class RowFilter:
    """A condition that was read: its words, of which none has been looked up yet.

    Privacy: none: a function of the operator's text. It may hold private constants, and is never shown.
    """

    tokens: tuple[tuple[str, str], ...] = field(repr=False)

    @staticmethod
    def read(text: str) -> RowFilter:
        """Raise UsageError with the form of a condition where the text holds a sign that none has."""
        return RowFilter(tuple(_tokens(text)))

    def as_sql(self, columns: Sequence[str], literal: Literal) -> str:
        """The condition as SQL: names quoted, constants through ``literal``, everything in parentheses.

        ``columns`` are the names there are; capitals and small letters count where two differ in nothing else.

        Raises: UsageError where it is no condition, or names a column that there is not.

        >>> known = ["age", "n"]
        >>> RowFilter.read("age >= 18 or n in ('x')").as_sql(known, lambda text, name: f"<{text}>")
        '(("age" >= <18>) OR ("n" IN (<x>)))'
        """
        reading = _Reading(self.tokens, columns, literal)
        made = reading.either(0)
        if reading.place != len(self.tokens):
            raise UsageError(f"the where= of a database's address cannot be read to its end; {_FORM}")
        return made


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, end = 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise UsageError(f"the where= of a database's address holds a sign that no condition has; {_FORM}")
        kind, word = found.lastgroup, found[found.lastgroup]
        if kind in ("text", "name"):
            word = word[1:-1].replace(word[0] * 2, word[0])
        yield kind, word
        place = found.end()


def proved_condition(
    where: str, kinds: Mapping[str, str], spelled: Callable[[str], str], prove: Callable[[str], object]
) -> str:
    """A condition as SQL whose constants are cast to their columns' types, each cast once proved to be no fault.

    ``kinds``: the type of each column in the database's words; ``spelled``: a text as a literal there; ``prove``:
    evaluates a constant, and raises where it is no value of its type.

    Privacy: none: constants are tried alone, no row is looked at.
    Raises: UsageError naming the column, not the constant.
    """

    def literal(text: str, column: str) -> str:
        made = f"CAST({spelled(text)} AS {kinds[column]})"
        sound = True
        try:
            prove(made)
        except Exception:
            sound = False
        if not sound:
            raise UsageError(f"the where= of the address holds a constant that is no value of column {column!r}")
        return made

    return RowFilter.read(where).as_sql(list(kinds), literal)


@dataclass
class _Reading:
    """Recursive descent over the words of a condition."""

    tokens: tuple[tuple[str, str], ...]
    columns: Sequence[str]
    literal: Literal
    place: int = 0

    def either(self, depth: int) -> str:
        """One or more parts joined by OR."""
        parts = [self.both(depth)]
        while self.took("OR"):
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def both(self, depth: int) -> str:
        """One or more parts joined by AND."""
        parts = [self.one(depth)]
        while self.took("AND"):
            parts.append(self.one(depth))
        return parts[0] if len(parts) == 1 else f"({' AND '.join(parts)})"

    def one(self, depth: int) -> str:
        """A comparison, or a part behind NOT or in parentheses."""
        if depth > _DEEPEST:
            raise UsageError(f"the where= of a database's address is nested more than {_DEEPEST} deep")
        if self.took("NOT"):
            return f"(NOT {self.one(depth + 1)})"
        if self.took("("):
            inner = self.either(depth + 1)
            self.require(")")
            return inner
        return self.comparison()

    def comparison(self) -> str:
        """A column held against constants."""
        kind, word = self.next()
        if kind not in ("name", "word"):
            raise self.fault()
        column = self.column(word)
        if self.took("IS"):
            negated = "NOT " if self.took("NOT") else ""
            self.require("NULL")
            return f"({quoted(column)} IS {negated}NULL)"
        negated = "NOT " if self.took("NOT") else ""
        if self.took("IN"):
            self.require("(")
            listed = [self.constant(column)]
            while self.took(","):
                listed.append(self.constant(column))
            self.require(")")
            return f"({quoted(column)} {negated}IN ({', '.join(listed)}))"
        if self.took("BETWEEN"):
            low = self.constant(column)
            self.require("AND")
            return f"({quoted(column)} {negated}BETWEEN {low} AND {self.constant(column)})"
        kind, sign = self.next()
        if negated or kind != "sign" or sign not in _COMPARISONS:
            raise self.fault()
        return f"({quoted(column)} {_COMPARISONS[sign]} {self.constant(column)})"

    def column(self, word: str) -> str:
        """The column of that name; capitals and small letters count only where two columns differ in nothing else."""
        if word in self.columns:
            return word
        near = [name for name in self.columns if name.casefold() == word.casefold()]
        if len(near) != 1:
            raise UsageError(
                "the where= of a database's address names a column that the table does not have (texts stand in "
                f"single quotes, names in none or in double ones); {_FORM}"
            )
        return near[0]

    def constant(self, column: str) -> str:
        """The next word as a constant of the column's type."""
        kind, word = self.next()
        if kind not in ("text", "number") and not (kind == "word" and word.lower() in ("true", "false")):
            raise self.fault()
        return self.literal(word, column)

    def took(self, wanted: str) -> bool:
        """Whether the next word is this one, which is then behind us."""
        if self.place == len(self.tokens):
            return False
        kind, word = self.tokens[self.place]
        if kind not in ("word", "sign") or word.upper() != wanted:
            return False
        self.place += 1
        return True

    def require(self, wanted: str) -> None:
        """Take this word or refuse the condition."""
        if not self.took(wanted):
            raise self.fault()

    def next(self) -> tuple[str, str]:
        """Take whatever word is next."""
        if self.place == len(self.tokens):
            raise self.fault()
        self.place += 1
        return self.tokens[self.place - 1]

    def fault(self) -> UsageError:
        """What to say of a condition that breaks off or goes wrong; the condition itself is not repeated."""
        return UsageError(f"the where= of a database's address is no condition (word {self.place}); {_FORM}")
