"""Public texts of a schema that a spreadsheet would run as formulas when it opens the released table.

The table is written as the schema spells it; a changed cell would no longer be the declared value. So this warns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from margent.schema.fields import Schema
from margent.schema.labels import scalar_text
from margent.schema.parts import Field

_START = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""Signs that spreadsheets begin formulas with (also in their full width), and blanks that hide one from a reader."""
_PLAIN_NUMBER = re.compile(r"[+\-]?(\d[\d., ]*|\.\d+)([eE][+\-]?\d+)?%?", re.ASCII)
SHOWN = 3


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet may run a cell of this text rather than show it; numbers with a sign are harmless.

    >>> [is_formula(cell) for cell in ("=1+1", "+49 30 1", "-5", "-", "@SUM(A1)", "a=b", "-2+3+cmd|' /C calc'!A0")]
    [True, False, False, True, True, False, True]
    """
    return _START.match(cell) is not None and _PLAIN_NUMBER.fullmatch(cell) is None


def formula_cells(schema: Schema) -> list[dict[str, str]]:
    """The column names and public cells of the written columns that a spreadsheet may run, in the schema's order.

    Privacy: none: a function of the schema.
    """
    return [
        {"column": field.name, "cell": text}
        for field in schema.fields
        if field.role != "drop"
        for text in _public_texts(schema, field)
        if is_formula(text)
    ]


def formula_warnings(cells: Sequence[Mapping[str, str]], table: str = "the synthetic table") -> list[str]:
    """What to know of such cells of ``table``: one sentence for all of them, or none.

    Privacy: none: the schema.
    """
    if not cells:
        return []
    shown = ", ".join(f"{each['cell']!r} (column {each['column']!r})" for each in cells[:SHOWN])
    more = f" and {len(cells) - SHOWN} more" if len(cells) > SHOWN else ""
    return [
        f"a spreadsheet that opens {table} may run these names or cells as formulas: {shown}{more}; they "
        "are written as the schema spells them: respell them if you can, or tell readers to import the columns as text"
    ]


def _public_texts(schema: Schema, field: Field) -> list[str]:
    """The column's name and every text that its cells may be written as, or begin with; numbers left out."""
    texts = [field.name]
    if field.role == "model":
        texts += [scalar_text(item.value) for item in field.listed or ()]
        texts += [special.text for special in field.special]
        texts += [token.text for token in schema.missing_of(field) if field.nullable]
        if field.type == "boolean":
            texts += [*field.spelling.true_values, *field.spelling.false_values]
        if field.spelling.format:
            texts.append(field.spelling.format)
    return texts
