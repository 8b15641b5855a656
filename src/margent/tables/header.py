"""The header of a table against the schema: every difference at once, before anything is charged."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from margent.errors import Fault, SchemaError
from margent.schema.container import container_faults

if TYPE_CHECKING:
    from margent.schema.fields import Schema

_USUAL_DELIMITERS = ";\t|,"
_SHOWN = 8


def check_columns(
    found: Sequence[str],
    schema: Schema,
    *,
    declared: Any = None,
    delimiter: str | None = None,
    index: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> None:
    """Every column of the schema is in the table exactly once, of a type it can be read from, and no other is.

    Order does not matter. A field of role drop may be absent: it is dropped already (unless it holds the ids of the
    persons to protect). A text file's first line that has no name of the schema may be a row: it is not shown.
    ``declared`` is the Arrow schema of a typed container; ``delimiter`` is that of a text file; ``index`` names what a
    pandas frame holds beside its columns, ``beside`` the columns that a folder's names give.

    Privacy: none: names and declared types only.
    Raises: SchemaError listing all differences.
    """
    listed = [field.name for field in schema.fields]
    optional = {field.name for field in schema.fields if field.role == "drop"} - set(schema.columns_read)
    if delimiter is not None and found and _may_be_a_row(found, listed, delimiter):
        raise SchemaError(
            [Fault("header", _not_a_header(found, listed))], "the table's header, held against the schema,"
        )
    other = _other_delimiter(found, listed, delimiter)
    found = [*found, *beside]
    present = set(found)
    missing = [name for name in listed if name not in present and name not in optional]
    faults: list[Fault] = []
    if other:
        faults.append(
            Fault(found[0], f"the header is one column that holds {other}: did you mean --delimiter {other}?")
        )
    faults += _duplicates(found)
    faults += [Fault(name, _missing(name, [] if other else found, listed, index)) for name in missing]
    if not other:
        faults += [
            Fault(name or f"column {place}", _extra(name))
            for place, name in enumerate(found, start=1)
            if name not in listed and found.index(name) == place - 1
        ]
    if declared is not None:
        faults += container_faults(schema, declared)
    if faults:
        raise SchemaError(faults, "the table's header, held against the schema,")


def _may_be_a_row(found: Sequence[str], listed: Sequence[str], delimiter: str) -> bool:
    """Whether no name of the schema, in whatever case, is in a text file's first line."""
    near = {name.strip().casefold() for name in listed}
    known = any(name.strip().casefold() in near for name in found) or _other_delimiter(found, listed, delimiter)
    return bool(listed) and not known


def _not_a_header(found: Sequence[str], listed: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in listed[:_SHOWN]) + (", ..." if len(listed) > _SHOWN else "")
    return (
        f"the first line has {len(found)} cell{'s' if len(found) != 1 else ''}, none of which is a column of the "
        f"schema ({len(listed)}: {shown}). It is not shown, since it may be a row. If it is one, say --no-header; if "
        "the names differ, rename them on one side; if there is one cell only, check --delimiter; lines above the "
        "header must go"
    )


def _duplicates(found: Sequence[str]) -> list[Fault]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(found, start=1):
        places.setdefault(name, []).append(place)
    return [
        Fault(
            name,
            f"the column name occurs {len(where)} times, at positions {_listed(where)}: rename all but one",
        )
        for name, where in places.items()
        if len(where) > 1
    ]


def _listed(places: Sequence[int]) -> str:
    *most, last = [str(place) for place in places]
    return f"{', '.join(most)} and {last}"


def _missing(name: str, found: Sequence[str], listed: Sequence[str], index: Sequence[str]) -> str:
    if name in index:
        return "the table has it as its index only: call reset_index() first"
    spare = [other for other in found if other not in listed]
    near = [other for other in spare if other.strip().casefold() == name.strip().casefold()]
    near = near or difflib.get_close_matches(name, spare, n=2)
    hint = f"; the nearest it has: {', '.join(repr(other) for other in near)}" if near else ""
    return f"the schema has this column and the table does not{hint}"


def _extra(name: str) -> str:
    what = "the table has this column" if name else "the table has a column without a name"
    return f'{what} and the schema does not: add it there with "role": "drop", or take it out of the table'


def _other_delimiter(found: Sequence[str], listed: Sequence[str], delimiter: str | None) -> str | None:
    """The delimiter, as one types it, that would split a one-column header into names of the schema."""
    if delimiter is None or len(found) != 1 or found[0] in listed:
        return None
    for other in _USUAL_DELIMITERS:
        if other != delimiter and any(part.strip('" ') in listed for part in found[0].split(other)[1:]):
            return '"\\t"' if other == "\t" else f'"{other}"'
    return None
