"""Codes of one column -> cells: values drawn inside their bin, special codes and missing tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.schema.codec_bins import BinnedValues
from margent.schema.codec_categories import ListedTexts
from margent.schema.codec_joint import UNSET
from margent.schema.codec_numbers import NumberAxis
from margent.schema.layout import Layout
from margent.stream import Stream

BLOCK_ROWS = 2**16
"""Rows that share one public stream: word i of block b belongs to row b * 65536 + i."""


@dataclass(frozen=True)
class ColumnWriter:
    """Codes of one modeled column -> cells.

    Privacy: none: post-processing of a public seed and sampled codes.
    """

    layout: Layout
    values: ListedTexts | BinnedValues

    @cached_property
    def arrow_type(self) -> Any:
        """The column's Arrow type: text where a special code is no number, else that of the values."""
        if isinstance(self.values, ListedTexts):
            return self.values.arrow_type
        return pa.string() if self._special_values is None else self.values.axis.arrow_type

    @cached_property
    def _special_values(self) -> list[Any] | None:
        """Special codes as numbers, or None where one of them is none."""
        assert isinstance(self.values, BinnedValues)
        axis = self.values.axis
        if not isinstance(axis, NumberAxis):
            return []
        numbers = [axis.scalar(special.text) for special in self.layout.special]
        return None if any(number is None for number in numbers) else numbers

    def column(
        self,
        codes: NDArray[np.int64],
        seed: int,
        first_row: int,
        *,
        text: bool,
        linked: NDArray[np.int64] | None = None,
    ) -> Any:
        """The cells of rows first_row, first_row + 1, ... as an Arrow column.

        ``linked``: grid values that rules between columns have chosen (`codec_joint`), `UNSET` where they have not.
        """
        layout = self.layout
        if isinstance(self.values, ListedTexts):
            return self._listed(codes, text)
        own = codes < layout.values
        indices = self.indices(codes, seed, first_row, linked)
        if text:
            return self._texts(codes, own, self.values.axis.texts(indices))
        if self._special_values is None:
            column = self._texts(codes, own, self.values.axis.texts(indices))
            return pc.if_else(pa.array(codes < layout.first_missing), column, None)
        return self._typed(codes, own, self.values.axis.arrow(indices))

    def indices(
        self, codes: NDArray[np.int64], seed: int, first_row: int, linked: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Grid values of a column of bins, meaningless where the code is no value code."""
        assert isinstance(self.values, BinnedValues)
        own = codes < self.layout.values
        indices = np.zeros(codes.size, dtype=np.int64)
        if self.layout.values:
            words = row_words(seed, self.layout.field.name, first_row, codes.size)
            indices = self.values.draw(np.where(own, codes, 0), words)
        return indices if linked is None else np.where(own & (linked != UNSET), linked, indices)

    def _listed(self, codes: NDArray[np.int64], text: bool) -> Any:
        assert isinstance(self.values, ListedTexts)
        if not text:
            return self.values.arrow(np.where(codes < self.layout.values, codes, -1))
        return pa.array(self.values.texts() + self._literals, pa.string()).take(pa.array(codes))

    def _texts(self, codes: NDArray[np.int64], own: NDArray[np.bool_], values: Any) -> Any:
        if own.all():
            return values
        literals = pa.array(self._literals, pa.string())
        others = literals.take(pa.array(np.where(own, 0, codes - self.layout.values)))
        return pc.if_else(pa.array(own), values, others)

    def _typed(self, codes: NDArray[np.int64], own: NDArray[np.bool_], values: Any) -> Any:
        if own.all():
            return values
        numbers = self._special_values or []
        nulls: list[Any] = [None] * (self.layout.size - self.layout.values - len(numbers))
        others = pa.array([*numbers, *nulls], self.arrow_type)
        return pc.if_else(pa.array(own), values, others.take(pa.array(np.where(own, 0, codes - self.layout.values))))

    @cached_property
    def _literals(self) -> list[str]:
        """The texts of special codes and missing cells, each cell's first token."""
        specials = [special.text for special in self.layout.special]
        missing = [cell[0].text for cell in self.layout.missing]
        return [*specials, *missing, *[""] * (self.layout.unlisted is not None)]


def row_words(seed: int, name: str, first_row: int, count: int, use: str = "decode") -> NDArray[np.uint64]:
    """One word of public randomness a row: a function of (seed, use, column, row), whatever block is asked for.

    >>> whole = row_words(7, "age", 65_530, 12)
    >>> (row_words(7, "age", 65_535, 3) == whole[5:8]).all()
    np.True_
    """
    words, row, stop = [np.zeros(0, dtype=np.uint64)], first_row, first_row + count
    while row < stop:
        block, start = divmod(row, BLOCK_ROWS)
        end = min(stop - block * BLOCK_ROWS, BLOCK_ROWS)
        words.append(Stream(seed, use, name, str(block)).words(end)[start:])
        row = block * BLOCK_ROWS + end
    return np.concatenate(words)


def identifiers(count: int, first_row: int) -> Any:
    """Fresh ids: the rows' own numbers from 1 on."""
    return pa.array(np.arange(first_row + 1, first_row + count + 1, dtype=np.int64))
