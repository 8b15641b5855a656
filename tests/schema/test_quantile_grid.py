"""The grid that quantiles are bought on, and what becomes of a schema once they are: valid whatever the noise says."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent import Category, Date, DateTime, Integer, Number, Schema
from margent.errors import SchemaError
from margent.schema.codec import Codec
from margent.schema.fields import Time, Year, YearMonth
from margent.schema.parts import EdgeBins, Field, MissingToken
from margent.schema.quantile_grid import cells_of, gridded
from margent.schema.read import schema_from_json
from margent.schema.settled import grid_schema, planned, quantile_starts, settled
from margent.schema.write import schema_to_json
from margent.transcript import OpenValues, Quantiles

EMPTY = (MissingToken(""),)


def quantiles(count: int = 4, grid: int = 30) -> dict[str, Any]:
    return {"bins": {"quantiles": count, "grid": grid}}


FIELDS = [
    Integer("x", -7, 1000, **quantiles()),
    Integer("x", 0, 3, **quantiles(grid=2)),
    Integer("x", 5, 5, **quantiles()),
    Integer("x", 0, 40, special=["-9", "0", "1", "2", "3", "40"], **quantiles()),
    Number("x", 0, 1, **quantiles()),
    Number("x", 0.37, 1e12, **quantiles()),
    Number("x", -1, 1, decimals=1, special=["0.5", "<5"], **quantiles(grid=1000)),
    Number("x", 2, 2, **quantiles()),
    Date("x", "1900-01-01", "2020-12-31", **quantiles()),
    DateTime("x", "2020-01-01T00:00:00", "2020-01-01T00:10:00", **quantiles()),
    DateTime("x", "2020-01-01T00:00:00", "2021-01-01T00:00:00", time_zone="America/New_York", **quantiles(grid=700)),
    DateTime("x", "2020-01-01T00:00:00", "2020-02-01T00:00:00", format="%d.%m.%Y %H:%M", **quantiles()),
    Time("x", **quantiles()),
    Year("x", 1900, 2020, **quantiles()),
    YearMonth("x", "1990-01", "2020-12", **quantiles()),
]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.type} {field.minimum} {field.maximum}")
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0, 1, 50, 10**6]))
def test_any_answer_settles_any_field(field: Field, seed: int, scale: int) -> None:
    schema = Schema([field, Category("other", ["a", "b"])], unit="row")
    grid = gridded(field, EMPTY)
    assert cells_of(grid) <= field.bins.grid  # type: ignore[union-attr]
    size = Codec(grid_schema(schema)).domain.size("x")
    counts = np.random.default_rng(seed).integers(-scale, scale + 1, size)
    fixed = settled(schema, [Quantiles("x", counts, Fraction(1), 0)])
    codec = Codec(fixed)  # every bin holds a value that can be written
    assert codec.layouts[0].values <= min(4, cells_of(grid))
    assert schema_from_json(schema_to_json(fixed)) == fixed
    assert settled(schema, [Quantiles("x", counts, Fraction(1), 0)]) == fixed
    assert codec.domain.size("x") <= Codec(planned(schema)).domain.size("x")
    codes = np.zeros((codec.layouts[0].values, 2), dtype=np.int64)
    codes[:, 0] = np.arange(len(codes))
    for text in (True, False):
        table = codec.decode_text(codes, 1) if text else codec.decode(codes, 1)
        assert codec.encode(table.to_batches()[0])[0].tolist() == codes[:, 0].tolist()


def test_widths_are_round_and_bounds_are_kept() -> None:
    edges = gridded(Number("x", 0, 500_000, bins={"quantiles": 4}), EMPTY).bins
    assert isinstance(edges, EdgeBins)
    assert edges.edges[:3] == (Decimal(0), Decimal(500), Decimal(1000))
    assert len(edges.edges) == 1001
    clock = gridded(DateTime("x", "2020-01-01T00:00:00", "2020-01-02T00:00:00", **quantiles(grid=100)), EMPTY).bins
    assert isinstance(clock, EdgeBins)
    assert clock.edges[1] == "2020-01-01T00:15:00"
    last = gridded(Number("x", 0, 1.05, decimals=1, **quantiles(grid=10)), EMPTY).bins
    assert isinstance(last, EdgeBins)
    assert (last.edges[0], last.edges[-2:]) == (Decimal(0), (Decimal("0.8"), Decimal("1.05")))


@given(
    counts=st.lists(st.integers(-50, 500), min_size=1, max_size=60),
    bins=st.integers(1, 12),
)
def test_quantiles_are_runs_of_cells_in_order(counts: list[int], bins: int) -> None:
    starts = quantile_starts(np.array(counts), bins)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert len(starts) <= min(bins, len(counts))
    assert starts[-1] < len(counts)


@given(counts=st.lists(st.integers(0, 500), min_size=2, max_size=60), bins=st.integers(2, 9))
def test_without_noise_every_edge_is_the_best_there_is(counts: list[int], bins: int) -> None:
    total, ends = sum(counts), np.cumsum(counts)
    starts = quantile_starts(np.array(counts), bins)
    if total == 0:
        return
    inner = [Fraction(int(ends[start - 1])) for start in starts[1:]]
    outer = [Fraction(0), *inner, Fraction(total)]
    for share in range(1, bins):
        wanted = Fraction(share * total, bins)
        best = min([abs(wanted - end) for end in ends.tolist()] + [wanted])
        assert min(abs(wanted - end) for end in outer) == best


def test_a_value_that_most_records_share_has_a_bin_of_its_own() -> None:
    assert quantile_starts(np.array([1, 2, 900, 1, 1, 2]), 4) == [0, 2, 3]


def test_rounding_does_not_depend_on_the_machine() -> None:
    counts = np.array([3, 2**61, -(2**60), 7, 2**40])
    assert quantile_starts(counts, 3) == [0, 1, 2]


def test_an_open_set_is_what_was_kept_and_what_the_rest_is_called() -> None:
    def kept(field: Field, *values: str) -> list[object]:
        answer = OpenValues("x", values, np.zeros(len(values), np.int64), Fraction(1), 0)
        fixed = settled(Schema([field], unit="row"), [answer])
        Codec(fixed)
        assert schema_from_json(schema_to_json(fixed)) == fixed
        return [item.value for item in fixed.fields[0].listed or ()]

    plain = Field("x", "string", open_set=FIELD.open_set)
    assert kept(plain, "b", "z") == ["b", "z"]
    assert kept(plain) == ["other"]
    assert kept(replace(plain, missing=(MissingToken("other"), MissingToken("NA")))) == ["other values"]
    assert kept(replace(plain, unlisted_to="mm"), "b", "z") == ["b", "mm", "z"]
    assert kept(replace(plain, unlisted_to="b", required=True), "b", "z") == ["b", "z"]


FIELD = schema_from_json(
    {"fields": [{"name": "x", "type": "string", "margent": {"openSet": True}}], "margent": {"unit": "row"}}
).fields[0]


def test_answers_that_were_not_asked_for_settle_nothing() -> None:
    schema = Schema([FIELD, Integer("n", 0, 9, **quantiles())], unit="row")
    open_answer = OpenValues("x", ("a",), np.ones(1, np.int64), Fraction(1), 0)
    grid_answer = Quantiles("n", np.ones(20, np.int64), Fraction(1), 0)
    settled(schema, [open_answer, grid_answer])
    for wrong in ([], [open_answer], [open_answer, open_answer], [open_answer, grid_answer, grid_answer]):
        with pytest.raises(ValueError, match="asks for"):
            settled(schema, wrong)
    with pytest.raises(ValueError, match="grid's cells"):
        settled(schema, [open_answer, Quantiles("n", np.ones(2, np.int64), Fraction(1), 0)])


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"type": "integer", "margent": {"bins": {"quantiles": 3}}}, "public minimum and maximum"),
        ({"type": "string", "constraints": {"required": True}, "margent": {"openSet": True}}, "must go somewhere"),
        ({"type": "string", "margent": {"openSet": True, "unlisted": {"to": "a\u202eb"}}}, "printable"),
        (
            {
                "type": "integer",
                "constraints": {"minimum": 0, "maximum": 1},
                "margent": {"bins": {"quantiles": 3}, "special": ["0", "1"]},
            },
            "holds no value",
        ),
    ],
)
def test_what_could_not_be_settled_is_refused_at_once(field: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema_from_json({"fields": [{"name": "x"} | field], "margent": {"unit": "row"}})
