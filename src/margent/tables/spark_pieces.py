"""What passes between Spark's tasks and the driver: pieces, each a kind, a place and bytes.

A task never raises: Spark would carry the exception's text, which may hold a cell, to the driver and into its logs.
Where code of ours fails in a task, the name of the fault's class travels as a piece of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from margent.tables.plain import plain

if TYPE_CHECKING:
    import pyarrow as pa

PIECES = "kind string, place bigint, data binary"
"""The columns of every frame of pieces, as Spark spells them."""

FAULT = "fault"
ROWS = "rows"

FAULT_PLACE = -1
"""Before every other place, so that what sorts pieces meets faults first."""


class Piece(NamedTuple):
    """One thing that a task hands on. Privacy: private, except for the name of a fault."""

    kind: str
    place: int
    data: bytes


class TaskFault(Exception):  # noqa: N818 (it carries the name of another)
    """A fault of an earlier task, met again in a later one; its text is a class's name."""


def pieces(work: Callable[[], Iterable[Piece]]) -> Iterator[pa.RecordBatch]:
    """The pieces of ``work()`` as batches of one row; a fault of ours becomes a piece and ends them.

    What may pass with a second try (memory, disk) is raised, for Spark to try the task again.

    Privacy: private rows; a fault is told by the name of its class.
    """
    return _sealed(lambda: (_batch([piece.kind], [piece.place], [piece.data]) for piece in work()))


def many_pieces(kind: str, work: Callable[[], Iterable[tuple[list[bytes], list[int]]]]) -> Iterator[pa.RecordBatch]:
    """As `pieces`, of one kind and many in a batch: their data, and their places.

    Privacy: as `pieces`.
    """
    return _sealed(lambda: (_batch([kind] * len(data), places, data) for data, places in work()))


def _sealed(work: Callable[[], Iterable[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    fault = ""
    try:
        yield from work()
    except TaskFault as earlier:
        fault = str(earlier)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        fault = type(error).__name__
    if fault:
        yield _batch([FAULT], [FAULT_PLACE], [fault.encode()])


def require_sound(batch: pa.RecordBatch) -> None:
    """Look for faults in a batch of many pieces.

    Raises: TaskFault where one of them is a fault.
    """
    import pyarrow.compute as pc

    faults = batch.filter(pc.equal(batch.column("kind"), FAULT))
    if faults.num_rows:
        raise TaskFault(faults.column("data")[0].as_py().decode())


def received(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """The pieces in batches that Spark hands to a task.

    Raises: TaskFault where one of them is a fault.
    """
    for batch in batches:
        for kind, place, data in zip(*(batch.column(name) for name in ("kind", "place", "data")), strict=True):
            yield sound(Piece(kind.as_py(), place.as_py(), data.as_py()))


def sound(piece: Piece) -> Piece:
    """The piece itself.

    Raises: TaskFault where it is a fault.
    """
    if piece.kind == FAULT:
        raise TaskFault(piece.data.decode())
    return piece


def packed_block(batch: pa.RecordBatch) -> bytes:
    """A batch as an Arrow stream, compressed."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(data: bytes) -> pa.RecordBatch:
    """The batch of an Arrow stream."""
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_next_batch()


def _batch(kinds: list[str], places: list[int], data: list[bytes]) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [pa.array(kinds, pa.string()), pa.array(places, pa.int64()), pa.array(data, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["kind", "place", "data"])


def read_plainly(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Columns by place under the names of the schema, as the readers of files give them: instants are in UTC."""
    import pyarrow as pa

    columns = [_in_utc(column) for column in batch.columns[: len(names)]]
    return plain(pa.RecordBatch.from_arrays(columns, names=list(names)), names)


def _in_utc(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    return column.cast(pa.timestamp(kind.unit, "UTC")) if pa.types.is_timestamp(kind) and kind.tz else column
