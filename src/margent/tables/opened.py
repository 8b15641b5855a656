"""A table whose container and header have been checked, ready for any number of identical passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from margent.errors import TableError
from margent.machine import BLOCK_ROWS, block_rows
from margent.tables.fitting import fitting, plain_bytes
from margent.tables.options import TEXT_KINDS
from margent.tables.plain import plain
from margent.tables.snapshot import CLOSED, guarded

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = BLOCK_ROWS
"""Most rows of a batch; of many columns they are fewer (`margent.machine.block_rows`)."""


def _nothing() -> None:
    """Nothing to give back."""


@dataclass(eq=False)
class OpenTable:
    """Batches of private rows, the same in every pass; how they are read is a function given by the opener.

    Shapes: ``columns`` are the table's, in its order; batches have those of ``wanted``, in the schema's
    order, and at most `BATCH_ROWS` rows. ``kind`` is the file's or frame's kind; ``declared`` are the column types
    that a typed file declares, None for text and frames; ``from_query`` and ``filtered`` as
    `margent.tables.source.TableSource` has them.
    Privacy: private rows; its own text shows names only.
    """

    kind: str
    columns: tuple[str, ...]
    wanted: tuple[str, ...]
    read: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)
    give_back: Callable[[], None] = field(default=_nothing, repr=False)
    declared: pa.Schema | None = field(default=None, repr=False)
    from_query: bool = False
    filtered: bool = False
    closed: bool = field(default=False, init=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One pass over all rows.

        Raises: TableError with fixed text when the table cannot be read, or is not the one that was opened.
        """
        if self.closed:
            raise TableError(CLOSED)
        yield from guarded(self._cut)

    def close(self) -> None:
        """Give back files and temporary copies; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.give_back()

    def __enter__(self) -> OpenTable:
        """Return the table itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the table."""
        self.close()

    def _cut(self) -> Iterator[pa.RecordBatch]:
        for batch in self.read():
            most = block_rows(len(self.wanted))
            for start in range(0, batch.num_rows, most):
                rows = batch.slice(start, most)
                if self.kind in TEXT_KINDS:
                    yield rows
                else:
                    yield from (plain(part, self.wanted) for part in fitting(rows, plain_bytes))
