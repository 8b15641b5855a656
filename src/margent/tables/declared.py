"""What a table declares of itself before any row: column names, and types where the container has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from margent.errors import TableError
from margent.tables.address import is_address, require_path
from margent.tables.options import TEXT_KINDS, ReadOptions, kind_of_path
from margent.tables.spark_session import is_spark_frame, spark_name


def declared_columns(
    table: str | Path | Any, options: ReadOptions, listed: Sequence[str] = ()
) -> tuple[tuple[str, ...], Any | None]:
    """Column names, and the Arrow schema of a typed container or a database (None for text, which declares no types).

    ``table`` is a file, a folder of files, a database's address, or a table of Spark. ``listed`` are the names of the
    schema, where there is one: in a text file only they may hold line ends.

    Privacy: none spent; header, container and catalog only.
    Raises: TableError when there is no such table or it cannot be read as what it is called.
    """
    if is_spark_frame(table) or spark_name(table) is not None:
        from margent.tables.spark import declared_by_spark

        return declared_by_spark(table)
    if is_address(table):
        from margent.tables.database import address_columns

        return address_columns(str(table), options)
    path = Path(table)
    try:
        return _file_columns(path, options, listed)
    except OSError as error:
        reason = error.strerror or "input/output error"
    # Outside the handler: the system's error names the file, whose folders' names may hold cells.
    raise TableError(f"{path}: cannot be opened: {reason}")


def _file_columns(path: Path, options: ReadOptions, listed: Sequence[str]) -> tuple[tuple[str, ...], Any | None]:
    require_path(path)
    if path.is_dir():
        from margent.tables.folders import folder_columns

        names, types = folder_columns(path, options, listed)
        if types is None:
            _require_header(path, options)
        return names, types
    kind = kind_of_path(path, options)
    if kind in TEXT_KINDS:
        from margent.tables.text import text_header

        _require_header(path, options)
        return text_header(path, kind, options, listed)[0], None
    from margent.tables.columnar import declared_types

    declared = declared_types(path, kind)
    return tuple(declared.names), declared


def _require_header(path: Path, options: ReadOptions) -> None:
    """Refuse a text table whose first line is a row: its cells are no names, and nobody may be shown them."""
    if not options.header:
        raise TableError(
            f"{path}: without a header (--no-header) the table names no columns: write them into the schema yourself, "
            "in the order of the table, or begin from a codebook or a sheet"
        )
