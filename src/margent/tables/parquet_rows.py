"""Rows of Parquet files in batches whose size follows the texts, however few bytes the file says them with.

A file may say a long text once, in a dictionary, and point to it from millions of rows; its size tells nothing of what
the rows take when they are spelled out. So a row group's dictionaries are looked at before it is read. Of texts that
are in no dictionary the average in their row group counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

from margent.machine import BLOCK_ROWS, LEAST_ROWS, TEXT_BYTES, block_rows
from margent.schema.encodings import is_text_of_any_length, is_view
from margent.tables.gathering import gathered
from margent.tables.parquet_pages import require_whole_pages
from margent.tables.sound import sound

if TYPE_CHECKING:
    import pyarrow as pa

READ_AHEAD = 2**20
"""Bytes read at a time of each column; without it pyarrow holds a whole column chunk, as large as a row group."""

_LONG = TEXT_BYTES // BLOCK_ROWS
"""Bytes of a text from which on a block full of it would be too large."""

_KEPT = frozenset({"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"})
"""The encodings of which pyarrow makes dictionaries; with others it fails."""

_SHARED = "DELTA_BYTE_ARRAY"
"""The encoding whose texts say how much of the text before they begin with."""


def parquet_batches(
    source: Any, wanted: Sequence[str], listed: Collection[str], header: Any = None, read_ahead: int = READ_AHEAD
) -> Iterator[pa.RecordBatch]:
    """One pass over the rows of a Parquet file, open or in memory, whose ``header`` may have been read already.

    ``listed`` columns have few values: of texts in these, the file's own dictionaries are kept, not spelled out, and
    so are those of any column where they hold long texts. A column may be a dictionary in one batch and none in the
    next.

    Shapes: the wanted columns, in any order and perhaps with others; at most `block_rows` rows at a time, fewer where
    texts are long.
    Privacy: private rows.
    """
    import pyarrow.parquet as pq

    found = pq.read_metadata(source) if header is None else header
    # Names with dots may bring other columns along; the open table selects by name again.
    # A damaged file's indices may point outside of the dictionaries that are kept.
    yield from map(sound, _Pass(source, found, tuple(wanted), frozenset(listed), read_ahead).batches())


@dataclass(frozen=True)
class _Plan:
    """How a row group is read: columns whose dictionaries are kept, and rows read at a time."""

    kept: frozenset[str]
    rows: int


@dataclass(eq=False)
class _Pass:
    """One pass; ``spelled`` are the columns that turned out to have more texts than a dictionary is kept of."""

    source: Any
    header: Any
    wanted: tuple[str, ...]
    listed: frozenset[str]
    read_ahead: int
    spelled: set[str] = field(default_factory=set)
    files: dict[frozenset[str], Any] = field(default_factory=dict)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows. Row groups that keep no dictionary are read together: batches go on from one to the next."""
        planned = ((group, self._plan(group)) for group in self._groups())
        for (plan, alone), groups in groupby(planned, lambda each: (each[1], each[0] if each[1].kept else None)):
            if alone is None:
                yield from self._read([group for group, _ in groups], plan)
            else:
                yield from self._of_group(alone, plan)

    def _groups(self) -> Iterator[int]:
        for group in range(self.header.num_row_groups):
            require_whole_pages(self.source, self.header, group, self.wanted, self._places)
            yield group

    def _of_group(self, group: int, plan: _Plan) -> Iterator[pa.RecordBatch]:
        """The rows of one row group whose dictionaries are kept, until one of those turns out to be none.

        Where the file gave a dictionary up, pyarrow makes one of all texts that come behind, to the group's end.
        """
        done = 0
        while True:
            many, first, passed = set[str](), dict[str, int](), done
            for batch in self._read([group], plan):
                skipped = min(passed, batch.num_rows)
                passed -= skipped
                if skipped < batch.num_rows:
                    yield batch.slice(skipped)
                    done += batch.num_rows - skipped
                many = {name for name in plan.kept if _grew(batch.column(name).dictionary, first, name)}
                if many:
                    break
            self.spelled |= many
            if not many or done == self.header.row_group(group).num_rows:
                return
            plan = self._plan(group)

    def _read(self, groups: Sequence[int], plan: _Plan) -> Iterator[pa.RecordBatch]:
        file, most = self._opened(plan.kept), block_rows(len(self.wanted))
        read = file.iter_batches(batch_size=plan.rows, row_groups=list(groups), columns=list(self.wanted))
        yield from gathered(read, most) if plan.rows < most else read  # a block at a time is done all that follows

    def _opened(self, kept: frozenset[str]) -> Any:
        """The file as pyarrow reads it with some dictionaries kept; the source stays its giver's to close."""
        import pyarrow.parquet as pq

        if kept in self.files:
            return self.files[kept]
        self.files[kept] = pq.ParquetFile(
            self.source,
            metadata=self.header,
            read_dictionary=[self._texts[name] for name in kept],
            buffer_size=self.read_ahead,
            pre_buffer=False,
            # In nanoseconds, which is what pyarrow makes of 96 bits by itself, the year 9999 is a day of 1816.
            coerce_int96_timestamp_unit="us",
            arrow_extensions_enabled=False,  # of texts with one (JSON) no dictionary would be kept
        )
        return self.files[kept]

    def _plan(self, group: int) -> _Plan:
        described = self.header.row_group(group)
        chunks = {name: described.column(place) for name, place in self._texts.items()}
        kept = frozenset(name for name, chunk in chunks.items() if _KEPT.issuperset(chunk.encodings))
        longest = self._longest(group, kept)
        long = {name for name, length in longest.items() if length > _LONG}
        kept = kept & (long | self.listed) - self.spelled
        widths = [self._fixed, *(length for name, length in longest.items() if name not in kept)]
        widths += [chunk.total_uncompressed_size // max(chunk.num_values, 1) for chunk in chunks.values()]
        rows = min(block_rows(len(self.wanted)), max(TEXT_BYTES // max(*widths, 1), 1))
        # Nothing tells how long texts are that begin as others do.
        shared = any(_SHARED in chunk.encodings for chunk in chunks.values())
        return _Plan(kept, min(rows, LEAST_ROWS) if shared else rows)

    def _longest(self, group: int, names: frozenset[str]) -> dict[str, int]:
        """Bytes of the longest text in the dictionary of each column, found with one row: dictionaries come whole."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not names:
            return {}
        file = self._opened(names)
        batch = next(file.iter_batches(batch_size=1, row_groups=[group], columns=list(names), use_threads=False), None)
        if batch is None:
            return {}
        found = {}
        for name in names:
            lengths = pc.binary_length(batch.column(name).dictionary.view(pa.binary()))
            found[name] = pc.max(lengths).as_py() or 0
        return found

    @cached_property
    def _places(self) -> list[int]:
        """The places of all columns that pyarrow reads for the wanted names: of any whose path begins with one."""
        wanted = frozenset(self.wanted)
        paths = [accumulate(column.path.split("."), "{}.{}".format) for column in self._columns]
        return [place for place, path in enumerate(paths) if not wanted.isdisjoint(path)]

    @cached_property
    def _texts(self) -> dict[str, int]:
        """The wanted columns of text or bytes of any length, with their places among the file's columns."""
        declared = self.header.schema.to_arrow_schema()
        kinds = {name: _stored(declared.field(name).type) for name in self.wanted if name in declared.names}
        named = {name for name, kind in kinds.items() if is_text_of_any_length(kind) or is_view(kind)}
        return {column.path: place for place, column in enumerate(self._columns) if _is_own(column, named)}

    @cached_property
    def _columns(self) -> list[Any]:
        schema = self.header.schema
        return [schema.column(place) for place in range(self.header.num_columns)]

    @cached_property
    def _fixed(self) -> int:
        """Bytes of the widest cell among columns whose cells are of one length."""
        fixed = [each for each in self._columns if each.physical_type == "FIXED_LEN_BYTE_ARRAY"]
        return max((each.length or 0 for each in fixed if _is_own(each, self.wanted)), default=0)


def _is_own(column: Any, names: Collection[str]) -> bool:
    """Whether it is one of the named columns of the table, and no part of one whose path is spelled as that name."""
    return column.path in names and column.name == column.path


def _grew(values: Any, first: dict[str, int], name: str) -> bool:
    """Whether a dictionary has more values than when it was ``first`` seen with any, and too many or too long ones."""
    if not len(values):
        return False
    more = len(values) > first.setdefault(name, len(values))
    return more and bool(len(values) > BLOCK_ROWS or values.nbytes > TEXT_BYTES)


def _stored(kind: Any) -> Any:
    import pyarrow as pa

    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
