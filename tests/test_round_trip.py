"""Random schemas and tables, from cells to codes to noisy answers to records to cells: every value written is valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from margent import Budget
from margent.errors import PlanError, SchemaError
from margent.pipeline import synthesize
from margent.schema.codec import Codec
from margent.schema.codec_bins import BinnedValues
from margent.schema.fields import Date, Integer, Schema
from margent.schema.layout import Layout
from margent.schema.positions import cell_position, scalar_position
from margent.schema.read import schema_from_json
from margent.schema.stored import stored_schema, stored_table
from margent.schema.write import schema_to_json
from tests.schema.strategies import cells, fields
from tests.sizes import rounds

EXAMPLES = rounds(60, 10_000)
METHODS = ("independent", "dense", "privsyn")
MOST_CELLS = 20_000


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, dict[str, list[bytes | None]]]:
    """A schema of one to four fields, and up to eight rows of cells: plausible, odd, undecodable or absent."""
    found = draw(st.lists(fields(), min_size=1, max_size=4, unique_by=lambda field: str(field["name"])))
    try:
        schema = schema_from_json({"fields": found, "margent": {"unit": "row"}})
    except SchemaError:
        assume(False)
        raise
    rows = draw(st.integers(0, 8))
    columns = {field["name"]: draw(st.lists(cells(field), min_size=rows, max_size=rows)) for field in found}
    return schema, columns


def valid(layout: Layout, text: str) -> bool:
    """Whether a written cell is a value, special code or missing token of its field, within its bounds."""
    field = layout.field
    if layout.code_of(text) is None:
        # Of a nullable field without tokens a missing cell is written empty, and read as one that has no value.
        return text == "" and layout.missing != () and layout.fallback == layout.null
    if text in layout.texts or field.minimum is None or field.maximum is None:
        return True
    place = cell_position(field.type, text, field.spelling, field.time_zone)
    low, high = (scalar_position(field.type, end, field.time_zone) for end in (field.minimum, field.maximum))
    assert place is not None
    return low <= place <= high


def check(schema: Schema, columns: dict[str, list[bytes | None]], method: str, seed: int) -> None:
    """Run the whole flow on one table and look at every cell of it."""
    codec = Codec(schema)
    if np.prod([float(size) for size in codec.domain.sizes]) > MOST_CELLS:
        assume(False)
    batch = pa.table({name: pa.array(column, pa.binary()) for name, column in columns.items()})
    (rows,) = batch.to_batches() or [pa.RecordBatch.from_pylist([], schema=batch.schema)]
    for codes, size in zip(codec.encode(rows), codec.domain.sizes, strict=True):
        assert codes.size == 0 or 0 <= codes.min() <= codes.max() < size
    try:
        release = synthesize(batch, schema, budget=Budget(10_000), method=method, rows=12, seed=seed)
    except PlanError:
        assume(False)
        raise
    texts = codec.decode_text(release.codes, release.seed)
    assert texts.num_rows == 12
    for layout in codec.layouts:
        name = layout.field.name
        bad = [cell for cell in texts[name].to_pylist() if not valid(layout, cell)]
        assert bad == [], name
    # Typed, written in the schema's types, and read again: the codes that were sampled.
    typed = stored_table(release.table, stored_schema(codec, release.table.schema))
    for place, codes in enumerate(codec.encode(typed.combine_chunks().to_batches()[0])):
        assert _same(codec.layouts[place], codes, release.codes[:, place])
    assert schema_from_json(schema_to_json(schema)) == schema


def _same(layout: Layout, read: Any, sampled: Any) -> bool:
    """Equal codes; in typed tables all missing cells are one null."""
    first = layout.values + len(layout.special)
    missing = (sampled >= first) & (sampled < first + len(layout.missing))
    return bool(np.array_equal(np.where(missing, layout.null, sampled), read))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(tables(), st.sampled_from(METHODS), st.integers(0, 2**40))
def test_every_value_of_every_table_is_valid(
    made: tuple[Schema, dict[str, list[bytes | None]]], method: str, seed: int
) -> None:
    check(*made, method, seed)


@pytest.mark.parametrize("shift", [1, -1])
def test_a_value_beyond_its_bounds_is_caught(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema(
        [Integer("n", 0, 9, required=True), Date("d", "2020-01-01", "2020-03-31", bins="month")], unit="row"
    )
    columns: dict[str, list[bytes | None]] = {"n": [b"0", b"9"] * 4, "d": [b"2020-01-01", b"2020-03-31"] * 4}
    check(schema, columns, "independent", 1)
    draw = BinnedValues.draw
    monkeypatch.setattr(BinnedValues, "draw", lambda *given: draw(*given) + shift)
    with pytest.raises(AssertionError):
        check(schema, columns, "independent", 1)
