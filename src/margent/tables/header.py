"""The header of a table against the schema: every difference at once, before anything is charged."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from margent.errors import Fault, SchemaError
from margent.schema.container import container_faults

if TYPE_CHECKING:
    from margent.schema.fields import Schema

_USUAL_DELIMITERS = ";\t|,"
_SHOWN = 8
_LONGEST_SHOWN = 200
_SUBJECT = "the table's header, held against the schema,"


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
    persons to protect). A text file's first line may be a row: where it has no name of the schema that is all that is
    said, and where it has less than half of them its other cells are counted, not shown.
    ``declared`` is the Arrow schema of a typed container; ``delimiter`` is that of a text file; ``index`` names what a
    pandas frame holds beside its columns, ``beside`` the columns that a folder's names give.

    Privacy: none: names and declared types only.
    Raises: SchemaError listing all differences.
    """
    listed = [field.name for field in schema.fields]
    columns = [*found, *beside]
    if len(columns) == len(listed) and set(columns) == set(listed):  # as most are; a schema has no name twice
        if declared is not None and (misfits := container_faults(schema, declared)):
            raise SchemaError(misfits, _SUBJECT)
        return
    optional = {field.name for field in schema.fields if field.role == "drop"} - set(schema.columns_read)
    if delimiter is not None and found and _may_be_a_row(found, listed, delimiter):
        raise SchemaError([Fault("header", _not_a_header(found, listed))], _SUBJECT)
    other = _other_delimiter(found, listed, delimiter)
    known = set(listed)
    hidden = delimiter is not None and (bool(other) or not _half(found, known - optional - set(beside)))
    places: dict[str, list[int]] = {}
    for place, name in enumerate(columns, start=1):
        places.setdefault(name, []).append(place)
    called = {
        name: name if name in known or (name and _is_a_name(name)) else f"column {where[0]}"
        for name, where in places.items()
        if name in known or not hidden
    }
    missing = [name for name in listed if name not in places and name not in optional]
    faults: list[Fault] = []
    if other:
        faults.append(Fault("header", f"it is one column that holds {other}: did you mean --delimiter {other}?"))
    elif hidden and (strange := sum(name not in known for name in found)):
        faults.append(Fault("header", _not_shown(strange, len(found))))
    faults += [Fault(shown, _twice(places[name])) for name, shown in called.items() if len(places[name]) > 1]
    faults += [Fault(name, _missing(name, [] if hidden else columns, listed, index)) for name in missing]
    faults += [Fault(shown, _extra(name)) for name, shown in called.items() if name not in known]
    if declared is not None:
        faults += container_faults(schema, declared)
    if faults:
        raise SchemaError(faults, _SUBJECT)


def _may_be_a_row(found: Sequence[str], listed: Sequence[str], delimiter: str) -> bool:
    """Whether no name of the schema, in whatever case, is in a text file's first line."""
    near = {name.strip().casefold() for name in listed}
    known = any(name.strip().casefold() in near for name in found) or _other_delimiter(found, listed, delimiter)
    return bool(listed) and not known


def _half(found: Sequence[str], needed: Collection[str]) -> bool:
    """Whether a text file's first line has, in whatever case, at least half of the names that it needs."""
    names = {name.strip().casefold() for name in found}
    return 2 * sum(name.strip().casefold() in names for name in needed) >= len(needed)


def _not_shown(strange: int, cells: int) -> str:
    are = "is no column" if strange == 1 else "are no columns"
    return (
        f"{strange} of the first line's {cells} cells {are} of the schema, and less than half of the schema's "
        "columns are among the others. What is not the schema's is not shown, since the line may be a row. If it is "
        'one, say --no-header; if not, add its columns to the schema with "role": "drop", or take them out of the table'
    )


def _is_a_name(text: str) -> bool:
    """Whether a text can be shown as the name of a column: in one line, and not too long."""
    return len(text) <= _LONGEST_SHOWN and not set(text) & set("\r\n")


def _not_a_header(found: Sequence[str], listed: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in listed[:_SHOWN]) + (", ..." if len(listed) > _SHOWN else "")
    return (
        f"the first line has {len(found)} cell{'s' if len(found) != 1 else ''}, none of which is a column of the "
        f"schema ({len(listed)}: {shown}). It is not shown, since it may be a row. If it is one, say --no-header; if "
        "the names differ, rename them on one side; if there is one cell only, check --delimiter; lines above the "
        "header must go"
    )


def _twice(places: Sequence[int]) -> str:
    *most, last = map(str, places)
    return f"the column name occurs {len(places)} times, at positions {', '.join(most)} and {last}: rename all but one"


def _missing(name: str, found: Sequence[str], listed: Sequence[str], index: Sequence[str]) -> str:
    if name in index:
        return "the table has it as its index only: call reset_index() first"
    spare = [other for other in found if other not in listed and _is_a_name(other)]
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
