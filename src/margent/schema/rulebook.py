"""Everything that a schema's rules mean for codes and for values, or every fault that they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from margent.errors import Fault
from margent.schema.allowed import StructuralZeros
from margent.schema.layout import Layout, layout_of
from margent.schema.parts import QuantileBins
from margent.schema.rule_check import contradictions, possible_codes
from margent.schema.rule_tables import Placed, Tables, Written, is_wide, no_room
from margent.schema.rule_values import Joint, equal_tables, joints, value_faults
from margent.schema.rules import (
    MOST_RULES,
    Determines,
    Equal,
    Implication,
    Never,
    Order,
    Sum,
    columns_of_rule,
    read_rule,
)

if TYPE_CHECKING:
    from margent.schema.fields import Schema


@dataclass(frozen=True, eq=False)
class Rulebook:
    """A schema's rules at work: zeros over codes, columns drawn together, and columns written from others.

    ``witness`` is one row of codes that obeys every rule, by column of the rules.

    Privacy: none: a function of the schema.
    """

    zeros: StructuralZeros
    joints: tuple[Joint, ...]
    written: tuple[Written, ...]
    witness: Mapping[str, int]


def make_rulebook(schema: Schema) -> tuple[Rulebook | None, list[Fault]]:
    """The rulebook of a schema whose fields are sound, or every fault of its rules with its JSON pointer.

    Privacy: none: a function of the schema.
    """
    faults: list[Fault] = []
    if len(schema.rules) > MOST_RULES:
        return None, [Fault("/margent/rules", f"at most {MOST_RULES:,} rules are possible")]
    read = [(place, read_rule(raw, f"/margent/rules/{place}", faults)) for place, raw in enumerate(schema.rules)]
    rules = [Placed(place, rule) for place, rule in read if rule is not None]
    rules = [placed for placed in rules if not _column_faults(placed, schema, faults)]
    named = {name for placed in rules for name in columns_of_rule(placed.rule)}
    layouts = {field.name: layout_of(field, schema.missing_of(field)) for field in schema.fields if field.name in named}
    tables = Tables(layouts, faults=faults)
    of_values: list[Placed] = []
    for placed in rules:
        if isinstance(placed.rule, Implication | Never):
            tables.conditions(placed)
        elif isinstance(placed.rule, Determines):
            tables.determines(placed)
        elif found := value_faults(placed, layouts):
            faults += found
        else:
            of_values.append(placed)
    for placed in of_values:
        if isinstance(placed.rule, Equal):
            factors, found = equal_tables(placed, layouts, tables.room)
            tables.factors += factors
            faults += found
    together, factors, found = joints(of_values, layouts, tables.room)
    tables.factors += factors
    faults += found
    faults += _twice_written(tables.written, rules, layouts)
    if not faults and tables.room.refused is not None:
        faults.append(no_room(tables.room.refused))
    if faults:
        return None, faults
    start = {name: np.arange(layout.size) != layout.unlisted for name, layout in layouts.items()}
    values = {name: layout.values for name, layout in layouts.items()}
    faults, witness = contradictions(rules, tables.factors, start, values)
    if faults:
        return None, faults
    possible = possible_codes(tables.factors, start)
    zeros = StructuralZeros(tuple(tables.factors), possible)
    return Rulebook(zeros, tuple(together), tuple(tables.written), witness), []


def _column_faults(placed: Placed, schema: Schema, faults: list[Fault]) -> bool:
    """Write down which columns of a rule cannot be spoken of; True where there are any."""
    fields = {field.name: field for field in schema.fields}
    before = len(faults)
    for name in columns_of_rule(placed.rule):
        field = fields.get(name)
        if field is None:
            faults.append(Fault(placed.pointer, f"{name!r} is not a field; name a column of the table"))
        elif field.role != "model":
            faults.append(Fault(placed.pointer, f"{name!r} has role {field.role}; rules speak of modeled columns"))
        elif field.open_set is not None or field.relative_to is not None or isinstance(field.bins, QuantileBins):
            message = f"the codes of {name!r} are not in the schema; give it categories, or minimum, maximum and bins"
            faults.append(Fault(placed.pointer, message))
        elif field.spikes:
            message = f"{name!r} has spikes, which are codes of their own; make its values a list (enum) to use it here"
            faults.append(Fault(placed.pointer, message))
        elif field.decode is not None and isinstance(placed.rule, Equal | Order | Sum):
            message = f"values of {name!r} would be drawn with others: take out its decode, or this rule"
            faults.append(Fault(placed.pointer, message))
    return len(faults) > before


def _twice_written(written: list[Written], rules: list[Placed], layouts: Mapping[str, Layout]) -> list[Fault]:
    """Columns of wide bins that one rule writes and another says something about values of."""
    faults = []
    targets = {own.column for own in written}
    for placed in rules:
        if isinstance(placed.rule, Implication | Never):
            continue
        for name in columns_of_rule(placed.rule):
            own = isinstance(placed.rule, Determines) and placed.rule.column == name
            others = [p for p in rules if isinstance(p.rule, Determines) and p.rule.column == name and p is not placed]
            if name in targets and is_wide(layouts[name]) and (not own or others):
                message = f"{name!r} is determined by another rule; give it a closed list (enum) to use it here too"
                faults.append(Fault(placed.pointer, message))
    return faults
