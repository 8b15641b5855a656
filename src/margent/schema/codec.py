"""Raw values <-> small whole numbers: every cell of every column has a code, whatever it holds.

Encoding is a function of the schema and of one cell alone (of a date relative to another, of both): never of other
rows, of the caller's types or of chance. Decoding draws inside bins from a public seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from margent.errors import SchemaError
from margent.schema.cells import absent, is_text, plain
from margent.schema.check import unsettled
from margent.schema.codec_bins import BinnedValues
from margent.schema.codec_categories import NO_CODE, ListedTexts
from margent.schema.codec_differences import (
    DateCells,
    DifferenceReader,
    DifferenceWriter,
    Present,
    base_dates,
    date_cells,
)
from margent.schema.codec_joint import JointValues
from margent.schema.codec_writing import ColumnWriter, identifiers, row_words
from margent.schema.differences import Positions, base_order
from margent.schema.domain import Domain
from margent.schema.fields import PersonUnit, Schema
from margent.schema.labels import code_labels
from margent.schema.layout import Layout, layout_of

Codes = NDArray[np.uint16] | NDArray[np.uint32]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class ColumnReader:
    """Cells of one modeled column -> codes.

    Privacy: cells are private; nothing here raises, warns or speaks of one.
    """

    layout: Layout

    @cached_property
    def values(self) -> ListedTexts | BinnedValues:
        """How the field's own values are read; `NO_CODE` stands for what is none of them."""
        return values_of(self.layout)

    def codes(self, column: Any) -> Codes:
        """One code a cell.

        Shapes: n cells -> n codes, 16 bits wide where the column has at most 65,536 of them.
        """
        # In a text file a null is a cell that its record lacks; in a typed column it is a missing value.
        raw = is_text(column.type)
        return self._codes(plain(column), self.layout.fallback if raw else self.layout.null)

    def _codes(self, column: Any, null: int) -> Codes:
        kind: Any = np.uint16 if self.layout.size <= 2**16 else np.uint32
        if pa.types.is_null(column.type):
            return np.full(len(column), null, dtype=kind)
        if pa.types.is_dictionary(column.type):
            # What the dictionary holds is read once, however many cells point to it.
            distinct = np.concatenate([self._codes(plain(column.dictionary), null), np.array([null], dtype=kind)])
            places = column.indices
            if places.null_count:
                places = pc.fill_null(places.cast(pa.int64()), distinct.size - 1)
            return np.asarray(distinct[places.to_numpy(zero_copy_only=False)])
        read = self.values.codes_of_texts if is_text(column.type) else self.values.codes_of_typed
        codes = read(column)
        if (strangers := codes == NO_CODE).any():
            codes = np.where(strangers, self.layout.fallback, codes)
        if column.null_count or pa.types.is_floating(column.type):  # floats hold NaN beside nulls
            codes = np.where(absent(column), null, codes)
        found: Codes = codes.astype(kind)
        return found


def values_of(layout: Layout) -> ListedTexts | BinnedValues:
    """The values of a column, by the family of its type."""
    return ListedTexts(layout) if layout.field.type in ("string", "boolean") else BinnedValues(layout)


class Codec:
    """What a schema makes of cells: one small whole number each, and back.

    Shapes: d modeled columns in schema order; column a has ``domain.sizes[a]`` codes: values or bins, special
    codes, missing cells, and unlisted where it has a code of its own (`Layout`).
    Privacy: the codec is a function of the schema; the codes it makes of rows are private.
    Raises: SchemaError where a field's values or bins are yet to be bought (`margent.schema.check.unsettled`).

    >>> from margent.schema.fields import Category, Integer, Schema
    >>> fields = [Category("sex", ["F", "M"]), Integer("age", 0, 110, bins={"width": 10})]
    >>> codec = Codec(Schema(fields, unit="row"))
    >>> codec.domain.sizes
    (3, 12)
    >>> batch = pa.RecordBatch.from_pydict({"sex": [b"M", b"x", b""], "age": [b"42", b"999", b"old"]})
    >>> [codes.tolist() for codes in codec.encode(batch)]
    [[1, 2, 2], [4, 10, 11]]
    """

    def __init__(self, schema: Schema) -> None:
        """Lay out the codes of every modeled field."""
        if faults := unsettled(schema):
            raise SchemaError(faults, "not every column has codes yet: the schema")
        self.schema = schema
        self.layouts = tuple(layout_of(field, schema.missing_of(field)) for field in schema.modelled)
        self.domain = Domain(
            tuple(layout.field.name for layout in self.layouts), tuple(layout.size for layout in self.layouts)
        )
        self._fields = {field.name: field for field in schema.modelled}
        self._by_name = {layout.field.name: layout for layout in self.layouts}
        self._readers = tuple(self._reader(layout) for layout in self.layouts)

    @cached_property
    def unlisted_codes(self) -> Mapping[str, int]:
        """The code of unlisted cells, for the columns where it is one of its own; it is never sampled."""
        return {layout.field.name: layout.unlisted for layout in self.layouts if layout.unlisted is not None}

    @cached_property
    def sampleable(self) -> Mapping[str, NDArray[np.bool_]]:
        """Which codes of each column may appear in output: all but unlisted."""
        return {layout.field.name: np.arange(layout.size) != layout.unlisted for layout in self.layouts}

    @cached_property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """What each code of each column is called."""
        return {layout.field.name: code_labels(layout) for layout in self.layouts}

    def encode(self, batch: Any) -> list[Codes]:
        """One array of codes a modeled column, in schema order; it never raises or warns about a cell.

        Columns are raw UTF-8 text (``pa.binary()``, as text files are read) or typed Arrow; other columns are
        not looked at.

        Shapes: n rows -> d arrays of n codes.
        Privacy: exact and private.
        Raises: KeyError where the batch lacks a column, which the header check rules out.
        """
        return [self._codes(reader, batch) for reader in self._readers]

    def codes_of(self, layout: Layout, batch: Any) -> Codes:
        """The codes of one modeled column by a layout of it, which may treat unlisted cells in another way.

        Privacy: exact and private.
        """
        return self._codes(self._reader(layout), batch)

    def _codes(self, reader: ColumnReader | DifferenceReader, batch: Any) -> Codes:
        field = reader.layout.field
        if isinstance(reader, ColumnReader):
            return reader.codes(batch.column(field.name))
        assert field.relative_to is not None
        return reader.codes(batch.column(field.name), batch.column(field.relative_to.field))

    def _dates_of(self, layout: Layout) -> DateCells:
        return date_cells(layout, self._fields)

    def _reader(self, layout: Layout) -> ColumnReader | DifferenceReader:
        relative = layout.field.relative_to
        if relative is None:
            return ColumnReader(layout)
        return DifferenceReader(layout, self._dates_of(layout), self._dates_of(self._by_name[relative.field]))

    def decode(
        self, codes: NDArray[np.integer[Any]], seed: int, *, first_row: int = 0, persons: Ids | None = None
    ) -> Any:
        """A typed table of records; Arrow types, categories and nullability come from the schema alone.

        Values are drawn inside their bin as the field says (`margent.schema.drawing`), each by its own word of the
        public stream for (seed, column, row), dates that are relative to others after those: rows may be decoded in
        blocks of any size, told by ``first_row``, and give the same bytes.
        ``persons`` are the ids to write for the protected person; without them every row has its own number.
        In Arrow every missing cell is null; in text each is its own first token.

        Values that rules between columns link are drawn together, so that every row obeys every rule.

        Shapes: (n, d) codes -> n rows with every output column in schema order.
        Privacy: none: post-processing.
        Raises: ValueError where a code is out of range or never written, or a row's codes break a rule.
        """
        return self._table(codes, seed, first_row, persons, text=False)

    def decode_text(
        self, codes: NDArray[np.integer[Any]], seed: int, *, first_row: int = 0, persons: Ids | None = None
    ) -> Any:
        """The same records as `decode` spelled as text, the way the schema says a CSV spells them."""
        return self._table(codes, seed, first_row, persons, text=True)

    @cached_property
    def arrow_schema(self) -> Any:
        """Names, types and nullability of the columns that `decode` writes."""
        return pa.schema(
            [
                pa.field(field.name, self._arrow_type(field.name), nullable=field.nullable)
                for field in self.schema.fields
                if field.role != "drop"
            ]
        )

    @cached_property
    def _writers(self) -> Mapping[str, ColumnWriter]:
        alone = [layout for layout in self.layouts if layout.differences is None]
        return {layout.field.name: ColumnWriter(layout, values_of(layout)) for layout in alone}

    @cached_property
    def _difference_writers(self) -> Mapping[str, DifferenceWriter]:
        return {
            layout.field.name: DifferenceWriter(layout, self._dates_of(layout).axis)
            for layout in self.layouts
            if layout.differences is not None
        }

    def _arrow_type(self, name: str) -> Any:
        if name in self._writers:
            return self._writers[name].arrow_type
        if name in self._difference_writers:
            return self._difference_writers[name].arrow_type
        kinds = {field.name: field.type for field in self.schema.fields}
        return pa.int64() if kinds[name] == "integer" else pa.string()

    def _table(
        self, codes: NDArray[np.integer[Any]], seed: int, first_row: int, persons: Ids | None, *, text: bool
    ) -> Any:
        if codes.ndim != 2 or codes.shape[1] != len(self.domain.names):
            raise ValueError(f"codes must have shape (rows, {len(self.domain.names)})")
        for place, layout in enumerate(self.layouts):
            _require_written(layout, codes[:, place])
        schema, unit = self.arrow_schema, self.schema.unit
        columns: list[Any] = []
        if text:
            schema = pa.schema([pa.field(name, pa.string()) for name in schema.names])
        linked = self._linked(codes, seed, first_row)
        dates = self._dates(codes, seed, first_row, linked)
        for name in schema.names:
            if name in self._difference_writers:
                own = np.asarray(codes[:, self.domain.position[name]], dtype=np.int64)
                columns.append(self._difference_writers[name].column(own, dates[name], text=text))
            elif name in self._writers:
                own = np.asarray(codes[:, self.domain.position[name]], dtype=np.int64)
                cells = self._writers[name].column(own, seed, first_row, text=text, linked=linked.get(name))
                columns.append(cells)
            elif persons is not None and isinstance(unit, PersonUnit) and unit.field == name:
                columns.append(pa.array(persons, pa.int64()).cast(schema.field(name).type))
            else:
                columns.append(identifiers(len(codes), first_row).cast(schema.field(name).type))
        return pa.Table.from_arrays(columns, schema=schema)

    def _dates(
        self, codes: NDArray[np.integer[Any]], seed: int, first_row: int, linked: Mapping[str, NDArray[np.int64]]
    ) -> dict[str, tuple[Positions, Present]]:
        """The dates of all relative columns and their bases, each base before what is relative to it."""
        found: dict[str, tuple[Positions, Present]] = {}
        bases = {field.relative_to.field for field in self._fields.values() if field.relative_to is not None}
        for field in base_order(tuple(self._fields.values())):
            name = field.name
            if name not in bases and name not in self._difference_writers:
                continue
            own = np.asarray(codes[:, self.domain.position[name]], dtype=np.int64)
            if field.relative_to is None:
                found[name] = base_dates(self._writers[name], own, seed, first_row, linked.get(name))
            else:
                found[name] = self._difference_writers[name].dates(own, seed, first_row, found[field.relative_to.field])
        return found

    def _linked(self, codes: NDArray[np.integer[Any]], seed: int, first_row: int) -> Mapping[str, NDArray[np.int64]]:
        """The grid values of columns that rules link; none where there are no such rules."""
        rulebook = self.schema.rulebook
        if rulebook is None:
            return {}

        def words(name: str, attempt: int) -> NDArray[np.uint64]:
            # The first words are those of a column that no rule links.
            label = name if attempt == 0 else f"{name}\x1f{attempt}"
            return row_words(seed, label, first_row, codes.shape[0])

        return JointValues(rulebook, self.domain).indices(np.asarray(codes, dtype=np.int64), words)


def _require_written(layout: Layout, codes: NDArray[np.integer[Any]]) -> None:
    name = layout.field.name
    if codes.size and not 0 <= codes.min() <= codes.max() < layout.size:
        raise ValueError(f"column {name!r}: codes must lie in 0 .. {layout.size - 1}")
    if layout.unlisted is not None and (codes == layout.unlisted).any():
        raise ValueError(f"column {name!r}: the code of unlisted cells is never written")
