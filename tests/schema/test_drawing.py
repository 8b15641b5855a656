"""How values are drawn inside bins: middles, whole numbers, tails of public shape, and spikes that no bin draws."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent import Integer, Number, Schema
from margent.errors import SchemaError
from margent.schema.codec import Codec
from margent.schema.drawing import halving
from margent.schema.fields import Date, Year
from margent.schema.layout import layout_of
from margent.schema.parts import Field
from margent.schema.read import schema_from_json
from margent.schema.write import schema_text
from margent.stream import Stream

ALPHA = 1e-8


def drawn(field: Field, code: int, rows: int = 4000, *, text: bool = False) -> list[Any]:
    codec = Codec(Schema([field], unit="row"))
    codes = np.full((rows, 1), code)
    table = codec.decode_text(codes, 3) if text else codec.decode(codes, 3)
    return list(table.column("x").to_pylist())


def test_the_middle_of_a_bin_is_always_the_same() -> None:
    assert set(drawn(Integer("x", 0, 9, bins=2, decode="midpoint"), 1)) == {7}
    assert set(drawn(Number("x", 0, 1, bins=2, decimals=2, decode="midpoint"), 0, text=True)) == {"0.24"}
    assert set(map(str, drawn(Date("x", "2020-01-01", "2020-12-31", bins="month", decode="midpoint"), 1))) == {
        "2020-02-15"
    }


def test_only_whole_numbers_are_written_where_that_is_asked_for() -> None:
    field = Number("x", 0, 10, bins=[0, 2.5, 10], decimals=2, special=["1", "7.5"], decode="integer")
    assert set(drawn(field, 0)) == {0.0, 2.0}
    assert set(drawn(field, 1)) == {3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0}
    assert set(drawn(field, 0, text=True)) == {"0.00", "2.00"}


def test_a_tail_falls_by_half_every_so_many_units() -> None:
    field = Integer("x", 0, 1000, bins=[0, 10, 1000], decode={"tail": 50})
    values = np.array(drawn(field, 1, 40_000))
    assert (values >= 10).all()
    assert (values <= 1000).all()
    pieces = (values - 10) // 50
    for piece in range(6):
        expected = 2.0 ** -(piece + 1)
        spread = np.sqrt(expected * (1 - expected) / values.size)
        assert abs((pieces == piece).mean() - expected) < 6 * spread  # false alarm below 1e-8 each
    inside = (values - 10)[pieces == 0]
    assert abs(inside.mean() - 24.5) < 6 * np.sqrt(50**2 / 12 / inside.size)
    assert set(drawn(field, 0)) == set(range(10))  # the other bins are uniform


def test_a_tail_without_a_size_takes_a_quarter_of_its_bin() -> None:
    plain = drawn(Integer("x", 0, 410, bins=[0, 10, 410], decode="tail"), 1, 500)
    assert plain == drawn(Integer("x", 0, 410, bins=[0, 10, 410], decode={"tail": 100}), 1, 500)
    assert plain != drawn(Integer("x", 0, 410, bins=[0, 10, 410]), 1, 500)


@given(count=st.integers(1, 10**12), half=st.integers(1, 10**12), seed=st.integers(0, 100))
def test_a_tail_never_leaves_its_bin(count: int, half: int, seed: int) -> None:
    words = np.concatenate([Stream(seed, "x").words(50), np.array([0, 1, 2**64 - 1], np.uint64)])
    found = halving(words, count, half)
    assert found.min() >= 0
    assert found.max() < count


def test_the_law_of_a_short_tail_is_exact() -> None:
    """Every 16-bit beginning of a word once: pieces of 3, 3, 2 have weights 4, 2, 1 over 7."""
    words = (np.arange(2**16, dtype=np.uint64) << np.uint64(48)) | np.uint64(1 << 20)
    shares = np.bincount(halving(words, 8, 3) // 3, minlength=3) / 2**16
    assert np.abs(shares - np.array([4, 2, 1]) / 7).max() < 2**-12


SPIKED = Number("x", 0, 100, bins=[0, 20, 100], decimals=1, spikes=[0, 40, 99.5], special=["-1"])


def test_spikes_are_values_of_their_own_and_no_bin_draws_them() -> None:
    codec = Codec(Schema([SPIKED], unit="row"))
    assert codec.labels["x"] == ("0 to 20", "20 to 100", "-1", "0.0", "40.0", "99.5", "(missing)")
    cells = [b"0", b"0.00", b"-0", b"0.1", b"40", b"4e1", b"39.99", b"99.5", b"120", b"-5", b"-1", b""]
    expected = [3, 3, 3, 0, 4, 4, 1, 5, 1, 0, 2, 6]
    assert codec.encode(pa.RecordBatch.from_pydict({"x": cells}))[0].tolist() == expected
    typed = pa.RecordBatch.from_pydict({"x": [0.0, 40.0, 99.5, 0.1, None]})
    assert codec.encode(typed)[0].tolist() == [3, 4, 5, 0, 6]
    for code in (0, 1):
        assert not {0.0, 40.0, 99.5} & set(drawn(SPIKED, code, 20_000))
    assert set(drawn(SPIKED, 3)) == {0.0}
    assert set(drawn(SPIKED, 5, text=True)) == {"99.5"}
    assert set(drawn(SPIKED, 3, text=True)) == {"0.0"}


def test_spikes_are_spelled_as_the_field_spells_numbers() -> None:
    field = Number("x", -5, 5, bins=4, decimals=2, spikes=[-1.5, 2], decimal_char=",")
    assert set(drawn(field, 4, text=True)) == {"-1,50"}
    codec = Codec(Schema([field], unit="row"))
    batch = pa.RecordBatch.from_pydict({"x": [b"-1,5", b"2", b"2,00"]})
    assert codec.encode(batch)[0].tolist() == [4, 5, 5]


@settings(max_examples=80, deadline=None)
@given(
    low=st.integers(-50, 50),
    width=st.integers(1, 400),
    bins=st.integers(1, 5),
    spikes=st.lists(st.integers(-60, 400), max_size=4, unique=True),
    decimals=st.sampled_from([None, 0, 1, 3]),
    decode=st.sampled_from([None, "midpoint", "integer", "tail", {"tail": 3}]),
    kind=st.sampled_from(["integer", "number", "year"]),
)
def test_whatever_is_accepted_reads_back_what_it_writes(
    low: int, width: int, bins: int, spikes: list[int], decimals: int | None, decode: Any, kind: str
) -> None:
    options: dict[str, Any] = {"bins": bins, "spikes": spikes, "decode": decode}
    try:
        if kind == "number":
            field = Number("x", low, low + width, decimals=decimals, **options)
        else:
            field = (Integer if kind == "integer" else Year)("x", low, low + width, **options)
        schema = Schema([field], unit="row")
    except SchemaError as error:
        assert all(fault.pointer.startswith("/") for fault in error.faults)  # noqa: PT017
        return
    assert schema_from_json(json.loads(schema_text(schema))) == schema
    codec = Codec(schema)
    codes = np.repeat(np.arange(codec.domain.sizes[0]), 20).reshape(-1, 1)
    for table in (codec.decode_text(codes, 9), codec.decode(codes, 9)):
        assert codec.encode(table.combine_chunks().to_batches()[0])[0].tolist() == codes[:, 0].tolist()
    layout = layout_of(field, schema.missing_of(field))
    for text in codec.decode_text(codes, 9).column("x").to_pylist():
        assert layout.code_of(text) is not None
        if decode == "integer" and text:
            assert Fraction(text).denominator == 1


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"type": "integer", "margent": {"decode": "integer", "bins": 2}}, "told to be whole"),
        ({"type": "number", "margent": {"decode": "integer", "bins": 10}}, "every bin needs a whole number"),
        ({"type": "number", "margent": {"decode": {"tail": 0}, "bins": 2}}, "must be above 0"),
        ({"type": "number", "margent": {"decode": "middle", "bins": 2}}, "expected"),
        ({"type": "number", "margent": {"bins": 2, "spikes": [1, 1.0]}}, "listed twice"),
        ({"type": "number", "margent": {"bins": 2, "spikes": [7]}}, "outside of minimum and maximum"),
        ({"type": "number", "margent": {"bins": 2, "decimals": 1, "spikes": [0.25]}}, "more than the 1 decimals"),
        ({"type": "number", "margent": {"bins": 2, "spikes": [1], "special": ["1.0"]}}, "cannot be both"),
        ({"type": "number", "margent": {"bins": 2, "spikes": ["many"]}}, "expected a number"),
    ],
)
def test_what_contradicts_itself_is_refused(field: dict[str, Any], said: str) -> None:
    whole = {"name": "x", "constraints": {"minimum": 0, "maximum": 5}} | field
    with pytest.raises(SchemaError, match=said):
        schema_from_json({"fields": [whole], "margent": {"unit": "row"}})


def test_a_list_has_neither_spikes_nor_rules_for_decoding() -> None:
    for block in ({"decode": "midpoint"}, {"spikes": [1]}):
        field = {"name": "x", "type": "integer", "categories": [1, 2], "margent": block}
        with pytest.raises(SchemaError, match="bins"):
            schema_from_json({"fields": [field], "margent": {"unit": "row"}})
