"""Whether the pages of a Parquet file end where their columns do. Arrow believes a page's header before it looks.

Arrow sets aside, and fills, as many bytes as a page is said to have (up to 2 GiB) before it finds that the file has
fewer. So the headers, which stand between the pages, are read first; the pages are passed over.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

_HEADER = 128
"""Bytes looked at for a page's header; more only where one holds long texts in its statistics."""

_MOST_HEADER = 2**24
"""Bytes of the longest header that Arrow reads."""

_PADDING = 100
"""Bytes that a column may be longer than it says: one early writer forgot those of a header (PARQUET-816)."""

_DEPTH = 8
"""Structures inside of each other; a page's header has three."""

_NO_HEADER = "a page has no header"


def require_whole_pages(source: Any, header: Any, group: int, names: Collection[str], places: Collection[int]) -> None:
    """Return if each page of the named columns in a row group ends within its column and within the file.

    Shapes: ``source`` is an Arrow file or buffer, ``header`` what the file says of itself; ``places`` are those of
    the columns that pyarrow reads for the names.
    Cost: some 10 microseconds a page, of which writers make one in a mebibyte or in 20,000 rows.
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
            fields, length = _structure(data, 0, 0)
        except IndexError:
            if len(data) < size or size >= _MOST_HEADER:
                raise ValueError(_NO_HEADER) from None
            size *= 16
            continue
        data_page = fields.get(5) or fields.get(8) or {}
        stored, values = fields.get(3), data_page.get(1, 0) if isinstance(data_page, dict) else None
        if isinstance(stored, int) and isinstance(values, int):
            return _Page(length, stored, values)
        raise ValueError(_NO_HEADER)


# Thrift's compact protocol: numbers of seven bits a byte, the sign in the lowest; a structure is a run of fields.


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number without a sign, and where it ends."""
    found = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7
    raise ValueError(_NO_HEADER)


def _signed(data: bytes, at: int) -> tuple[int, int]:
    found, at = _number(data, at)
    return (found >> 1) ^ -(found & 1), at


def _text(data: bytes, at: int) -> tuple[None, int]:
    length, at = _number(data, at)
    return None, _within(data, at + length)


def _structure(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a structure by number, and where it ends; of what is neither number nor structure, nothing."""
    if depth > _DEPTH:
        raise ValueError(_NO_HEADER)
    fields: dict[int, Any] = {}
    number = 0
    while True:
        start = data[at]
        at += 1
        if start == 0:
            return fields, at
        if start >> 4:
            number += start >> 4
        else:
            number, at = _signed(data, at)
        fields[number], at = _value(data, at, start & 15, depth)


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true and false lie in the kind itself
        return None, at
    if kind == 12:
        return _structure(data, at, depth + 1)
    if kind not in _READ:
        raise ValueError(_NO_HEADER)  # lists and maps: a page's header has none
    return _READ[kind](data, at)


def _within(data: bytes, at: int) -> int:
    if at > len(data):
        raise IndexError
    return at


_READ: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    3: lambda data, at: (None, _within(data, at + 1)),
    4: _signed,
    5: _signed,
    6: _signed,
    7: lambda data, at: (None, _within(data, at + 8)),
    8: _text,
}
