"""At most k rows of each person of a table in Spark, whatever order and place its rows are met in.

Spark has no order of rows to rely on, so a person's rows are ordered by their cells: rows that are alike may change
places, which changes nothing. In that order they are met as `margent.counts.contribution` meets them in a file's, and
the same are kept: a function of that person's rows and of the key alone. A task that is tried again, on another
worker or in another order, keeps the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margent.counts.identity import Identity, encrypted, fresh_key
from margent.counts.people import choose
from margent.counts.spark import LooksOfSpark
from margent.schema.check import MOST_SIZES
from margent.tables.gathering import gathered
from margent.tables.spark_forms import PACKED, Columns, Form
from margent.tables.spark_pieces import (
    PIECES,
    ROWS,
    Piece,
    TaskFault,
    packed_block,
    pieces,
    read_plainly,
    unpacked,
)
from margent.tables.spark_session import streamed, well_batched

if TYPE_CHECKING:
    import pyarrow as pa

SIZES = "sizes"

_WORDS = ("person_high", "person_low")
_ROWS_OF_PERSON = "person_rows"
_FAULT = "fault"
_MISSED = "rows of a person are not together"


@dataclass(eq=False)
class KeptSparkRows:
    """The rows of ``source`` that are counted: at most ``most_rows`` of each person, settled once and kept.

    Rows move between workers so that those of one person come together, by a hash of the person's pseudonym. The keys
    are sent to the workers inside of the tasks, and are in no plan, log or file of ours.

    Privacy: private rows. Adding or removing all rows of one person adds or removes at most ``most_rows`` rows here
    and changes no other. No message depends on a row.
    """

    source: LooksOfSpark = field(repr=False)
    identity: Identity = field(repr=False)
    most_rows: int
    key: bytes = field(default_factory=fresh_key, repr=False)
    _kept: Any = field(default=None, init=False, repr=False)

    @property
    def session(self) -> Any:
        """The session."""
        return self.source.session

    def looked_at(self) -> tuple[Any, Form]:
        """The kept rows, packed as pieces.

        Raises: TableError with fixed text where Spark fails.
        """
        if self._kept is None:
            self._kept = self._settled()
        return self._kept, PACKED

    def keep(self, frame: Any) -> Any:
        """As the source's own."""
        return self.source.keep(frame)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over the kept rows, on this machine.

        Raises: TableError with fixed text where Spark fails.
        """
        kept, _ = self.looked_at()
        yield from (unpacked(piece.data) for piece in streamed(kept) if piece.kind == ROWS)

    def sizes(self) -> NDArray[np.int64]:
        """How many persons have 1, 2, ... ``most_rows`` kept rows; one person more or less moves one of them by one.

        Privacy: exact and private; asked by the door only, after the charge.
        Raises: as `looked_at`.
        """
        kept, _ = self.looked_at()
        total = np.zeros(min(self.most_rows, MOST_SIZES), dtype=np.int64)
        for piece in streamed(kept.where(f"kind <> '{ROWS}'")):
            total += np.frombuffer(piece.data, dtype=np.int64)
        return total

    def _settled(self) -> Any:
        from pyspark.sql import Window, functions
        from pyspark.sql.types import LongType, StringType, StructField, StructType

        frame, form = self.source.looked_at()
        assert isinstance(form, Columns), "rows of persons come as columns: Spark is to sort by them"
        columns = [StructField(field.name, field.dataType) for field in frame.schema.fields]
        beside = [*(StructField(word, LongType()) for word in _WORDS), StructField(_FAULT, StringType())]
        who, names = self.identity, form.names
        task = partial(named_persons, (who.name, who.missing, who.type, who.key), names)
        marked = frame.mapInArrow(task, StructType([*columns, *beside]))
        order = [
            # Text is compared by its bytes, whatever the column's collation calls alike.
            functions.col(field.name).cast("binary") if isinstance(field.dataType, StringType) else field.name
            for field in columns
        ]
        # Sorted before the rows of each person are counted, so that Spark sorts once; and asked for again behind it,
        # where only Spark knows that nothing changed.
        together = marked.repartition(*_WORDS).sortWithinPartitions(*_WORDS, *order)
        counted = functions.count(functions.lit(1)).over(Window.partitionBy(*_WORDS))
        together = together.withColumn(_ROWS_OF_PERSON, counted).sortWithinPartitions(*_WORDS, *order)
        with well_batched(self.session, form):
            return self.keep(together.mapInArrow(partial(bounded_rows, self.key, self.most_rows, names), PIECES))


def named_persons(
    identity: tuple[str, tuple[str, ...], str, bytes], names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A task: rows in, the same rows beside their persons' pseudonyms out; rows of nobody are left out.

    A fault of ours becomes a row of nobody that names it.

    Privacy: private rows.
    """
    import pyarrow as pa

    who = Identity(*identity)
    kinds: list[Any] = []
    fault = ""
    try:
        for batch in batches:
            kinds = batch.schema.types
            words = who.pseudonyms(read_plainly(batch, names))
            columns = [*batch.columns, *(pa.array(words[:, place].view(np.int64)) for place in range(2))]
            marked = pa.RecordBatch.from_arrays(
                [*columns, pa.nulls(batch.num_rows, pa.string())], names=[*batch.schema.names, *_WORDS, _FAULT]
            )
            yield marked.filter(pa.array(words.any(axis=1)))
    except (OSError, MemoryError):
        raise
    except Exception as error:
        fault = type(error).__name__
    if fault:
        nothing = [pa.nulls(1, kind) for kind in kinds]
        nobody = [pa.array([0], pa.int64()), pa.array([0], pa.int64()), pa.array([fault])]
        names_of_all = [*(f"c{place}" for place in range(len(kinds))), *_WORDS, _FAULT]
        yield pa.RecordBatch.from_arrays([*nothing, *nobody], names=names_of_all)


def bounded_rows(
    key: bytes, most_rows: int, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A task: rows sorted by person and cells in, pieces with at most ``most_rows`` of each and their sizes out.

    Shapes: all rows of a person are in one task, one below the other.
    Privacy: private rows.
    """

    def work() -> Iterator[Piece]:
        kept = _Keeper(key, most_rows, names)
        yield from (Piece(ROWS, 0, packed_block(block)) for block in gathered(kept.blocks(batches)))
        yield Piece(SIZES, 0, kept.sizes.tobytes())

    return pieces(work)


@dataclass(eq=False)
class _Keeper:
    """Keeps rows person by person, block by block; the last person of a block may go on in the next one.

    ``last``: that person, of whose rows ``left`` are still to come and ``free`` more may be kept.
    """

    key: bytes = field(repr=False)
    most_rows: int
    names: Sequence[str]
    last: tuple[int, int] | None = None
    left: int = 0
    free: int = 0
    sizes: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.sizes = np.zeros(min(self.most_rows, MOST_SIZES), dtype=np.int64)

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block in gathered(batches):
            yield self._kept(block)
        if self.left:
            raise TaskFault(_MISSED)

    def _kept(self, block: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        faults = block.column(_FAULT).drop_null()
        if len(faults):
            raise TaskFault(faults[0].as_py())
        words = np.stack([block.column(name).to_numpy() for name in _WORDS], axis=1)
        of_person = block.column(_ROWS_OF_PERSON).to_numpy()
        starts = np.flatnonzero(np.append(True, (words[1:] != words[:-1]).any(axis=1)))
        _require_order(self.last, words[starts])
        goes_on = self.last == tuple(words[0].tolist())
        person = np.repeat(np.arange(starts.size), np.diff(np.append(starts, len(words))))
        first = of_person[starts]
        quota = np.minimum(first, self.most_rows)
        self._count(quota[int(goes_on) :])
        if goes_on:
            first[0], quota[0] = self.left, self.free
        # How many of the person's rows are left, this one among them.
        left = first[person] - (np.arange(len(words)) - starts[person])
        self._require_all(left, starts, goes_on=goes_on)
        blocks = words.view(np.uint64).copy()
        blocks[:, 1] ^= left.view(np.uint64)
        kept = np.zeros(len(words), dtype=np.bool_)
        choose(person, left, np.ascontiguousarray(encrypted(self.key, blocks)[:, 0]), quota, kept)
        self.last = (int(words[-1, 0]), int(words[-1, 1]))
        self.left, self.free = int(left[-1]) - 1, int(quota[-1])
        return read_plainly(block, self.names).filter(pa.array(kept))

    def _require_all(self, left: NDArray[np.int64], starts: NDArray[np.int64], *, goes_on: bool) -> None:
        """All rows of a person were met before the next one comes, and no more than were counted."""
        if (left < 1).any() or (left[starts[1:] - 1] != 1).any() or (self.left and not goes_on):
            raise TaskFault(_MISSED)

    def _count(self, kept: NDArray[np.int64]) -> None:
        # More than can be asked for are not told apart; nobody asks then.
        size = self.sizes.size
        self.sizes += np.bincount(np.minimum(kept, size), minlength=size + 1)[1 : size + 1]


def _require_order(last: tuple[int, int] | None, persons: NDArray[np.int64]) -> None:
    """Persons come in rising order, so that none comes twice; anything else would keep more of their rows."""
    before = persons[:-1] if last is None else np.concatenate([[last], persons[:-1]])
    after = persons[1:] if last is None else persons
    rising = (after[:, 0] > before[:, 0]) | ((after[:, 0] == before[:, 0]) & (after[:, 1] >= before[:, 1]))
    if not rising.all():
        raise TaskFault("rows of persons out of order")
