"""Closed lists of texts and booleans: whole columns of cells -> codes by lookup, and codes -> cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.schema.cells import canonical_texts, decimal_text
from margent.schema.formats import BLANKS
from margent.schema.labels import scalar_text
from margent.schema.layout import Layout, listed_values
from margent.schema.parts import DEFAULT_FALSE, DEFAULT_TRUE
from margent.schema.positions import exact_number, plain_decimal

NO_CODE = -1
"""Stands for the code of a cell that no declared text equals."""


@dataclass(frozen=True)
class TextLookup:
    """A table from cell texts to codes, for whole columns at once.

    >>> TextLookup({"a": 0, "b": 5}).codes(pa.array([b"b", b"x", None], pa.binary())).tolist()
    [5, -1, -1]
    """

    table: Mapping[str, int]

    @cached_property
    def _keys(self) -> Any:
        return pa.array([text.encode() for text in self.table], pa.binary())

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        return np.array([*self.table.values(), NO_CODE], dtype=np.int64)

    def codes(self, texts: Any) -> NDArray[np.int64]:
        """One code a text, `NO_CODE` where the table has none (nulls included)."""
        if not self.table:
            return np.full(len(texts), NO_CODE, dtype=np.int64)
        places = pc.index_in(texts, value_set=self._keys.cast(texts.type))
        found: NDArray[np.int64] = self._codes[pc.fill_null(places, len(self.table)).to_numpy(zero_copy_only=False)]
        return found


@dataclass(frozen=True)
class ListedTexts:
    """The values of a string or boolean field, read and written.

    Texts are compared as they are; around a boolean's, whitespace is ignored. A typed cell is compared as its
    canonical text; a typed number that no text equals also finds the one declared text of the same value
    (2116 finds "02116"), and a typed boolean the usual words for it.

    Shapes: n cells -> n codes, `NO_CODE` where no declared text is equal.
    Privacy: cells are private; nothing here raises, warns or speaks of one.
    """

    layout: Layout

    @property
    def arrow_type(self) -> Any:
        """Booleans stay booleans; a list of texts is a dictionary with all its values in declared order."""
        if self.layout.field.type == "boolean":
            return pa.bool_()
        return pa.dictionary(pa.int32(), pa.string(), ordered=self.layout.field.ordered)

    def codes_of_texts(self, texts: Any) -> NDArray[np.int64]:
        """Codes of raw cell texts; nulls get `NO_CODE`."""
        if self.layout.field.type == "boolean":
            # Undecodable bytes must not reach a function on text, so blanks are cut off one by one.
            encoded = texts.dictionary_encode()
            distinct = [text.strip(BLANKS.encode()) for text in encoded.dictionary.to_pylist()]
            found = np.append(self._lookup.codes(pa.array(distinct, pa.binary())), NO_CODE)
            exact = np.append(self._lookup.codes(encoded.dictionary), NO_CODE)
            found = np.where(exact == NO_CODE, found, exact)
            places = pc.fill_null(encoded.indices, len(distinct)).to_numpy(zero_copy_only=False)
            return np.asarray(found[places], dtype=np.int64)
        return self._lookup.codes(texts)

    def codes_of_typed(self, column: Any) -> NDArray[np.int64]:
        """Codes of typed cells by their canonical text; nulls get `NO_CODE`."""
        if pa.types.is_boolean(column.type):
            return self._of_booleans(column)
        texts = canonical_texts(column)
        codes = self.codes_of_texts(texts)
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            codes = np.where(codes == NO_CODE, self._numeric.codes(texts), codes)
        return codes

    def _of_booleans(self, column: Any) -> NDArray[np.int64]:
        field, table = self.layout.field, self.layout.texts
        if field.type == "boolean":
            values = [item.value for item in listed_values(field) or ()]
            code = {value: place for place, value in enumerate(values)}
            no, yes = code.get(False, NO_CODE), code.get(True, NO_CODE)
        else:
            words = (DEFAULT_FALSE, DEFAULT_TRUE)
            no, yes = (next((table[word] for word in side if word in table), NO_CODE) for side in words)
        codes = np.array([no, yes, NO_CODE], dtype=np.int64)
        places = pc.fill_null(column.cast(pa.int8()), 2).to_numpy(zero_copy_only=False)
        found: NDArray[np.int64] = codes[places]
        return found

    @cached_property
    def _lookup(self) -> TextLookup:
        return TextLookup(self.layout.texts)

    @cached_property
    def _numeric(self) -> TextLookup:
        """Canonical texts of the numbers that exactly one declared text stands for."""
        found: dict[str, list[int]] = {}
        for text, code in self.layout.texts.items():
            value = exact_number(text)
            if value is not None:
                found.setdefault(decimal_text(plain_decimal(value)), []).append(code)
        return TextLookup({text: codes[0] for text, codes in found.items() if len(codes) == 1})

    def arrow(self, codes: NDArray[np.int64]) -> Any:
        """Value codes as an Arrow column; a negative code is a null."""
        listed = listed_values(self.layout.field) or ()
        places = pa.array(codes.astype(np.int32), mask=codes < 0)
        if self.layout.field.type == "boolean":
            return pa.array([item.value for item in listed], pa.bool_()).take(places)
        names = pa.array([str(item.value) for item in listed], pa.string())
        return pa.DictionaryArray.from_arrays(places, names, ordered=self.layout.field.ordered)

    def texts(self) -> list[str]:
        """The text that each value code is written as: a boolean's first declared word."""
        field = self.layout.field
        listed = listed_values(field) or ()
        if field.type == "boolean":
            yes, no = field.spelling.true_values[0], field.spelling.false_values[0]
            return [yes if item.value else no for item in listed]
        return [scalar_text(item.value) for item in listed]
