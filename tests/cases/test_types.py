"""Cases 10 to 23: whole numbers, truth values, moments, categories, codes inside numbers, and Parquet's types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margent import TableSynthesizer, read_schema
from margent.cli import run
from margent.errors import SchemaError
from margent.release.reading import read_release
from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from tests.cases.inputs import SCHEMAS, Field, Made, given, listed, schema_file, synthesize, whole


def read(fields: list[Field]) -> Any:
    return schema_from_json({"fields": fields, "margent": {"unit": "row"}})


def sampled(table: Any, fields: list[Field], rows: int = 200) -> pd.DataFrame:
    """What a pandas user gets from a pandas table."""
    frame: pd.DataFrame = TableSynthesizer(read(fields), epsilon=10000).fit(table).sample(rows, seed=3)
    return frame


def noisy_share(made: Made, column: str, label: str) -> float:
    """The share of one code by the noisy answer that the release holds."""
    transcript, _, _ = read_release(made.out)
    (counts,) = (answer.counts for answer in transcript.marginals if answer.clique == (column,))
    code = Codec(transcript.schema).labels[column].index(label)
    return float(max(counts[code], 0) / np.maximum(counts, 0).sum())


@pytest.mark.parametrize("share", ["none", "some", "all"])
def test_10_integers_beside_missing_cells_stay_integers(share: str, tmp_path: Path) -> None:
    table = given("10")
    frame = pd.read_csv(table)
    if share != "some":
        frame["children"] = 3.0 if share == "none" else np.nan
        table = tmp_path / "t.csv"
        frame.to_csv(table, index=False)
    made = synthesize(table, SCHEMAS["10"], tmp_path, "--rows", "600", "--method", "independent")
    cells = made.column("children")
    assert all(whole(cell, 0, 12, "") and "-" not in cell for cell in cells)
    assert cells.count("") / len(cells) == pytest.approx(noisy_share(made, "children", "(missing)"), abs=0.05)
    assert sampled(frame, SCHEMAS["10"]).dtypes["children"] == "Int64"


def test_11_no_float_touches_big_integers(tmp_path: Path) -> None:
    made = synthesize(given("11"), SCHEMAS["11"], tmp_path, "--rows", "400")
    assert set(made.column("acct_block")) == {"9007199254740993", "9007199254740995"}
    clock = [int(cell) for cell in made.column("ns_clock")]
    assert all(1700000000000000000 <= value <= 1700000001000000000 for value in clock)
    assert sum(value % 256 == 0 for value in clock) < 40
    frame = sampled(pd.read_csv(given("11")), SCHEMAS["11"])
    assert set(frame["acct_block"]) <= {9007199254740993, 9007199254740995}


def test_11_bounds_beyond_64_bits_are_refused_when_the_schema_is_read() -> None:
    with pytest.raises(SchemaError, match="64 bits"):
        read([SCHEMAS["11"][0], SCHEMAS["11"][1] | {"constraints": {"minimum": 0, "maximum": 2**64}}])


def test_12_truth_in_the_words_of_the_schema(tmp_path: Path) -> None:
    made = synthesize(given("12"), SCHEMAS["12"], tmp_path, "--rows", "300")
    words = {"smoker": {"true", "false"}, "has_car": {"1", "0"}, "alive": {"yes", "no"}, "consent": {"T", "F", ""}}
    assert {name: set(made.column(name)) for name in words} == words
    frame = sampled(pd.read_csv(given("12"), dtype=str), SCHEMAS["12"])
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds == {"smoker": "bool", "has_car": "bool", "alive": "bool", "consent": "boolean"}


def test_14_mixed_offsets_and_zones(tmp_path: Path) -> None:
    made = synthesize(given("14"), SCHEMAS["14"], tmp_path, "--rows", "200")
    assert made.code == 0
    low, high = pd.Timestamp("2023-01-01", tz="UTC"), pd.Timestamp("2023-12-31T23:59:59", tz="UTC")
    for name in made.header:
        moments = pd.to_datetime(pd.Series([cell for cell in made.column(name) if cell]), utc=True)
        assert moments.between(low, high).all()
    typed = synthesize(given("14", "input.parquet"), SCHEMAS["14 typed"], tmp_path, "--rows", "200", out="TYPED")
    column = pq.read_table(typed.out / "synthetic.parquet")["start"]
    assert column.type.tz == "Europe/Berlin"
    assert column.null_count > 0
    assert pd.Series(column.to_pandas()).dropna().between(low, high).all()
    frame = sampled(pd.read_parquet(given("14", "input.parquet")), SCHEMAS["14 typed"])
    assert str(frame["start"].dt.tz) == "Europe/Berlin"


def test_16_orders_and_unused_categories_come_from_the_schema(tmp_path: Path) -> None:
    frame = pd.read_parquet(given("16", "input.parquet"))
    made = sampled(frame, SCHEMAS["16"])
    assert made["likert"].dtype == frame["likert"].dtype
    # Which grades occur is private: the type has all four, where the table's own has the three that it met.
    assert made["grade"].cat.categories.tolist() == ["A", "B", "C", "D"]
    noisy = TableSynthesizer(read(SCHEMAS["16"]), epsilon="0.1").fit(frame)
    seen = {cell for seed in range(3) for cell in noisy.sample(300, seed=seed)["likert"].dropna()}
    again = TableSynthesizer(read(SCHEMAS["16"]), epsilon="0.1").fit(frame)
    seen |= set(again.sample(300)["likert"].dropna())
    assert seen <= set(SCHEMAS["16"][0]["categories"])
    out = synthesize(given("16", "input.parquet"), SCHEMAS["16"], tmp_path, "--rows", "50").out
    assert pd.read_parquet(out / "synthetic.parquet")["likert"].dtype == frame["likert"].dtype
    assert run(["inspect", str(given("16")), "--schema", str(tmp_path / "schema.json"), "-o", str(tmp_path / "I")]) == 0
    document = json.loads((tmp_path / "I" / "INTERNAL-inspection.json").read_text())
    assert document["columns"][0]["labels"][:5] == SCHEMAS["16"][0]["categories"]


def test_16_an_unused_category_can_be_drawn() -> None:
    """Its noisy count is above zero in half of the runs: not once in 40 has probability under 1e-11."""
    frame = pd.read_parquet(given("16", "input.parquet"))
    for _ in range(40):
        made = TableSynthesizer(read(SCHEMAS["16"][:1]), epsilon=1, method="independent").fit(frame[["likert"]])
        if (made.sample(400, seed=1)["likert"] == "strongly disagree").any():
            return
    pytest.fail("a category that does not occur is never drawn")


def test_18_one_category_however_a_cell_is_typed() -> None:
    codec = Codec(read(SCHEMAS["18"]))
    objects = pd.DataFrame(
        {"room": pd.Series([12, 12.0, "12", "12A", 7.0], dtype=object), "dose": ["5", 5, 5.0, "<5", "trace"]}
    )
    from margent.tables.source import open_table

    with open_table(objects, read(SCHEMAS["18"])) as source:
        (batch,) = source.batches()
    rooms, doses = codec.encode(batch)
    assert rooms.tolist() == [1, 1, 1, 2, 0]
    assert doses.tolist() == [1, 1, 1, 10, 11]


def test_18_special_texts_are_drawn_and_nested_columns_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthesize(given("18"), SCHEMAS["18"], tmp_path, "--rows", "300")
    assert {"<5", "trace"} <= set(made.column("dose"))
    frame = pd.DataFrame({"room": ["12", "7"], "dose": [5.0, 7.5], "tags": [{"a": 1}, ["x"]]})
    with pytest.raises(SchemaError, match="tags"):
        sampled(frame, SCHEMAS["18"])
    pq.write_table(pa.table({"room": ["12"], "dose": [5.0], "tags": [[1]]}), tmp_path / "t.parquet")
    fields = [*SCHEMAS["18"], listed("tags", ["x"])]
    assert synthesize(tmp_path / "t.parquet", fields, tmp_path, out="NESTED").code == 3
    said = capsys.readouterr().err
    assert "tags: the column holds nested values (list<" in said


def test_20_codes_inside_numbers(tmp_path: Path) -> None:
    made = synthesize(given("20"), SCHEMAS["20"], tmp_path, "--rows", "600", "--method", "independent")
    assert all(whole(cell, 0, 200_000, "-9", "-7", "999999") for cell in made.column("income"))
    assert all(whole(cell, 0, 12, "-7", "99") for cell in made.column("kids"))
    assert all(whole(cell, 2000, 2025, "-7", "") for cell in made.column("year_off"))
    assert made.column("year_off").count("-7") / 600 == pytest.approx(noisy_share(made, "year_off", "-7"), abs=0.05)


def test_21_negative_bounds_and_one_value(tmp_path: Path) -> None:
    made = synthesize(given("21"), SCHEMAS["21"], tmp_path, "--rows", "300")
    assert all(whole(cell, -40, 50) for cell in made.column("temp"))
    assert all(-10_000 <= float(cell) <= 10_000 for cell in made.column("balance"))
    assert set(made.column("step")) == {"5"}
    charges = made.document("charges.json")["charges"]
    assert not any("step" in clique for charge in charges for clique in charge["cliques"])


def test_21_bounds_in_the_wrong_order_are_refused_before_the_table_is_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turned = SCHEMAS["21"][0] | {"constraints": {"minimum": 50, "maximum": -40}}
    assert synthesize(tmp_path / "absent.csv", [turned], tmp_path).code == 3
    assert "above maximum" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [(), ("--format", "feather"), ("--format", "arrow")], ids=["parquet", "feather", "arrow"]
)
def test_22_a_parquet_files_types_come_back_field_by_field(options: tuple[str, ...], tmp_path: Path) -> None:
    path = given("22", "input.parquet")
    # The four rows many times over, so that the noise hides none of their values.
    pq.write_table(pa.concat_tables([pq.read_table(path)] * 25), tmp_path / "t.parquet")
    made = synthesize(tmp_path / "t.parquet", SCHEMAS["22"], tmp_path, "--rows", "300", *options)
    declared = pq.read_schema(path)
    if options:
        with pa.OSFile(str(made.out / f"synthetic.{options[1]}")) as file:
            table = pa.ipc.open_file(file).read_all()
    else:
        table = pq.read_table(made.out / "synthetic.parquet")
        assert pq.read_schema(made.out / "synthetic.parquet").equals(declared, check_metadata=False)
    assert table.schema.equals(declared, check_metadata=False)
    codec = Codec(read(SCHEMAS["22"]))
    assert set(table["u8"].to_pylist()) <= {*range(11), None}
    for codes, layout in zip(codec.encode(table.combine_chunks().to_batches()[0]), codec.layouts, strict=True):
        assert layout.unlisted is None or not (codes == layout.unlisted).any()
    hours = {None if cell is None else cell.total_seconds() // 3600 for cell in table["dur"].to_pylist()}
    assert {1, 2, 4} <= hours
    assert run(["resample", str(made.out), "-o", str(tmp_path / "AGAIN"), "--rows", "9"]) == 0
    again = next((tmp_path / "AGAIN").glob("synthetic.*"))
    kept = pq.read_schema(again) if not options else pa.ipc.open_file(pa.OSFile(str(again))).schema
    assert kept.equals(declared, check_metadata=False)


def test_22_whoever_takes_declared_types_for_private_can_have_the_schemas(tmp_path: Path) -> None:
    made = synthesize(given("22", "input.parquet"), SCHEMAS["22"], tmp_path, "--rows", "9", "--schema-types")
    assert pq.read_schema(made.out / "synthetic.parquet").equals(Codec(read(SCHEMAS["22"])).arrow_schema)


def test_23_a_column_of_missing_cells_spoils_no_other(tmp_path: Path) -> None:
    made = synthesize(given("23"), SCHEMAS["23"], tmp_path, "--rows", "200")
    assert all(whole(cell, 0, 5) for cell in made.column("score"))
    for name in ("notes_code", "when"):
        assert made.column(name).count("") > 150
    typed = synthesize(given("23", "input.parquet"), SCHEMAS["23"], tmp_path, "--rows", "20", out="TYPED")
    kinds = pq.read_schema(typed.out / "synthetic.parquet")
    # Whole numbers stay so, although pandas wrote a column without any as floats.
    assert [str(kind) for kind in kinds.types] == ["int64", "int64", "timestamp[ms]"]
    frame = sampled(pd.read_parquet(given("23", "input.parquet")), SCHEMAS["23"])
    assert [str(kind) for kind in frame.dtypes][:2] == ["Int64", "Int64"]
    assert str(frame.dtypes["when"]).startswith("datetime64")


def test_23_the_comparison_says_what_cannot_be_computed(tmp_path: Path) -> None:
    schema = schema_file(tmp_path, SCHEMAS["23"])
    out = tmp_path / "I"
    arguments = ["evaluate", str(given("23")), str(given("23")), "--schema", str(schema), "-o", str(out)]
    assert run(arguments) == 0
    document = json.loads((out / "INTERNAL-evaluation.json").read_text())
    scores = [score for metric in document["metrics"] for score in metric["scores"]]
    assert all(score["status"] != "failed" for score in scores)
    skipped = [score for score in scores if score["status"] == "skipped"]
    assert skipped
    assert all(score["reason"] for score in skipped)
    assert read_schema(schema).modelled
