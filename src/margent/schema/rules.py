"""Rules between columns as the schema declares them: public facts that hold in every row that is written.

    {"if": {"age": {"below": 15}}, "then": {"status": "never-married"}}
    {"never": {"sex": "M", "pregnant": "yes"}}
    {"equal": ["county", "countyAgain"]}
    {"order": ["admission", "discharge"], "strict": false}
    {"sum": ["wages", "rents"], "equals": "income"}
    {"determines": ["zip"], "column": "county", "mapping": {"02138": "Middlesex"}}

Nothing about a rule is ever learned from rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from margent.errors import Fault
from margent.schema.rule_conditions import Condition, read_conditions
from margent.schema.strict_json import Members

MOST_RULES = 1000
"""Rules a schema may have."""

Conditions = tuple[tuple[str, Condition], ...]


@dataclass(frozen=True, slots=True)
class Implication:
    """Where all of ``when`` is true of a row, all of ``then`` is."""

    when: Conditions
    then: Conditions


@dataclass(frozen=True, slots=True)
class Never:
    """No row has all of ``together``."""

    together: Conditions


@dataclass(frozen=True, slots=True)
class Equal:
    """The cells of ``columns`` are the same: the same value, or missing in all of them."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """The values of ``columns`` do not fall (``strict``: they grow); cells that are no value are passed over."""

    columns: tuple[str, ...]
    strict: bool


@dataclass(frozen=True, slots=True)
class Sum:
    """The values of ``parts`` add up to that of ``total``, in rows where all of them are values."""

    parts: tuple[str, ...]
    total: str


@dataclass(frozen=True, slots=True)
class Determines:
    """``column`` is a function of ``determinants``: one line of ``mapping`` for all their values, None for missing.

    A row in which a determinant is missing, and which no line names, is free.
    """

    determinants: tuple[str, ...]
    column: str
    mapping: tuple[tuple[Any, ...], ...]


Rule = Implication | Never | Equal | Order | Sum | Determines


def columns_of_rule(rule: Rule) -> tuple[str, ...]:
    """The columns that a rule speaks of, each once, in its own order.

    >>> columns_of_rule(Sum(("a", "b"), "c"))
    ('a', 'b', 'c')
    """
    if isinstance(rule, Implication):
        names = [name for name, _ in (*rule.when, *rule.then)]
    elif isinstance(rule, Never):
        names = [name for name, _ in rule.together]
    elif isinstance(rule, Equal | Order):
        names = list(rule.columns)
    elif isinstance(rule, Sum):
        names = [*rule.parts, rule.total]
    else:
        names = [*rule.determinants, rule.column]
    return tuple(dict.fromkeys(names))


def read_rule(raw: Any, pointer: str, faults: list[Fault]) -> Rule | None:
    """The rule that a JSON object states, or None with faults that say where it cannot be understood.

    >>> read_rule({"order": ["admission", "discharge"]}, "/margent/rules/0", [])
    Order(columns=('admission', 'discharge'), strict=False)
    """
    members = Members(raw, pointer, faults)
    if not members.sound:
        return None
    kinds = [key for key in _KINDS if key in members]
    if len(kinds) != 1:
        forms = ", ".join(f'"{key}"' for key in _KINDS)
        members.fault(None, f"a rule has one of the keys {forms}; this one has {len(kinds)} of them")
        return None
    known, read = _KINDS[kinds[0]]
    members.refuse_unknown((*known, "description"), {})
    members.text("description")
    before = len(faults)
    found = read(members)
    return found if len(faults) == before else None


def _implication(members: Members) -> Rule | None:
    when, then = read_conditions(members, "if"), read_conditions(members, "then")
    return Implication(when, then) if when and then else None


def _never(members: Members) -> Rule | None:
    together = read_conditions(members, "never")
    return Never(together) if together else None


def _equal(members: Members) -> Rule | None:
    columns = _names(members, "equal", 2)
    return Equal(columns) if columns else None


def _order(members: Members) -> Rule | None:
    columns, strict = _names(members, "order", 2), members.flag("strict")
    return Order(columns, strict) if columns else None


def _sum(members: Members) -> Rule | None:
    parts, total = _names(members, "sum", 1), members.text("equals")
    if total is None and members.sound:
        members.fault(None, 'needs "equals": the column that holds the sum')
    if parts and total in parts:
        members.fault("equals", f"{total!r} cannot be a part of itself")
    return Sum(parts, total) if parts and total is not None and members.sound else None


def _determines(members: Members) -> Rule | None:
    given, column = _names(members, "determines", 1), members.text("column")
    if column is None and members.sound:
        members.fault(None, 'needs "column": the column that is determined')
    if given and column in given:
        members.fault("column", f"{column!r} cannot determine itself")
    if not given or column is None or not members.sound:
        return None
    lines = _mapping(members, len(given))
    return Determines(given, column, lines) if lines is not None else None


def _mapping(members: Members, determinants: int) -> tuple[tuple[Any, ...], ...] | None:
    """The lines of ``mapping``: an object value -> value, or a list of lines [determinants ..., value]."""
    raw = members.get("mapping")
    if isinstance(raw, Mapping) and set(raw) in ({"file"}, {"file", "sha256"}):
        members.fault("mapping", "a file is looked for beside the schema file; here, list the lines themselves")
        return None
    if isinstance(raw, Mapping) and determinants == 1:
        lines: list[Any] = [[key, value] for key, value in raw.items()]
    elif isinstance(raw, list | tuple):
        lines = list(raw)
    else:
        form = "an object value -> value, or a list of lines" if determinants == 1 else "a list of lines"
        members.fault("mapping" if "mapping" in members else None, f'needs "mapping": {form} [determinants ..., value]')
        return None
    for place, line in enumerate(lines):
        scalars = isinstance(line, list | tuple) and all(_is_scalar(cell) for cell in line)
        if not scalars or len(line) != determinants + 1:
            members.fault("mapping", f"line {place}: expected a list of {determinants + 1} values (null for missing)")
            return None
    return tuple(tuple(line) for line in lines)


def _is_scalar(cell: Any) -> bool:
    return cell is None or isinstance(cell, str | int | float | bool)


def _names(members: Members, key: str, least: int) -> tuple[str, ...]:
    """A list of at least so many different column names, or none with a fault."""
    given = members.items(key)
    if given is None:
        return ()
    if not all(isinstance(name, str) for name in given) or len(set(given)) != len(given) or len(given) < least:
        members.fault(key, f"expected a list of at least {least} different column names")
        return ()
    return tuple(given)


_KINDS: Mapping[str, tuple[Sequence[str], Callable[[Members], Rule | None]]] = {
    "if": (("if", "then"), _implication),
    "never": (("never",), _never),
    "equal": (("equal",), _equal),
    "order": (("order", "strict"), _order),
    "sum": (("sum", "equals"), _sum),
    "determines": (("determines", "column", "mapping", "mappingFile"), _determines),
}
