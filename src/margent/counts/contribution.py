"""At most k rows of each person: which rows are kept is settled in one look, and is the same in every pass.

The rows that are kept of a person are a function of that person's rows and of randomness that is independent
between persons, so one person more or less changes nobody else's. They are a uniformly random k of the person's
rows; rows without an id are left out. ``proofs/person.md`` says what follows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from margent.counts.capacity import EXPECTED_PEOPLE, FULL, IN_MEMORY, ROW_BYTES, ROWS_AT_ONCE, slots_for
from margent.counts.identity import Identity, Words, encrypted, fresh_key
from margent.counts.people import PersonTable, choose, count_rows, take_out
from margent.counts.source import Batches
from margent.errors import TableError, sealed
from margent.schema.check import MOST_SIZES
from margent.tables.snapshot import CHANGED

if TYPE_CHECKING:
    import pyarrow as pa

_LAST = 2**64 - 1
_NO_ROOM = (
    "the pseudonyms of the rows (16 bytes each) could not be written to a temporary file (a full or failing disk). "
    "What was charged so far stays spent. Make room, or set TMPDIR to a folder on another disk, then start a new run"
)


@dataclass(eq=False)
class KeptRows:
    """The rows of ``source`` that are counted: at most ``most_rows`` of each person, the same in every pass.

    ``people`` sizes the table in memory; of more persons, as many as fit are done at a time, in the order of their
    pseudonyms, so that memory stays as planned. The pseudonyms wait in ``folder``, in a file without a name that
    no other process can open and that is gone with this one; None: the system's folder for such files.

    Privacy: private rows. Adding or removing all rows of one person adds or removes at most ``most_rows`` rows here
    and changes no other. No message depends on a row.
    """

    source: Batches = field(repr=False)
    identity: Identity = field(repr=False)
    most_rows: int
    people: int = EXPECTED_PEOPLE
    folder: Path | None = None
    key: bytes = field(default_factory=fresh_key, repr=False)
    _bits: NDArray[np.uint8] | None = field(default=None, init=False, repr=False)
    _rows: int = field(default=0, init=False, repr=False)
    _sizes: NDArray[np.int64] | None = field(default=None, init=False, repr=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over the kept rows, in their order.

        Raises: TableError with fixed text, as the source's own passes do, and where a pass has more or fewer rows than
            the first one had.
        """
        import pyarrow as pa

        if self._bits is None:
            self._bits = self._settled()
        start = 0
        for batch in self.source.batches():
            kept = self._between(self._bits, start, start + batch.num_rows)
            start += batch.num_rows
            yield batch if kept.all() else batch.filter(pa.array(kept))
        if start != self._rows:  # rows are kept by their places, and of fewer rows they are other people's
            raise TableError(CHANGED)

    def sizes(self) -> NDArray[np.int64]:
        """How many persons have 1, 2, ... ``most_rows`` kept rows; one person more or less moves one of them by one.

        Privacy: exact and private; asked by the door only, after the charge.
        Raises: as `batches`.
        """
        if self._bits is None:
            self._bits = self._settled()
        assert self._sizes is not None
        return self._sizes

    def _between(self, bits: NDArray[np.uint8], start: int, stop: int) -> NDArray[np.bool_]:
        if stop > self._rows:
            raise TableError(CHANGED)
        spelled = np.unpackbits(bits[start // 8 : -(-stop // 8)])
        return spelled[start % 8 : start % 8 + stop - start].astype(np.bool_)

    def _settled(self) -> NDArray[np.uint8]:
        """One bit a row: whether it is kept."""
        folder = None if self.folder is None else str(self.folder)
        with suppress(OSError), tempfile.SpooledTemporaryFile(IN_MEMORY, dir=folder, prefix="margent-") as file:
            spool = cast("IO[bytes]", file)
            self._rows = self._spooled(spool)
            return self._chosen(spool)
        raise TableError(_NO_ROOM)

    def _spooled(self, spool: IO[bytes]) -> int:
        """Write the pseudonym of every row; return the number of rows."""
        rows = 0
        for batch in self.source.batches():
            words = sealed("the ids of a batch could not be read", partial(self.identity.pseudonyms, batch))
            spool.write(words.tobytes())
            rows += batch.num_rows
        return rows

    def _chosen(self, spool: IO[bytes]) -> NDArray[np.uint8]:
        """Both passes, for one range of pseudonyms after the other: each as long as the table has room for."""
        bits = np.zeros(-(-self._rows // 8), dtype=np.uint8)
        largest = min(self.most_rows, MOST_SIZES)  # more are not asked for
        sizes = np.zeros(largest, dtype=np.int64)
        low = 0
        while low <= _LAST:
            table, high = self._counted(spool, low)
            np.minimum(table.left, self.most_rows, out=table.quota)
            sizes += np.bincount(np.minimum(table.quota, largest + 1), minlength=largest + 2)[1 : largest + 1]
            for place, rows in _chunks(spool):
                slots, numbers = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
                take_out(rows, np.uint64(low), np.uint64(high), table.first, table.second, table.left, slots, numbers)
                # A row's priority is a keyed function of its person and its number among their rows.
                rows[:, 1] ^= numbers.view(np.uint64)
                words = np.ascontiguousarray(encrypted(self.key, rows)[:, 0])
                kept = np.zeros(len(rows), dtype=np.bool_)
                choose(slots, numbers, words, table.quota, kept)
                packed = np.packbits(kept)
                bits[place // 8 : place // 8 + packed.size] |= packed
            low = high + 1
        self._sizes = sizes
        return bits

    def _counted(self, spool: IO[bytes], low: int) -> tuple[PersonTable, int]:
        """The rows of each person from pseudonym ``low`` on, up to where the table is full."""
        slots = slots_for(self.people)
        table, high, used, most = PersonTable.empty(slots), _LAST, 0, int(FULL * slots)
        for _, rows in _chunks(spool):
            done = 0
            while True:
                more, used = count_rows(
                    rows[done:], np.uint64(low), np.uint64(high), table.first, table.second, table.left, used, most
                )
                done += more
                if done == len(rows):
                    break
                # Pseudonyms are uniform: the lower half of the range holds about half of the persons.
                high = low + (high - low) // 2
                table, used = _lower(table, high)
        return table, high


def _lower(table: PersonTable, high: int) -> tuple[PersonTable, int]:
    """The persons of a table with pseudonyms up to ``high``, and how many they are."""
    smaller = PersonTable.empty(table.first.size)
    stay = np.flatnonzero((table.left > 0) & (table.first <= np.uint64(high)))
    rows = np.stack([table.first[stay], table.second[stay]], axis=1)
    _, used = count_rows(
        rows, np.uint64(0), np.uint64(_LAST), smaller.first, smaller.second, smaller.left, 0, smaller.first.size
    )
    slots = _slots_of(smaller, rows)
    smaller.left[slots] = table.left[stay]
    return smaller, used


def _slots_of(table: PersonTable, rows: Words) -> NDArray[np.int64]:
    slots, numbers = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    take_out(rows, np.uint64(0), np.uint64(_LAST), table.first, table.second, table.left, slots, numbers)
    return slots


def _chunks(spool: IO[bytes]) -> Iterator[tuple[int, Words]]:
    """The pseudonyms in order, a writable block at a time, with the number of the first row."""
    spool.seek(0)
    place = 0
    while block := spool.read(ROW_BYTES * ROWS_AT_ONCE):
        rows = np.frombuffer(bytearray(block), dtype=np.uint64).reshape(-1, 2)
        yield place, rows
        place += len(rows)
