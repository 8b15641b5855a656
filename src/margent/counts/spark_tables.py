"""Partial tables of Spark's tasks as bytes, and their sums: counts of disjoint parts of the rows add.

A task counts its own rows with the same kernel as everybody and yields its tables as chunks of cells, sparse or dense
as is shorter, chunks of zeros left out. Another stage adds the chunks of all tasks, each chunk in one place, and the
driver receives each chunk once. A task that is tried again gives the same chunks again in place of the first ones;
an accumulator would have added both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margent.counts.kernel import Tally
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Domain, Merge
from margent.schema.read import schema_from_json
from margent.schema.strict_json import parse_strict
from margent.schema.write import schema_text
from margent.tables.spark_forms import Form
from margent.tables.spark_pieces import ROWS, Piece, packed_block, pieces, received, unpacked

if TYPE_CHECKING:
    import pyarrow as pa

    from margent.schema.fields import Schema

CHUNK_CELLS = 2**18
TABLE = "table"

_WIDTHS = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"), np.dtype("<u8"))
_PLACE = np.dtype("<u4")
_DENSE, _SPARSE = b"d", b"s"


def schema_as_sent(schema: Schema) -> str:
    """The text that tasks read the schema from: the schema file's own, so that nothing but JSON is sent.

    Privacy: none: a schema is public, and what was bought for it is noisy.

    >>> from margent.schema.fields import Integer, Schema
    >>> schema_as_sent(Schema([Integer("age", 0, 110)], unit="row"))[:12]
    '{\\n "fields":'
    """
    text = schema_text(schema)
    assert _sent_schema(text) == schema, "a schema that is sent reads back as itself"
    return text


def _sent_schema(text: str) -> Schema:
    """The schema that was sent."""
    return schema_from_json(parse_strict(text.encode(), "the schema"))


@cache
def codec_of(text: str) -> Codec:
    """The codec of a schema that was sent; a worker makes it once."""
    return Codec(_sent_schema(text))


def coded_rows(text: str, form: Form, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: rows in, pieces that each hold the codes of a block of them out.

    Privacy: private rows and codes.
    """

    def work() -> Iterator[Piece]:
        codec = codec_of(text)
        for block in form.blocks(batches):
            yield Piece(ROWS, block.num_rows, packed_block(_coded(codec, block)))

    return pieces(work)


def counted_tables(request: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: pieces of codes in, the chunks of its part of every table out.

    Privacy: exact and private counts.
    """

    def work() -> Iterator[Piece]:
        domain, cliques, merges, max_cells = _read_request(request)
        tally = Tally(domain, cliques, merges, max_cells=max_cells)
        rows = 0
        for piece in received(batches):
            block = unpacked(piece.data)
            tally.add([column.to_numpy() for column in block.columns[1:]], block.num_rows)
            rows += block.num_rows
        if rows:
            yield from chunks(tally.tables())

    return pieces(work)


def summed_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: chunks sorted by place in, their sums out.

    Privacy: exact and private counts.
    """

    def work() -> Iterator[Piece]:
        place, total = -1, np.zeros(CHUNK_CELLS, dtype=np.int64)
        for piece in received(batches):
            if piece.place != place:
                if place >= 0:
                    yield Piece(TABLE, place, packed_counts(total))
                place = piece.place
                total[:] = 0
            add_packed(piece.data, total)
        if place >= 0:
            yield Piece(TABLE, place, packed_counts(total))

    return pieces(work)


def request_text(domain: Domain, cliques: Sequence[Clique], merges: Mapping[str, Merge], max_cells: int) -> str:
    """What tasks are to count, as JSON.

    Privacy: none: the request is a function of the schema and of noisy answers.
    """
    return json.dumps(
        {
            "names": domain.names,
            "sizes": domain.sizes,
            "cliques": cliques,
            "merges": {
                name: {"column": merge.column, "groups": [int(group) for group in merge.groups]}
                for name, merge in merges.items()
            },
            "maxCells": max_cells,
        }
    )


def chunks(tables: Iterable[NDArray[np.int64]]) -> Iterator[Piece]:
    """The cells of all tables, one behind the other, in chunks; those of zeros are left out.

    Privacy: exact and private counts.
    """
    waiting = np.zeros(CHUNK_CELLS, dtype=np.int64)
    place = filled = 0
    for table in tables:
        cells = table.reshape(-1)
        done = 0
        while done < cells.size:
            taken = min(cells.size - done, CHUNK_CELLS - filled)
            waiting[filled : filled + taken] = cells[done : done + taken]
            done, filled = done + taken, filled + taken
            if filled == CHUNK_CELLS:
                if waiting.any():
                    yield Piece(TABLE, place, packed_counts(waiting))
                place, filled = place + 1, 0
    if filled and waiting[:filled].any():
        yield Piece(TABLE, place, packed_counts(waiting[:filled]))


def packed_counts(counts: NDArray[np.int64]) -> bytes:
    """Non-negative counts as bytes: all of them, or the places and values of those above 0, whichever is shorter.

    >>> cells = np.zeros(1000, np.int64); cells[7] = 300
    >>> len(packed_counts(cells)), add_packed(packed_counts(cells), out := np.zeros(1000, np.int64)), out[7]
    (12, None, np.int64(300))
    """
    width = next(kind for kind in _WIDTHS if int(counts.max(initial=0)) <= np.iinfo(kind).max)
    found = np.flatnonzero(counts)
    if found.size * (_PLACE.itemsize + width.itemsize) + 4 < counts.size * width.itemsize:
        size = np.array([found.size], _PLACE).tobytes()
        body = size + found.astype(_PLACE).tobytes() + counts[found].astype(width).tobytes()
        return _SPARSE + bytes([width.itemsize]) + body
    return _DENSE + bytes([width.itemsize]) + counts.astype(width).tobytes()


def add_packed(data: bytes, total: NDArray[np.int64]) -> None:
    """Add packed counts to the first cells of ``total``."""
    form, width = data[:1], np.dtype(f"<u{data[1]}")
    if form == _SPARSE:
        (size,) = np.frombuffer(data, _PLACE, count=1, offset=2)
        places = np.frombuffer(data, _PLACE, count=int(size), offset=6)
        values = np.frombuffer(data, width, offset=6 + _PLACE.itemsize * int(size))
        total[places] += values.astype(np.int64)
    else:
        values = np.frombuffer(data, width, offset=2)
        total[: values.size] += values.astype(np.int64)


def _coded(codec: Codec, block: pa.RecordBatch) -> pa.RecordBatch:
    """Codes in the narrowest type, beside a column that keeps the number of rows where there are no others."""
    import pyarrow as pa

    columns: list[Any] = [pa.nulls(block.num_rows)]
    for codes, size in zip(codec.encode(block), codec.domain.sizes, strict=True):
        columns.append(pa.array(codes.astype(np.uint8) if size <= 2**8 else codes))
    return pa.RecordBatch.from_arrays(columns, names=[str(place) for place in range(len(columns))])


def _read_request(text: str) -> tuple[Domain, list[Clique], dict[str, Merge], int]:
    document = json.loads(text)
    domain = Domain(tuple(document["names"]), tuple(document["sizes"]))
    merges = {name: Merge(merge["column"], tuple(merge["groups"])) for name, merge in document["merges"].items()}
    return domain, [tuple(clique) for clique in document["cliques"]], merges, int(document["maxCells"])
