"""Decoded values are uniform inside their bin: no edge piles up, no special code is drawn.

The chi-square tests use fixed seeds; with fresh ones each would raise a false alarm once in 10^9 runs.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from margent.schema.codec import Codec
from margent.schema.codec_writing import BLOCK_ROWS
from margent.schema.fields import Category, Date, DateTime, Integer, Number, Schema
from margent.schema.parts import Field

FALSE_ALARM = 1e-9
ROWS = 60_000


def decoded(field: Field, code: int, seed: int = 11) -> list[Any]:
    codec = Codec(Schema([field], unit="row"))
    values: list[Any] = codec.decode(np.full((ROWS, 1), code, np.int32), seed).column(0).to_pylist()
    return values


def uniform(values: list[Any], support: int) -> bool:
    counts = Counter(values)
    if len(counts) > support:
        return False
    observed = np.array([*counts.values(), *[0] * (support - len(counts))])
    return bool(stats.chisquare(observed).pvalue > FALSE_ALARM)


@pytest.mark.parametrize(
    ("field", "code", "low", "high", "support"),
    [
        (Integer("x", 0, 99, bins=10), 0, 0, 9, 10),
        (Integer("x", 0, 99, bins=10), 9, 90, 99, 10),
        (Integer("x", 0, 100, bins={"width": 30}), 3, 90, 100, 11),
        (Integer("x", -(2**63), -(2**63) + 20, bins=3), 1, -(2**63) + 7, -(2**63) + 13, 7),
        (Number("x", 0, 2, decimals=1, bins=2), 0, 0.0, 0.9, 10),
        (Number("x", 0, 2, decimals=1, bins=2), 1, 1.0, 2.0, 11),
        (Integer("x", 0, 20, bins=2, special=["0", "3", "9", "15"]), 0, 1, 8, 7),
        (Integer("x", 0, 20, bins=2, missing_values=["", "12"], special=["10", "19"]), 1, 11, 20, 8),
    ],
)
def test_uniform_inside_the_bin(field: Field, code: int, low: float, high: float, support: int) -> None:
    values = decoded(field, code)
    assert (min(values), max(values)) == (low, high)
    assert uniform(values, support)


def test_days_and_seconds_are_uniform_too() -> None:
    days = decoded(Date("x", "2020-01-01", "2020-12-31", bins="month"), 1)
    assert (min(days).isoformat(), max(days).isoformat()) == ("2020-02-01", "2020-02-29")
    assert uniform(days, 29)
    moments = decoded(DateTime("x", "2020-01-01", "2020-01-02", bins="hour"), 5)
    assert {moment.hour for moment in moments} == {5}
    assert uniform([moment.minute for moment in moments], 60)
    assert uniform([moment.second for moment in moments], 60)


def test_the_uniformity_test_has_power() -> None:
    """Planted faults: values rounded to the nearest tenth (edges get half), and an edge that attracts 2 % more."""
    rng = np.random.default_rng(1)
    rounded = np.rint(rng.uniform(0, 10, ROWS)).astype(int).tolist()
    assert not uniform(rounded, 11)
    sticky = np.where(rng.random(ROWS) < 0.02, 0, rng.integers(0, 10, ROWS)).tolist()
    assert not uniform(sticky, 10)


def test_columns_and_seeds_are_independent() -> None:
    fields = [Integer("a", 0, 999, bins=1), Integer("b", 0, 999, bins=1)]
    codec = Codec(Schema(fields, unit="row"))
    table = codec.decode(np.zeros((2000, 2), np.int32), seed=1)
    again = codec.decode(np.zeros((2000, 2), np.int32), seed=1)
    other = codec.decode(np.zeros((2000, 2), np.int32), seed=2)
    assert table.equals(again)
    assert not table.equals(other)
    a, b = (np.array(table[name]) for name in "ab")
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.15  # 6.7 standard errors
    assert not np.array_equal(a, b)


def test_golden_values_of_the_public_stream() -> None:
    """These bytes are part of a release's reproducibility: they must never change."""
    codec = Codec(Schema([Integer("age", 0, 99, bins=1), Number("x", 0, 1, bins=1, decimals=3)], unit="row"))
    table = codec.decode(np.zeros((4, 2), np.int32), seed=7, first_row=BLOCK_ROWS - 2)
    assert table.to_pydict() == {"age": [90, 54, 26, 35], "x": [0.074, 0.835, 0.209, 0.773]}


def test_blocks_of_any_size_give_the_same_bytes() -> None:
    fields = [Integer("a", 0, 10**6, bins=3), Number("b", 0, 1, bins=4), Category("c", ["x", "y"])]
    codec = Codec(Schema(fields, unit="row"))
    rows = BLOCK_ROWS + 500
    codes = np.stack([np.resize(np.arange(size), rows) for size in codec.domain.sizes], axis=1).astype(np.int32)
    whole = codec.decode(codes, seed=3)
    text = codec.decode_text(codes, seed=3)
    cuts = [0, 1, 700, BLOCK_ROWS - 1, BLOCK_ROWS + 3, rows]
    for decode, expected in ((codec.decode, whole), (codec.decode_text, text)):
        parts = [decode(codes[start:stop], seed=3, first_row=start) for start, stop in pairwise(cuts)]
        assert pa.concat_tables(parts).combine_chunks().equals(expected.combine_chunks())


def test_codes_that_may_not_be_written_are_refused() -> None:
    codec = Codec(Schema([Category("c", ["x", "y"], required=True)], unit="row"))
    for wrong in (-1, 2, 3):
        with pytest.raises(ValueError, match="'c'"):
            codec.decode(np.array([[0], [wrong]], np.int32), seed=1)
    with pytest.raises(ValueError, match="shape"):
        codec.decode(np.zeros((3, 2), np.int32), seed=1)


@pytest.mark.parametrize("rules", [(), ({"order": ["a", "b"]},)])
def test_they_are_refused_before_rules_and_bases_look_at_them(rules: tuple[dict[str, object], ...]) -> None:
    fields = [Integer(name, 0, 9, required=True) for name in "ab"]
    day = Date("in", "2020-01-01", "2020-01-09", required=True)
    relative = {"field": "in", "unit": "day", "minimum": 0, "maximum": 9}
    fields += [day, Date("out", required=True, relative_to=relative)]
    codec = Codec(Schema(fields, unit="row", rules=rules))
    for column, name in enumerate(("a", "b", "in", "out")):
        for wrong in (-1, codec.domain.sizes[column] - 1, codec.domain.sizes[column]):
            codes = np.zeros((2, 4), np.int32)
            codes[1, column] = wrong
            with pytest.raises(ValueError, match=f"'{name}'"):
                codec.decode(codes, seed=1)


def test_types_come_from_the_schema_whatever_the_rows() -> None:
    fields = [
        Integer("i", 0, 5, special=["-9"]),
        Integer("s", 0, 5, special=["<5"], required=True),
        Number("n", enum=[0.1, 0.25, 3]),
        Date("d", enum=["2020-01-01", "2021-06-30"]),
        Category("k", [3, 1, 2], required=True),
        Category("o", ["b", "a"], ordered=True),
    ]
    codec = Codec(Schema(fields, unit="row"))
    expected = [
        pa.int64(),
        pa.string(),
        pa.float64(),
        pa.date32(),
        pa.int64(),
        pa.dictionary(pa.int32(), pa.string(), True),
    ]
    assert codec.arrow_schema.types == expected
    assert [field.nullable for field in codec.arrow_schema] == [True, False, True, True, False, True]
    for rows in (0, 1, 50):
        codes = np.stack(
            [np.resize(np.flatnonzero(codec.sampleable[name]), rows) for name in codec.domain.names], axis=1
        ).astype(np.int32)
        assert codec.decode(codes, seed=1).schema.equals(codec.arrow_schema)
        assert codec.decode_text(codes, seed=1).num_rows == rows
    text = codec.decode_text(codes, seed=1).to_pydict()
    assert set(text["n"]) == {"0.10", "0.25", "3.00", ""}
    assert set(text["i"]) == {"0", "1", "2", "3", "4", "5", "-9", ""}
    typed = codec.decode(codes, seed=1)
    assert set(typed["n"].to_pylist()) == {0.1, 0.25, 3.0, None}
    assert typed["o"].combine_chunks().dictionary.to_pylist() == ["b", "a"]
