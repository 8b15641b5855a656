"""Statements of PostgreSQL -> tables, columns, enums: CREATE TABLE, CREATE TYPE, COMMENT ON, ALTER TABLE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from margent.schema.imports.sql_tokens import Token

Tokens = Sequence[Token]
_CONSTRAINTS = ("constraint", "primary", "check", "unique", "foreign", "exclude", "like")
_STARTS = ("constraint", "not", "null", "check", "default", "unique", "primary", "references", "generated", "collate",
           "deferrable", "initially", "no", "storage", "compression")  # fmt: skip


@dataclass
class SqlColumn:
    """A column as its table declares it."""

    name: str
    line: int
    type_tokens: Tokens
    required: bool = False
    numbered: bool = False
    references: str | None = None
    comment: str | None = None


@dataclass
class SqlTable:
    """A table: its columns in order, its key, and its CHECKs."""

    name: str
    line: int
    columns: dict[str, SqlColumn] = field(default_factory=dict)
    doubled: list[SqlColumn] = field(default_factory=list)
    key: tuple[str, ...] = ()
    checks: list[Tokens] = field(default_factory=list)
    comment: str | None = None
    odd: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class SqlFile:
    """What a file declares, and the statements that were not read: their first words, first line and number."""

    tables: dict[str, SqlTable] = field(default_factory=dict)
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unread: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, statement: Tokens) -> None:
        """Read one statement, or count it as unread."""
        cursor = _Cursor(statement)
        if cursor.words("create"):
            read = self._create(cursor)
        elif cursor.words("comment", "on"):
            read = self._comment(cursor)
        elif cursor.words("alter", "table"):
            read = self._alter(cursor)
        else:
            read = False
        if not read:
            words = [token.text.upper() for token in statement[:2] if token.kind == "word"]
            two = words[:1] and words[0] in ("CREATE", "ALTER", "COMMENT")
            name = " ".join(words[: 2 if two else 1]) or "a statement"
            line, times = self.unread.get(name, (statement[0].line, 0))
            self.unread[name] = (line, times + 1)

    def _create(self, cursor: _Cursor) -> bool:
        if cursor.words("type"):
            name = cursor.dotted()
            if name is None or not cursor.words("as", "enum"):
                return False
            texts = [token for token in cursor.bracket() or () if not token.is_sign(",")]
            if any(token.kind != "text" for token in texts):
                return False
            self.enums[name] = tuple(token.text for token in texts)
            return True
        while cursor.words("global") or cursor.words("local") or cursor.words("temporary") or cursor.words("temp"):
            pass
        cursor.words("unlogged")
        if not cursor.words("table"):
            return False
        cursor.words("if", "not", "exists")
        line, name = cursor.line, cursor.dotted()
        inner = cursor.bracket()
        if name is None or inner is None or name in self.tables:
            return False
        table = SqlTable(name, line)
        for item in _split_at_commas(inner):
            _item(table, item)
        if cursor.words("inherits"):
            table.odd.append((cursor.line, "columns that it inherits are not read; add them"))
        self.tables[name] = table
        return True

    def _comment(self, cursor: _Cursor) -> bool:
        column = cursor.words("column")
        if not column and not cursor.words("table"):
            return False
        name = cursor.dotted()
        if name is None or not cursor.words("is"):
            return False
        token = cursor.take()
        text = token.text if token is not None and token.kind == "text" else None
        table, _, last = name.rpartition(".") if column else (name, "", "")
        found = self.table(table)
        if found is None or (column and last not in found.columns):
            return False
        if column:
            found.columns[last].comment = text
        else:
            found.comment = text
        return True

    def _alter(self, cursor: _Cursor) -> bool:
        cursor.words("if", "exists")
        cursor.words("only")
        table = self.table(cursor.dotted() or "")
        if table is None:
            return False
        if cursor.words("alter"):
            cursor.words("column")
            column = table.columns.get(cursor.dotted() or "")
            if column is None or not cursor.words("set", "not", "null"):
                return False
            column.required = True
            return True
        if not cursor.words("add"):
            return False
        rest = cursor.rest()
        if not rest or not rest[0].is_word("constraint", "primary", "check"):
            return False
        return _constraint(table, rest)

    def table(self, name: str) -> SqlTable | None:
        """The table of this name, with or without its schema's name before it."""
        if name in self.tables:
            return self.tables[name]
        last = name.rpartition(".")[2]
        same = [table for full, table in self.tables.items() if full.rpartition(".")[2] == last]
        fits = len(same) == 1 and ("." not in name or "." not in same[0].name)
        return same[0] if fits else None


@dataclass
class _Cursor:
    """A place among tokens."""

    tokens: Tokens
    place: int = 0

    @property
    def line(self) -> int:
        """The line of the next token, or of the last."""
        return self.tokens[min(self.place, len(self.tokens) - 1)].line if self.tokens else 0

    def words(self, *words: str) -> bool:
        """Pass over these keywords if they are next, all of them."""
        ahead = self.tokens[self.place : self.place + len(words)]
        if len(ahead) == len(words) and all(token.is_word(word) for token, word in zip(ahead, words, strict=True)):
            self.place += len(words)
            return True
        return False

    def take(self) -> Token | None:
        """The next token, passed over."""
        if self.place >= len(self.tokens):
            return None
        self.place += 1
        return self.tokens[self.place - 1]

    def dotted(self) -> str | None:
        """A name, with the names before it."""
        parts = []
        while self.place < len(self.tokens) and self.tokens[self.place].kind in ("word", "name"):
            parts.append(self.tokens[self.place].text)
            self.place += 1
            if not (self.place < len(self.tokens) and self.tokens[self.place].is_sign(".")):
                return ".".join(parts)
            self.place += 1
        return None

    def bracket(self) -> Tokens | None:
        """What stands in the parentheses that are next; None where there are none, or they are not closed."""
        depth = 0
        for place in range(self.place, len(self.tokens)):
            depth += self.tokens[place].is_sign("(") - self.tokens[place].is_sign(")")
            if depth == 0:
                inner = self.tokens[self.place + 1 : place]
                if place == self.place:
                    return None
                self.place = place + 1
                return inner
        return None

    def rest(self) -> Tokens:
        """All tokens from here on."""
        return self.tokens[self.place :]


def _split_at_commas(tokens: Tokens) -> list[Tokens]:
    """The tokens between commas outside all brackets."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        if depth == 0 and token.is_sign(","):
            items.append([])
        else:
            items[-1].append(token)
    return [item for item in items if item]


def _item(table: SqlTable, item: Tokens) -> None:
    if item[0].is_word(*_CONSTRAINTS):
        if not _constraint(table, item):
            table.odd.append((item[0].line, f"{item[0].text.upper()} of the table is not read; left out"))
        return
    if item[0].kind not in ("word", "name"):
        table.odd.append((item[0].line, "this is no column and no constraint; left out"))
        return
    end, depth = 1, 0
    while end < len(item) and not (depth == 0 and item[end].is_word(*_STARTS)):
        depth += item[end].is_sign("(") - item[end].is_sign(")")
        end += 1
    column = SqlColumn(item[0].text, item[0].line, item[1:end])
    if column.name in table.columns:
        table.doubled.append(column)
    else:
        table.columns[column.name] = column
    _column_constraints(table, column, _Cursor(item, end))


def _column_constraints(table: SqlTable, column: SqlColumn, cursor: _Cursor) -> None:
    while (token := cursor.take()) is not None:
        if token.is_word("not") and cursor.words("null"):
            column.required = True
        elif token.is_word("check"):
            inner = cursor.bracket()
            if inner is not None:
                table.checks.append(inner)
        elif token.is_word("primary") and cursor.words("key"):
            table.key = (column.name,)
            column.required = True
        elif token.is_word("generated"):
            always = cursor.words("always") or cursor.words("by", "default")
            column.numbered = always and cursor.words("as", "identity")
        elif token.is_word("references"):
            column.references = cursor.dotted()
        elif token.is_word("default"):
            cursor.take()  # which may be NULL, and then is no constraint
        elif token.is_sign("("):
            cursor.place -= 1
            if cursor.bracket() is None:
                return


def _constraint(table: SqlTable, item: Tokens) -> bool:
    """Read a constraint of the table; unique and foreign keys say nothing of values."""
    cursor = _Cursor(item)
    if cursor.words("constraint"):
        cursor.dotted()
    if cursor.words("primary", "key"):
        names = [token for token in cursor.bracket() or () if not token.is_sign(",")]
        if not names or any(token.kind not in ("word", "name") for token in names):
            return False
        table.key = tuple(token.text for token in names)
        for name in table.key:
            if name in table.columns:
                table.columns[name].required = True
        return True
    if cursor.words("check"):
        inner = cursor.bracket()
        if inner is not None:
            table.checks.append(inner)
        return inner is not None
    return cursor.words("unique") or cursor.words("foreign", "key")
