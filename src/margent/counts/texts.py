"""The texts of a column with their numbers of records, for sets of values that nobody knows in advance.

Texts are counted in memory as long as they are few. Of more, the texts of one range of a keyed hash are counted at a
time, pass after pass over the same rows, so that no column can fill the memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margent.counts.capacity import TEXTS_AT_ONCE
from margent.counts.identity import fresh_key
from margent.counts.source import Batches
from margent.errors import sealed
from margent.schema.cells import canonical_texts, plain
from margent.schema.open_values import admissible

if TYPE_CHECKING:
    import pyarrow as pa

_END = 2**64
_CHARACTERS = 64


@dataclass(frozen=True)
class CountedTexts:
    """Counts of texts over the rows of ``source``; ``own`` are each column's missing tokens, which are no values.

    ``room``: texts held at a time, each of more than 64 characters counting as several.

    Privacy: exact and private; asked by the door only, after the charge. No message depends on a row.
    """

    source: Batches = field(repr=False)
    own: Mapping[str, Sequence[str]]
    room: int = TEXTS_AT_ONCE
    key: bytes = field(default_factory=fresh_key, repr=False)

    def texts(self, column: str) -> Iterator[tuple[Sequence[str], NDArray[np.int64]]]:
        """Every text of the column that could be kept, once, with its number of records."""
        low = 0
        while low < _END:
            found, high = self._counted(column, low)
            yield list(found), np.fromiter(found.values(), dtype=np.int64, count=len(found))
            low = high

    def _counted(self, column: str, low: int) -> tuple[dict[str, int], int]:
        """The texts with hashes in [low, high), where high is as large as memory has room for."""
        high, found, held = _END, dict[str, int](), 0
        own = frozenset(self.own[column])
        for batch in self.source.batches():
            texts, counts = sealed("a batch's texts could not be counted", partial(batch_texts, batch, column))
            for raw, count in zip(texts, counts, strict=True):
                text = admissible(raw, own)
                if text is None or (high - low < _END and not low <= self._hash(text) < high):
                    continue
                held += 0 if text in found else _room(text)
                found[text] = found.get(text, 0) + count
                while held > self.room and high - low > 1:
                    high = low + (high - low) // 2
                    found = {kept: number for kept, number in found.items() if self._hash(kept) < high}
                    held = sum(map(_room, found))
        return found, high

    def _hash(self, text: str) -> int:
        digest = hashlib.blake2b(text.encode(), key=self.key, digest_size=8).digest()
        return int.from_bytes(digest, "big")


def _room(text: str) -> int:
    return 1 + len(text) // _CHARACTERS


def batch_texts(batch: pa.RecordBatch, column: str) -> tuple[list[bytes], list[int]]:
    """The texts of a batch's column and how often each stands there; nulls aside.

    A text may come several times, with a part of its number of records each time.

    Privacy: exact and private.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells: Any = plain(batch.column(column))
    if not pa.types.is_dictionary(cells.type):
        counted = pc.value_counts(canonical_texts(cells).drop_null())
        return counted.field("values").to_pylist(), counted.field("counts").to_pylist()
    # Not spelled out: a long text may stand in many rows.
    counted = pc.value_counts(cells.indices.drop_null())
    texts = canonical_texts(plain(cells.dictionary)).take(counted.field("values"))
    found = texts.is_valid()
    return texts.filter(found).to_pylist(), counted.field("counts").filter(found).to_pylist()
