"""Whether the pages of a Parquet file end where their columns do. Arrow believes a page's header before it looks.

Arrow sets aside, and fills, as many bytes as a page is said to have (up to 2 GiB) before it finds that the file has
fewer. So the headers, which stand between the pages, are read first; the pages are passed over.
"""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

_HEADER = 128
"""Bytes looked at for a page's header; more only where one holds long texts in its statistics."""

_MOST_HEADER = 2**24
"""Bytes of the longest header that Arrow reads."""

_PADDING = 100
"""Bytes that a column may be longer than it says: one early writer forgot those of a header (PARQUET-816)."""

_MOST_VALUES = 200
"""Values in a page's header, which has about twenty."""

_TRUTHS, _ONE_BYTE, _WHOLE, _DOUBLE, _TEXT, _LISTS, _STRUCTURE = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
_BYTES = {1: 0, 2: 0, _ONE_BYTE: 1, _DOUBLE: 8, _TEXT: 0}
"""What follows a value's kind: a truth lies in the kind itself, a text says how long it is."""

_NO_HEADER = "a page has no header"


def require_whole_pages(source: Any, header: Any, group: int, names: Collection[str], places: Collection[int]) -> None:
    """Return if each page of the named columns in a row group ends within its column and within the file.

    Shapes: ``source`` is an Arrow file or buffer, ``header`` what the file says of itself; ``places`` are those of
    the columns that pyarrow reads for the names.
    Cost: some 20 microseconds a page, of which writers make one in a mebibyte or in 20,000 rows.
    Privacy: private rows; what it raises holds none.
    Raises: ValueError (with fixed text) where a page is longer, or pyarrow's own where a column's description is
        damaged.
    """
    _require_descriptions(source.size(), header, group, names)
    described = header.row_group(group)
    for place in places:
        _require_whole_column(source, described.column(place))


def _require_descriptions(size: int, header: Any, group: int, names: Collection[str]) -> None:
    """Let pyarrow's reader, which raises, see the columns' descriptions before any other: those end the process.

    It makes a reader of every column before it reads a page of the first.
    """
    import pyarrow.parquet as pq

    pages = _NoPages(size)
    file = pq.ParquetFile(pages, metadata=header, buffer_size=1, pre_buffer=False)
    try:
        next(file.iter_batches(batch_size=1, row_groups=[group], columns=list(names), use_threads=False), None)
    except Exception:
        if not pages.asked:
            raise


class _NoPages(io.RawIOBase):
    """A file of some size of which nothing can be read; ``asked`` once a page was asked for.

    It ends where it begins and raises nothing: of what Python raises Arrow writes a text, source lines and all.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0
        self.asked = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, _size: int = -1) -> bytes:
        self.asked = True
        return b""


def _require_whole_column(source: Any, chunk: Any) -> None:
    """Pass over pages as Arrow's reader does: until the column has the values that it says it has."""
    dictionary, at = chunk.dictionary_page_offset, chunk.data_page_offset
    at = dictionary if dictionary and 0 < dictionary < at else at
    end = min(at + chunk.total_compressed_size + _PADDING, source.size())
    missing = chunk.num_values
    while missing > 0 and at < end:
        page = _page(source, at, end)
        at += page.header + page.bytes
        missing -= page.values
        if page.bytes < 0 or page.values < 0 or at > end:
            raise ValueError("a page is longer than its column")


@dataclass(frozen=True)
class _Page:
    """The bytes of a page's header, those of the page as it lies in the file, and its values (0 in a dictionary)."""

    header: int
    bytes: int
    values: int


def _page(source: Any, at: int, end: int) -> _Page:
    """The page whose header begins at ``at`` (Parquet's PageHeader: 3 is its size, 5 and 8 are two kinds of data)."""
    size = _HEADER
    while True:
        data = source.read_at(min(size, end - at), at)
        try:
            reader = _Compact(data)
            fields, length = reader.structure(), reader.at
        except IndexError:
            if len(data) < size or size >= _MOST_HEADER:
                raise ValueError(_NO_HEADER) from None
            size = min(size * 16, _MOST_HEADER)
            continue
        data_page = fields.get(5) or fields.get(8) or {}
        stored, values = fields.get(3), data_page.get(1, 0) if isinstance(data_page, dict) else None
        if isinstance(stored, int) and isinstance(values, int):
            return _Page(length, stored, values)
        raise ValueError(_NO_HEADER)


@dataclass(eq=False)
class _Compact:
    """Thrift's compact protocol: numbers have seven bits a byte, the sign lowest; a structure is a run of fields."""

    data: bytes
    at: int = 0
    values: int = 0

    def structure(self) -> dict[int, Any]:
        """The fields of a structure by number: numbers, structures, and None for what is neither."""
        fields: dict[int, Any] = {}
        number = 0
        while (start := self.byte()) & 15:  # a kind of 0 is the end, whatever the other half of its byte says
            number = number + (start >> 4) if start >> 4 else self.signed()
            fields[number] = self.value(start & 15)
        return fields

    def value(self, kind: int) -> Any:
        self.values += 1
        if self.values > _MOST_VALUES:
            raise ValueError(_NO_HEADER)
        if kind in _WHOLE:
            return self.signed()
        if kind == _STRUCTURE:
            return self.structure()
        if kind in _LISTS:
            return self.list()
        if kind not in _BYTES:
            raise ValueError(_NO_HEADER)  # maps, which no part of Parquet has
        self.skip(self.number() if kind == _TEXT else _BYTES[kind])
        return None

    def list(self) -> None:
        """Pass over a list or a set, of which a page's header has none so far."""
        start = self.byte()
        kind = start & 15
        for _ in range(start >> 4 if start >> 4 < 15 else self.number()):
            self.value(_ONE_BYTE if kind in _TRUTHS else kind)

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise IndexError

    def signed(self) -> int:
        found = self.number()
        return (found >> 1) ^ -(found & 1)

    def number(self) -> int:
        """A number without a sign."""
        data, at, found = self.data, self.at, 0
        for shift in range(0, 70, 7):
            byte = data[at]
            at += 1
            found |= (byte & 127) << shift
            if byte < 128:
                self.at = at
                return found
        raise ValueError(_NO_HEADER)
