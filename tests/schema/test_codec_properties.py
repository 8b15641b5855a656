"""What holds for every schema and every cell: a code always, of one cell alone, and back again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.codec import Codec
from margent.schema.fields import Schema
from margent.schema.read import schema_from_json
from margent.schema.write import schema_to_json
from tests.schema.strategies import cells, fields


def read_or_skip(field: dict[str, Any]) -> Schema:
    try:
        return schema_from_json({"fields": [field], "margent": {"unit": "row"}})
    except SchemaError as error:
        assert error.faults  # noqa: PT017
        assume(False)
        raise


def batch_of(name: str, column: list[Any], kind: Any = None) -> Any:
    return pa.RecordBatch.from_arrays([pa.array(column, kind or pa.binary())], names=[name])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_every_text_cell_has_one_code_and_it_is_its_own(data: st.DataObject) -> None:
    field = data.draw(fields())
    schema = read_or_skip(field)
    codec = Codec(schema)
    column = data.draw(st.lists(cells(field), max_size=8))
    (codes,) = codec.encode(batch_of(field["name"], column))
    layout = codec.layouts[0]
    assert codes.dtype in (np.uint16, np.uint32)
    assert len(codes) == len(column)
    assert all(0 <= code < codec.domain.sizes[0] for code in codes.tolist())
    for cell, code in zip(column, codes.tolist(), strict=True):
        (alone,) = codec.encode(batch_of(field["name"], [cell]))
        assert alone.tolist() == [code]
        try:
            text = None if cell is None else cell.decode()
        except UnicodeDecodeError:
            text = None
        slow = None if text is None else layout.code_of(text)
        assert code == (layout.fallback if slow is None else slow)


@settings(max_examples=300, deadline=None)
@given(fields(), st.integers(0, 2**32), st.integers(0, 3 * 2**16), st.integers(1, 40))
def test_decoding_is_undone_by_encoding(field: dict[str, Any], seed: int, first: int, rows: int) -> None:
    schema = read_or_skip(field)
    codec = Codec(schema)
    allowed = np.flatnonzero(codec.sampleable[field["name"]])
    codes = allowed[np.arange(rows) % allowed.size].astype(np.int32).reshape(-1, 1)
    typed, text = codec.decode(codes, seed, first_row=first), codec.decode_text(codes, seed, first_row=first)
    assert typed.schema.equals(codec.arrow_schema)
    assert typed.schema.field(0).nullable != bool(field.get("constraints", {}).get("required"))
    assert set(text.schema.types) == {pa.string()}
    as_file = text.cast(pa.schema([(field["name"], pa.binary())]))
    (back,) = codec.encode(as_file.combine_chunks().to_batches()[0])
    assert back.tolist() == codes[:, 0].tolist()
    (back,) = codec.encode(typed.combine_chunks().to_batches()[0])
    # Arrow has one null, so that missing tokens with cells of their own fall together there.
    missing = range(codec.layouts[0].null, codec.layouts[0].null + len(codec.layouts[0].missing))
    expected = [codec.layouts[0].null if code in missing else code for code in codes[:, 0].tolist()]
    assert back.tolist() == expected
    cut = rows // 2
    parts = [codec.decode(codes[:cut], seed, first_row=first), codec.decode(codes[cut:], seed, first_row=first + cut)]
    assert pa.concat_tables(parts).to_pydict() == typed.to_pydict()


@settings(max_examples=300, deadline=None)
@given(st.lists(fields(), min_size=1, max_size=3, unique_by=lambda field: field["name"]))
def test_schemas_survive_their_json(listed: list[dict[str, Any]]) -> None:
    try:
        schema = schema_from_json({"fields": listed, "margent": {"unit": "row"}})
    except SchemaError:
        assume(False)
        raise
    written = json.loads(json.dumps(schema_to_json(schema), sort_keys=True))
    again = schema_from_json(written)
    assert again == schema
    assert schema_to_json(again) == schema_to_json(schema)
    assert Codec(again).domain == Codec(schema).domain
    assert Codec(again).labels == Codec(schema).labels


TYPED = {
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.decimal128(20, 3): st.decimals(-1000, 1000, places=3),
    pa.decimal256(40, 0): st.decimals(-1000, 1000, places=0),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.time32("s"): st.times().map(lambda t: t.replace(microsecond=0)),
    pa.time64("ns"): st.times(),
    pa.timestamp("s"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.timestamp("ns"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.timestamp("us", "UTC"): st.integers(-(2**50), 2**50),
    pa.timestamp("ms", "America/New_York"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.duration("s"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.string(): st.text(max_size=5),
    pa.large_string(): st.text(max_size=5),
    pa.string_view(): st.text(max_size=5),
    pa.large_binary(): st.binary(max_size=5),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.list_(pa.int64()): st.lists(st.integers(0, 5), max_size=2),
    pa.struct([("a", pa.int64())]): st.fixed_dictionaries({"a": st.integers(0, 5)}),
    pa.null(): st.none(),
}


@pytest.mark.parametrize("kind", list(TYPED), ids=str)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_typed_cell_has_one_code_and_it_is_its_own(kind: Any, data: st.DataObject) -> None:
    field = data.draw(fields())
    codec = Codec(read_or_skip(field))
    values = data.draw(st.lists(st.one_of(TYPED[kind], st.none()), max_size=6))
    column = pa.array(values, kind)
    (codes,) = codec.encode(pa.RecordBatch.from_arrays([column], names=[field["name"]]))
    assert all(0 <= code < codec.domain.sizes[0] for code in codes.tolist())
    for place in range(len(values)):
        alone = pa.RecordBatch.from_arrays([column.slice(place, 1)], names=[field["name"]])
        assert codec.encode(alone)[0].tolist() == [codes[place]]
        if values[place] is None:
            assert codes[place] == codec.layouts[0].null
    if not pa.types.is_nested(kind) and not pa.types.is_null(kind) and kind not in (pa.string_view(), pa.float16()):
        folded = column.dictionary_encode()
        assert codec.encode(pa.RecordBatch.from_arrays([folded], names=[field["name"]]))[0].tolist() == codes.tolist()
