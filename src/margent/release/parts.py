"""A synthetic table as one file, or as a folder of parts that any reader of such folders takes for one table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margent.errors import UsageError
from margent.synthesizers.blocks import Blocks
from margent.tables.options import FILE_SUFFIXES, TEXT_KINDS, ReadOptions
from margent.tables.write import write_table

if TYPE_CHECKING:
    import pyarrow as pa

MOST_FILES = 100_000


@dataclass(frozen=True)
class Parts:
    """Where the rows of a table go: ``name`` is a file, or a folder of files with ``rows_a_file`` rows each.

    Privacy: none: public options.
    """

    name: str
    kind: str
    rows: int
    rows_a_file: int

    @staticmethod
    def of(blocks: Blocks, kind: str, rows_per_file: int | None) -> Parts:
        """One file for rows of one block and for text; else a file a block, unless ``rows_per_file`` is given.

        Raises: UsageError where that is no positive number, or makes very many files.

        >>> Parts.of(Blocks.of(10**6, 16, 0), "parquet", None).files
        1
        >>> parts = Parts.of(Blocks.of(10**8, 16, 0), "parquet", None)
        >>> parts.files, parts.paths[-1]
        (96, 'synthetic.parquet/part-00095.parquet')
        >>> Parts.of(Blocks.of(10**8, 16, 0), "csv", None).paths
        ('synthetic.csv',)
        """
        own = blocks.rows if kind in TEXT_KINDS else blocks.size
        limit = own if rows_per_file is None else rows_per_file
        if limit < 1 and blocks.rows > 0:
            raise UsageError("rows_per_file must be a whole number of at least 1")
        parts = Parts(f"synthetic{FILE_SUFFIXES[kind]}", kind, blocks.rows, max(limit, 1))
        if parts.files > MOST_FILES:
            raise UsageError(
                f"{parts.files:,} files would be written, and the most are {MOST_FILES:,}: "
                f"ask for at least {-(-blocks.rows // MOST_FILES):,} rows a file"
            )
        return parts

    @property
    def files(self) -> int:
        """How many files there are."""
        return max(1, -(-self.rows // self.rows_a_file))

    @property
    def paths(self) -> tuple[str, ...]:
        """The files' paths inside the release folder, in the order of their rows."""
        if self.files == 1:
            return (self.name,)
        return tuple(f"{self.name}/part-{number:05d}{FILE_SUFFIXES[self.kind]}" for number in range(self.files))

    def write(self, folder: Path, tables: Iterator[pa.Table], declared: Any, options: ReadOptions) -> None:
        """Write the tables, one below the other, to the files.

        Shapes: the tables have ``rows`` rows together.
        Raises: TableError when the disk refuses.
        """
        if self.files > 1:
            (folder / self.name).mkdir()
        rest = _Cut(tables)
        for number, path in enumerate(self.paths, start=1):
            # The last file takes whatever there is, so that the tables are gone through to their very end.
            count = self.rows_a_file if number < self.files else sys.maxsize
            write_table(folder / path, self.kind, rest.rows(count), declared, options)


class _Cut:
    """A stream of tables from which so many rows are taken at a time."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._open: pa.Table | None = None

    def rows(self, count: int) -> Iterator[pa.Table]:
        """Tables of the next ``count`` rows together, or of all that are left; one at least, if it has no rows."""
        while count > 0:
            table = next(self._tables, None) if self._open is None else self._open
            if table is None:
                return
            self._open = table.slice(count) if table.num_rows > count else None
            count -= min(count, table.num_rows)
            yield table.slice(0, table.num_rows if self._open is None else table.num_rows - self._open.num_rows)
