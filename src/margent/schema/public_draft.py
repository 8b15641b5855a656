"""A schema read off a table that is public already: never for a private one, and the schema says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from margent.schema.bins import FLOAT_DIGITS, VALUE_CODES
from margent.schema.cells import canonical_texts, plain
from margent.schema.draft import Draft, bounded_field, drafted
from margent.schema.formats import parse_iso
from margent.schema.labels import position_text
from margent.schema.parts import Field, FieldType, Spelling
from margent.schema.positions import Position, cell_position, plain_decimal
from margent.schema.write import json_scalar

PUBLIC_PROVENANCE = (
    "values and bounds were read from this table, which was declared to be public: "
    "fit for public tables and benchmarks only, never for a private table"
)
BINS = 32
"""Bins of a number, or of a whole number with too many values for a code each."""

_KINDS: tuple[FieldType, ...] = ("integer", "number", "date", "datetime")


def draft_from_public_data(batches: Iterable[Any], *, unit: str | None = None, max_categories: int = 1000) -> Draft:
    """A draft whose values and bounds are those of the table; only who is protected remains to be said.

    A column of whole numbers, numbers, ISO dates or datetimes gets bounds, one with at most
    ``max_categories`` different texts a closed list; others are identifiers if no text repeats, else dropped.

    Privacy: reads the rows themselves, so that the schema is as private as the table: for public tables only.
    """
    columns: dict[str, _Column] = {}
    for batch in batches:
        for name, cells in zip(batch.schema.names, batch.columns, strict=True):
            columns.setdefault(name, _Column(name, max_categories)).add(cells)
    return drafted([column.drafted() for column in columns.values()], unit=unit, provenance=PUBLIC_PROVENANCE)


@dataclass
class _Column:
    """What has been seen of one column so far."""

    name: str
    max_categories: int
    rows: int = 0
    blanks: int = 0
    texts: dict[str, None] = field(default_factory=dict)
    repeats: bool = False
    odd: bool = False
    offsets: bool = False
    bounds: dict[FieldType, tuple[Position, Position]] = field(default_factory=dict)
    kinds: tuple[FieldType, ...] = _KINDS

    def add(self, column: Any) -> None:
        column = plain(column)
        coded = pa.types.is_dictionary(column.type)
        encoded = canonical_texts(plain(column.dictionary) if coded else column).dictionary_encode()
        # A dictionary is not spelled out: a long text may stand in many rows.
        counts = (encoded.indices.take(column.indices) if coded else encoded.indices).value_counts()
        places, times = counts.field(0).to_pylist(), counts.field(1).to_pylist()
        distinct = encoded.dictionary.to_pylist()
        for place, count in zip(places, times, strict=True):
            raw = None if place is None else distinct[place]
            self.rows += count
            if not raw:
                self.blanks += count
                continue
            text = raw.decode(errors="replace")
            self.odd = self.odd or "\ufffd" in text
            self.repeats = self.repeats or count > 1 or text in self.texts
            if len(self.texts) <= self.max_categories:
                self.texts[text] = None
            self._measure(text)

    def _measure(self, text: str) -> None:
        for kind in self.kinds:
            position = cell_position(kind, text, Spelling(), "UTC")
            if position is None or not _plainly(kind, text, position):
                self.kinds = tuple(other for other in self.kinds if other != kind)
                continue
            low, high = self.bounds.get(kind, (position, position))
            self.bounds[kind] = min(low, position), max(high, position)
            if kind == "datetime":
                moment = parse_iso(kind, text)
                self.offsets = self.offsets or (moment is not None and moment.offset is not None)

    def drafted(self) -> dict[str, Any]:
        """The field as it would be declared."""
        made = self._declared()
        if self.rows and not self.blanks:
            made.setdefault("constraints", {})["required"] = True
        return made

    def _declared(self) -> dict[str, Any]:
        if self.odd or not self.texts:
            return {"name": self.name, "type": "string", "margent": {"role": "drop"}}
        if self.kinds:
            kind = self.kinds[0]
            return self._bounded(kind, *self.bounds[kind])
        if len(self.texts) <= self.max_categories:
            return {"name": self.name, "type": "string", "categories": sorted(self.texts)}
        role = "drop" if self.repeats else "identifier"
        return {"name": self.name, "type": "string", "margent": {"role": role}}

    def _bounded(self, kind: FieldType, low: Position, high: Position) -> dict[str, Any]:
        block: dict[str, Any] = {}
        if kind == "number":
            bounds = [json_scalar(plain_decimal(Fraction(position))) for position in (low, high)]
            return bounded_field(self.name, kind, *bounds, bins=BINS if low < high else 1)
        if kind == "integer":
            if high - low >= VALUE_CODES:
                block["bins"] = BINS
            return bounded_field(self.name, kind, int(low), int(high), **block)
        if high - low >= VALUE_CODES:
            block["bins"] = "month"
        zone = ("UTC" if self.offsets else "naive") if kind == "datetime" else None
        texts = [position_text(Field(self.name, kind, time_zone=zone), position) for position in (low, high)]
        if zone is not None:
            block["timeZone"] = zone
        return bounded_field(self.name, kind, *texts, **block)


def _plainly(kind: FieldType, text: str, position: Position) -> bool:
    """Whether a text is of this kind without doubt: 02116 is no number, a date with a clock time no date."""
    if kind in ("integer", "number"):
        if not -(10**FLOAT_DIGITS) <= position <= 10**FLOAT_DIGITS:
            return False
        digits = text.strip().lstrip("+-")
        leading = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        return not leading
    return kind != "date" or len(text.strip()) == 10
