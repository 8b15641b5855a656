"""Inputs that broke other tools, each with the right behavior of schema and codec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from margent.errors import SchemaError
from margent.schema.codec import Codec
from margent.schema.container import container_faults
from margent.schema.fields import (
    Boolean,
    Category,
    Date,
    DateTime,
    Dropped,
    Identifier,
    Integer,
    Number,
    Schema,
)


def text_batch(columns: dict[str, list[str | bytes | None]]) -> Any:
    """A batch as it comes from a text file."""
    raw = {
        name: pa.array([cell.encode() if isinstance(cell, str) else cell for cell in cells], pa.binary())
        for name, cells in columns.items()
    }
    return pa.RecordBatch.from_pydict(raw)


def codes_of(codec: Codec, batch: Any) -> dict[str, list[int]]:
    return {name: codes.tolist() for name, codes in zip(codec.domain.names, codec.encode(batch), strict=True)}


def sampled(codec: Codec, rows: int = 400, seed: int = 3) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Every code that may be written, many times, in every column."""
    columns = [np.resize(np.flatnonzero(codec.sampleable[name]), rows) for name in codec.domain.names]
    return np.stack(columns, axis=1).astype(np.int32)


def written(codec: Codec, rows: int = 400) -> dict[str, list[str]]:
    table: dict[str, list[str]] = codec.decode_text(sampled(codec, rows), seed=3).to_pydict()
    return table


def one(field: Any) -> Codec:
    return Codec(Schema([field], unit="row"))


def test_undecodable_bytes_are_unlisted() -> None:
    cities = ["Münster", "Köln", "Bonn"]
    latin: list[str | bytes | None] = ["M\xfcnster".encode("latin-1"), b"K\xf6ln", b"Bonn"]
    required = one(Category("city", cities, required=True))
    assert codes_of(required, text_batch({"city": latin}))["city"] == [3, 3, 2]
    assert required.unlisted_codes == {"city": 3}
    assert not required.sampleable["city"][3]
    nullable = one(Category("city", cities))
    assert codes_of(nullable, text_batch({"city": latin}))["city"] == [3, 3, 2]
    assert nullable.unlisted_codes == {}
    mapped = one(Category("city", [*cities, "other"], required=True, unlisted={"to": "other"}))
    assert codes_of(mapped, text_batch({"city": latin}))["city"] == [3, 3, 2]
    assert codes_of(mapped, text_batch({"city": ["Münster", "Köln"]}))["city"] == [0, 1]


def test_odd_column_names_stay_as_they_are() -> None:
    names = ["Marital status", "<b>pay</b>", "count", "select", "naïve é", "a,b", 'x"y', "col.1", "col_1", " lead"]
    schema = Schema([Integer(name, 0, 50) for name in names], unit="row")
    codec = Codec(schema)
    assert list(codec.domain.names) == names
    assert codec.decode(sampled(codec), seed=1).column_names == names


def test_leading_zeros_survive() -> None:
    codec = Codec(
        Schema(
            [
                Category("zip", ["02116", "00501", "10001"], required=True),
                Date("birth", "1900-01-01", "2020-12-31", format="%d%m%Y", bins="year", required=True),
            ],
            unit="row",
        )
    )
    batch = text_batch({"zip": ["02116", "2116", "00501"], "birth": ["05112001", "01011990", "5112001"]})
    assert codes_of(codec, batch) == {"zip": [0, 3, 1], "birth": [101, 90, 121]}
    out = written(codec)
    assert {len(cell) for cell in out["zip"]} == {5}
    assert {len(cell) for cell in out["birth"]} == {8}
    assert any(cell.startswith("0") for cell in out["birth"])
    # A frame that lost the zeros still finds its value, because only one category has it.
    frame = pa.RecordBatch.from_pydict({"zip": [2116, 501], "birth": ["05112001", "01011990"]})
    assert codes_of(codec, frame)["zip"] == [0, 1]


def test_whole_numbers_with_missing_stay_whole() -> None:
    codec = one(Integer("children", 0, 12))
    assert codes_of(codec, text_batch({"children": ["2", "", "0", "2.0", "486.0", "2.5"]}))["children"] == [
        2,
        13,
        0,
        2,
        12,
        13,
    ]
    frame = pd.DataFrame({"children": [2, None, 0]})
    assert frame["children"].dtype == np.float64
    assert codes_of(codec, pa.RecordBatch.from_pandas(frame))["children"] == [2, 13, 0]
    table = codec.decode(sampled(codec), seed=1)
    assert table.schema.field("children").type == pa.int64()
    assert table.schema.field("children").nullable
    assert all(cell == "" or cell.isdigit() for cell in written(codec)["children"])
    none_missing = codec.decode(np.zeros((3, 1), np.int32), seed=1)
    assert none_missing.schema == table.schema
    all_missing = codec.decode(np.full((3, 1), 13, np.int32), seed=1)
    assert all_missing.schema == table.schema


def test_whole_numbers_above_2_to_the_53_stay_exact() -> None:
    codec = Codec(
        Schema(
            [
                Category("block", [9007199254740993, 9007199254740995]),
                Integer("clock", 1700000000000000000, 1700000001000000000, bins=8),
            ],
            unit="row",
        )
    )
    batch = text_batch(
        {
            "block": ["9007199254740993", "9007199254740995", "9007199254740994"],
            "clock": ["1700000000123456789", "1700000000125000000", "1700000001000000001"],
        }
    )
    assert codes_of(codec, batch) == {"block": [0, 1, 2], "clock": [0, 1, 7]}
    typed = pa.RecordBatch.from_pydict({"block": [9007199254740995], "clock": [1700000000999999999]})
    assert codes_of(codec, typed) == {"block": [1], "clock": [7]}
    out = codec.decode(sampled(codec, 4000), seed=1).to_pydict()
    assert set(out["block"]) == {9007199254740993, 9007199254740995, None}
    clock = [value for value in out["clock"] if value is not None]
    assert all(1700000000000000000 <= value <= 1700000001000000000 for value in clock)
    assert {value % 2 for value in clock} == {0, 1}
    with pytest.raises(SchemaError, match="64 bits"):
        one(Integer("huge", 0, 2**63, bins=4))


def test_booleans_keep_their_words() -> None:
    codec = Codec(
        Schema(
            [
                Boolean("smoker", true_values=["True", "true", "TRUE"], false_values=["False", "false", "FALSE"]),
                Boolean("car", required=True, true_values=["1"], false_values=["0"]),
                Boolean("consent", true_values=["T"], false_values=["F"]),
            ],
            unit="row",
        )
    )
    batch = text_batch({"smoker": ["True", "FALSE", "no"], "car": ["1", "0", "2"], "consent": ["T", "F", ""]})
    assert codes_of(codec, batch) == {"smoker": [1, 0, 2], "car": [1, 0, 2], "consent": [1, 0, 2]}
    typed = pa.RecordBatch.from_pydict({"smoker": [True, False], "car": [True, False], "consent": [True, None]})
    assert codes_of(codec, typed) == {"smoker": [1, 0], "car": [1, 0], "consent": [1, 2]}
    numeric = pa.RecordBatch.from_pydict({"smoker": [True, True], "car": [1.0, 0.0], "consent": [None, None]})
    assert codes_of(codec, numeric)["car"] == [1, 0]
    out = written(codec)
    assert set(out["smoker"]) == {"True", "False", ""}
    assert set(out["car"]) == {"1", "0"}
    assert set(out["consent"]) == {"T", "F", ""}
    table = codec.decode(sampled(codec), seed=1)
    assert [field.type for field in table.schema] == [pa.bool_()] * 3
    assert [field.nullable for field in table.schema] == [True, False, True]


def test_time_zones_and_clock_changes() -> None:
    bounds = ("2023-01-01T00:00:00Z", "2023-12-31T23:59:00Z")
    codec = one(DateTime("start", *bounds, time_zone="Europe/Berlin", bins="month"))
    cells: list[str | bytes | None] = [
        "2023-03-26T01:30:00+01:00",
        "2023-10-29T02:30:00+02:00",
        "2023-10-29T02:30:00+01:00",
        "2023-06-01T12:00:00Z",
        "2023-06-01T09:00:00-05:00",
        "2023-03-26T02:30:00",  # a wall-clock time that did not exist
        "2023-10-29T02:30:00",  # one that came twice
        "2023-12-31T23:30:00Z",  # already January in Berlin
        "yesterday",
    ]
    codes = codes_of(codec, text_batch({"start": cells}))["start"]
    # Berlin's 2024-01-01 lies inside the bounds in UTC: a thirteenth month, then missing.
    assert codes == [2, 9, 9, 5, 5, 2, 9, 12, 13]
    table = codec.decode(sampled(codec, 4000), seed=1)
    assert table.schema.field("start").type == pa.timestamp("us", tz="Europe/Berlin")
    instants = pa.compute.drop_null(table["start"]).cast(pa.int64())
    assert pa.compute.min(instants).as_py() >= 1672531200 * 10**6
    assert pa.compute.max(instants).as_py() <= 1704067140 * 10**6
    aware = pd.DataFrame({"start": pd.to_datetime(["2023-03-26T00:30:00Z", "2023-06-01T12:00:00Z", None])})
    aware["start"] = aware["start"].dt.tz_convert("America/New_York")
    assert codes_of(codec, pa.RecordBatch.from_pandas(aware))["start"] == [2, 5, 13]
    naive = one(DateTime("start", "2023-01-01T00:00:00", "2023-12-31T23:59:59", bins="month"))
    assert codes_of(naive, text_batch({"start": ["2023-06-01T12:00:00", "2023-06-01T12:00:00Z"]}))["start"] == [5, 12]
    faults = container_faults(naive.schema, pa.schema([("start", pa.timestamp("us", "UTC"))]))
    assert [fault.pointer for fault in faults] == ["start"]
    assert container_faults(codec.schema, pa.schema([("start", pa.timestamp("us", "UTC"))])) == []


def test_ordered_categories_keep_every_level() -> None:
    levels = ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]
    codec = one(Category("likert", levels, ordered=True, required=True))
    frame = pd.DataFrame({"likert": pd.Categorical(["agree", "neutral"], categories=levels, ordered=True)})
    batch = pa.RecordBatch.from_pandas(frame)
    assert codes_of(codec, batch)["likert"] == [3, 2]
    # The caller's categories are private: in another order, or with others, the codes are the same.
    other = pd.DataFrame({"likert": pd.Categorical(["agree", "neutral"], categories=["neutral", "agree", "x"])})
    assert codes_of(codec, pa.RecordBatch.from_pandas(other))["likert"] == [3, 2]
    table = codec.decode(np.array([[3], [3]], np.int32), seed=1)
    assert table.to_pandas()["likert"].dtype == frame["likert"].dtype


def test_mixed_columns_compare_as_text_after_one_conversion() -> None:
    codec = Codec(
        Schema(
            [
                Category("room", ["7", "12", "12A", "Basement"]),
                Number("dose", 0, 50, decimals=1, bins=10, special=["<5", "trace"]),
            ],
            unit="row",
        )
    )
    batch = text_batch({"room": ["12", "12A", "7", "12.0"], "dose": ["5", "<5", " trace ", "7.5"]})
    assert codes_of(codec, batch) == {"room": [1, 2, 0, 4], "dose": [1, 10, 11, 1]}
    typed = pa.RecordBatch.from_pydict({"room": [12.0, 7.0, None, 12.5], "dose": [5.0, 7.5, float("nan"), -3.0]})
    assert codes_of(codec, typed) == {"room": [1, 0, 4, 4], "dose": [1, 1, 12, 0]}
    out = written(codec)
    assert {"<5", "trace", ""} < set(out["dose"])
    assert all(cell in ("<5", "trace", "") or cell[-2] == "." for cell in out["dose"])
    table = codec.decode(sampled(codec), seed=1)
    assert table.schema.field("dose").type == pa.string()
    tags = Schema([Integer("tags", 0, 1)], unit="row")
    faults = container_faults(tags, pa.schema([("tags", pa.list_(pa.string()))]))
    assert "tags" in str(faults[0])
    assert "list" in str(faults[0])


def test_sentinel_codes_are_cells_of_their_own() -> None:
    codec = Codec(
        Schema(
            [
                Integer(
                    "income", 0, 200_000, bins={"width": 20_000}, special={"-9": "refused", "-7": "n/a", "999999": ""}
                ),
                Integer("kids", 0, 12, special=["-7", "99"]),
                Integer("year", 2000, 2025, special=["-7"]),
            ],
            unit="row",
        )
    )
    assert codec.domain.sizes == (10 + 3 + 1, 13 + 2 + 1, 26 + 1 + 1)
    batch = text_batch(
        {
            "income": ["41000", "-9", "999999", "-7", "-8", "1e6"],
            "kids": ["2", "-7", "99", "0", "50", "-7.0"],
            "year": ["-7", "2019", "", "1990", "-7", "x"],
        }
    )
    assert codes_of(codec, batch) == {
        "income": [2, 10, 12, 11, 0, 9],
        "kids": [2, 13, 14, 0, 12, 13],
        "year": [26, 19, 27, 0, 26, 27],
    }
    out = codec.decode(sampled(codec, 2000), seed=1)
    assert out.schema.types == [pa.int64()] * 3
    assert not any(value is not None and 12 < value < 99 for value in out["kids"].to_pylist())
    assert all(cell == "" or cell.lstrip("-").isdigit() for cell in written(codec)["income"])


def test_negative_and_narrow_bounds() -> None:
    codec = Codec(
        Schema(
            [
                Integer("temp", -40, 50, required=True),
                Number("balance", -10_000, 10_000, decimals=2, bins=20, required=True),
                Integer("step", 5, 5, required=True),
            ],
            unit="row",
        )
    )
    assert codec.domain.sizes == (91 + 1, 20 + 1, 1)
    batch = text_batch(
        {
            "temp": ["-12", "-41", "51", ""],
            "balance": ["-250.75", "-9999.99", "1e9", "0.00"],
            "step": ["5", "7", "five", ""],
        }
    )
    assert codes_of(codec, batch) == {
        "temp": [28, 0, 90, 91],
        "balance": [9, 0, 19, 10],
        "step": [0, 0, 0, 0],
    }
    out = codec.decode(sampled(codec, 4000), seed=1).to_pydict()
    assert set(out["step"]) == {5}
    assert all(-40 <= value <= 50 for value in out["temp"])
    assert all(-10_000 <= value <= 10_000 for value in out["balance"])
    with pytest.raises(SchemaError, match="above maximum"):
        Schema([Integer("temp", 50, -40)], unit="row")


def test_a_column_of_nothing_but_missing_cells() -> None:
    codec = Codec(
        Schema(
            [
                Integer("score", 0, 5, required=True),
                Integer("notes", 0, 9),
                Date("when", "2020-01-01", "2020-12-31", bins="month"),
            ],
            unit="row",
        )
    )
    frame = pd.DataFrame({"score": [4, 2], "notes": [np.nan] * 2, "when": pd.to_datetime([None] * 2)})
    batch = pa.RecordBatch.from_pandas(frame)
    assert codes_of(codec, batch) == {"score": [4, 2], "notes": [10, 10], "when": [12, 12]}
    nothing = pa.RecordBatch.from_pydict({"score": [4], "notes": pa.nulls(1), "when": pa.nulls(1)})
    assert codes_of(codec, nothing) == {"score": [4], "notes": [10], "when": [12]}
    table = codec.decode(np.array([[4, 10, 12]], np.int32), seed=1)
    assert table.schema.types == [pa.int64(), pa.int64(), pa.date32()]


def test_constant_columns_have_one_code() -> None:
    codec = Codec(
        Schema(
            [
                Category("site", ["A1"], required=True),
                Category("unit", ["mg", "g"], required=True),
                Integer("value", 1, 3, required=True),
            ],
            unit="row",
        )
    )
    assert codec.domain.sizes == (1, 3, 4)
    assert codes_of(codec, text_batch({"site": ["A1", "B2", None], "unit": ["mg"] * 3, "value": ["1"] * 3}))[
        "site"
    ] == [0, 0, 0]
    assert set(written(codec)["unit"]) == {"mg", "g"}


def test_values_outside_the_schema_never_stop_and_never_show() -> None:
    codec = Codec(Schema([Category("dept", ["ER", "ICU", "XRAY"]), Integer("age", 0, 120)], unit="row"))
    depts: list[str | bytes | None] = ["ER", "ICU", "XRAY ", "xray", "", "Telehealth"]
    batch = text_batch({"dept": depts, "age": ["34", "51", "29", "200", "-1", "45"]})
    assert codes_of(codec, batch) == {"dept": [0, 1, 3, 3, 3, 3], "age": [34, 51, 29, 120, 0, 45]}
    assert all("Telehealth" not in label for labels in codec.labels.values() for label in labels)


def test_identifiers_and_free_text_are_never_modeled() -> None:
    schema = Schema(
        [Identifier("person_id"), Identifier("number", type="integer"), Dropped("note"), Integer("age", 0, 120)],
        unit="row",
    )
    codec = Codec(schema)
    assert schema.columns_read == ("age",)
    table = codec.decode(np.zeros((3, 1), np.int32), seed=1, first_row=10)
    assert table.column_names == ["person_id", "number", "age"]
    assert table["person_id"].to_pylist() == ["11", "12", "13"]
    assert table["number"].to_pylist() == [11, 12, 13]
    only_ids = Codec(Schema([Identifier("id")], unit="row"))
    assert only_ids.domain.names == ()
    assert only_ids.decode(np.zeros((2, 0), np.int32), seed=1)["id"].to_pylist() == ["1", "2"]
    with pytest.raises(SchemaError, match="role to"):
        Schema([Category("email", ["a"]), _text_without_list()], unit="row")


def _text_without_list() -> Any:
    from margent.schema.parts import Field

    return Field("note", "string")
