"""Whole Parquet files inside of Spark's tasks: put together from the lines that Spark hands over, read as everywhere.

Spark's own way from a Parquet file to Python takes every value by itself. Here it only carries the file, on whatever
file system it lies: as lines of "text", cut wherever a zero stands. No line is looked at as text on the way, and with
the zeros behind them the lines are the file. (Files as single values would be held by Java a dozen times over. Zeros
come often enough: once in 256 bytes of compressed data, and in what compresses badly, keys and codes, as often.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from margent.errors import TableError
from margent.schema.container import stored_type
from margent.tables.gathering import gathered
from margent.tables.parquet_rows import parquet_batches
from margent.tables.plain import plain
from margent.tables.snapshot import UNREADABLE
from margent.tables.spark_pieces import Piece, pieces
from margent.tables.spark_types import cast_to

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATOR = "0"

_LONGEST_STORED = 2**24
"""Bytes of a column that may lie uncompressed in one place: words without a zero would be one line."""


@dataclass(frozen=True)
class WholeFiles:
    """Rows inside of Parquet files that come as lines, each beside the length of its file (`whole_files`).

    ``declared`` has the wanted columns with the types that Spark hands their values over in; ``listed`` names those of
    few values; ``exact``: whether names are compared with their case.
    """

    declared: pa.Schema
    listed: tuple[str, ...]
    exact: bool
    settings: Mapping[str, str] = field(default_factory=dict)

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As `margent.tables.spark_forms.Form`; one file is held at a time.

        Raises: TableError where a file cannot be read as what the table declares; its text is fixed.
        """
        files = whole_files(batches)
        while (content := next(files, None)) is not None:
            yield from gathered(self._read(content))
            del content

    def examine(self, content: Any) -> None:
        """Look at a file's footer, not at its rows.

        Privacy: names, types and how columns are stored only.
        Raises: TableError where its columns are not to be read here as Spark would, whatever it says is no message.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        header = pq.read_metadata(pa.BufferReader(content))
        self._parts(header)
        for group in range(header.num_row_groups):
            for place in range(header.num_columns):
                column = header.row_group(group).column(place)
                stored = column.compression == "UNCOMPRESSED"
                if stored and column.total_compressed_size > _LONGEST_STORED:
                    raise TableError("a column is not compressed")
                if not stored and not pa.Codec.is_available(column.compression.lower()):
                    raise TableError("a column is compressed in a way that is not known here")

    def _read(self, content: Any) -> Iterator[pa.RecordBatch]:
        """The rows of one file; what goes wrong is told without the text of the reader's own exception."""
        try:
            yield from self._opened(content)
        except MemoryError:
            raise
        except Exception:
            raise TableError(UNREADABLE) from None

    def _opened(self, content: Any) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        header = pq.read_metadata(pa.BufferReader(content))
        parts = self._parts(header)
        found = [part.name for part in parts if part.name is not None]
        listed = [part.name for part, each in zip(parts, self.declared, strict=True) if each.name in self.listed]
        source, names = pa.BufferReader(content), self.declared.names
        for batch in parquet_batches(source, found, [name for name in listed if name is not None], header, 0):
            yield plain(pa.RecordBatch.from_arrays([part.of(batch) for part in parts], names=names), names)

    def _parts(self, header: Any) -> list[_Part]:
        kinds = header.schema.to_arrow_schema()
        stored = [header.schema.column(place) for place in range(header.num_columns)]
        old = {column.path for column in stored if column.physical_type == "INT96"}
        parts = []
        for each in self.declared:
            name = self._name(each.name, kinds.names)
            given = None if name is None else stored_type(kinds.field(name).type)
            parts.append(_Part(name, each.type, None if given is None else cast_to(given, each.type, old=name in old)))
        return parts

    def _name(self, wanted: str, names: Sequence[str]) -> str | None:
        """A column's name in the file, by Spark's rule; None where the file lacks it, as files of older schemas may."""
        same = [name for name in names if name == wanted or (not self.exact and name.lower() == wanted.lower())]
        if len(same) > 1:
            raise TableError("two columns have names that Spark takes for one another")
        return same[0] if same else None


@dataclass(frozen=True)
class _Part:
    """Where a wanted column is in a file, and the type to cast it to, if any."""

    name: str | None
    declared: Any
    target: Any

    def of(self, batch: pa.RecordBatch) -> Any:
        import pyarrow as pa

        if self.name is None:
            return pa.nulls(batch.num_rows, self.declared)
        column = batch.column(self.name)
        return column if self.target is None else column.cast(self.target)


def whole_files(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The contents of files as buffers, from lines, each with a separator behind it, beside the lengths of their files.

    All lines of a file come together. A buffer is let go of before the next is made, if its taker lets go of it too.

    Privacy: private.
    Raises: TableError where lines and lengths do not agree.
    """
    import pyarrow as pa

    held: Any = None
    filled = size = 0
    for batch in batches:
        lines, lengths = batch.column(0), batch.column(1).to_numpy()
        _, places, data = lines.buffers()
        width = np.int64 if pa.types.is_large_string(lines.type) else np.int32
        ends = np.frombuffer(places, width)[lines.offset : lines.offset + len(lines) + 1]
        letters = np.frombuffer(data if data is not None else b"", np.uint8)
        line = 0
        while line < len(lines):
            if held is None:
                filled, size = 0, int(lengths[line])
                held = np.empty(size + len(SEPARATOR), np.uint8)
            # Up to the line that ends the file; behind that may stand a separator more than the file has.
            missing = int(ends[line]) + size - filled
            stop = min(len(lines), line + int(np.searchsorted(ends[line + 1 :], missing)) + 1)
            part = letters[ends[line] : ends[stop]]
            if (lengths[line:stop] != size).any() or filled + part.size > held.size:
                raise TableError(UNREADABLE)
            held[filled : filled + part.size] = part
            filled, line = filled + part.size, stop
            if filled >= size:
                yield pa.py_buffer(held[:size])
                held = None
    if held is not None:
        raise TableError(UNREADABLE)


def examined(form: WholeFiles, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: files in, a piece for each that can be read as the table declares it out; else a fault.

    Privacy: footers only.
    """

    def work() -> Iterator[Piece]:
        for content in whole_files(batches):
            form.examine(content)
            yield Piece("sound", 0, b"")

    return pieces(work)
