"""Cases 25 to 37: what a table holds, and how large or small it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margent
from margent import Budget, PersonUnit
from margent.cli import run
from margent.counts import source as counting
from margent.counts.contribution import KeptRows
from margent.counts.identity import Identity
from margent.counts.source import StreamedCounts
from margent.methods import method_named
from margent.pipeline import measure
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.read import schema_from_json
from margent.tables.source import open_table
from tests.cases.inputs import SCHEMAS, Field, given, ranged, schema_file, synthesize
from tests.peaks import COMMAND, alone
from tests.sizes import LONG_AUDIT

SECRETS_OF_29 = ("example.org", "ann@", "bob@", "P-0001", "P-0002", "123-45", "walks daily")


def read(fields: list[Field], unit: Any = "row") -> Any:
    return schema_from_json({"fields": fields, "margent": {"unit": unit}})


def test_25_a_list_of_one_costs_nothing_and_no_list_shrinks_to_what_was_seen(tmp_path: Path) -> None:
    made = synthesize(given("25"), SCHEMAS["25"], tmp_path, "--rows", "300")
    assert set(made.column("site")) == {"A1"}
    charges = made.document("charges.json")["charges"]
    assert not any("site" in clique for charge in charges for clique in charge["cliques"])
    assert set(made.column("unit")) <= {"mg", "g"}
    # Where the table says little, "g", which never occurs, is drawn: not once in 30 has probability under 1e-8.
    for attempt in range(30):
        noisy = synthesize(given("25"), SCHEMAS["25"], tmp_path, "--rows", "40", epsilon="0.5", out=f"N{attempt}")
        if "g" in noisy.column("unit"):
            return
    pytest.fail("the unit that does not occur is never drawn")


def test_27_values_outside_the_schema_drop_no_row_and_are_never_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthesize(given("27"), SCHEMAS["27"], tmp_path, "--rows", "200")
    assert made.code == 0
    assert set(made.column("dept")) <= {"ER", "ICU", "XRAY", ""}
    assert set(made.column("age")) <= {str(age) for age in range(121)}
    schema = read(SCHEMAS["27"])
    with open_table(given("27"), schema) as source:
        assert StreamedCounts(source, Codec(schema)).count([(), ("dept", "age")])[0].tolist() == 6
    said = capsys.readouterr()
    assert "Telehealth" not in said.out + said.err
    assert all(b"Telehealth" not in path.read_bytes() for path in made.out.rglob("*") if path.is_file())


def test_27_strict_refuses_and_says_that_it_depends_on_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthesize(given("27"), SCHEMAS["27"], tmp_path, "--strict").code == 3
    said = capsys.readouterr().err
    assert "DATA-DEPENDENT" in said
    assert "dept: cells are not values of the list (3)" in said
    assert "Telehealth" not in said


def test_28_the_plan_tells_cells_and_memory_and_reads_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schema_file(tmp_path, SCHEMAS["28"])

    def no_table(*_: object) -> None:
        raise AssertionError("a table was opened")

    monkeypatch.setattr("margent.tables.source.open_table", no_table)
    for method in ("dense", "privsyn"):
        capsys.readouterr()
        assert run(["plan", "--schema", str(schema), "--epsilon", "1", "--json", "--method", method]) == 0
        (plan,) = json.loads(capsys.readouterr().out)
        assert sorted(column["codes"] for column in plan["columns"])[-2:] == [20_001, 100_001]
        assert max(stage["largestTableCells"] for stage in plan["stages"]) <= 2**26
        assert plan["memoryBytes"] < 2 * 2**30


@pytest.mark.parametrize(
    ("number", "method", "gigabytes"),
    [
        pytest.param("28", "dense", 2),
        pytest.param("37", "privsyn", 4),
        pytest.param("37", "dense", 4, marks=pytest.mark.skipif(not LONG_AUDIT, reason="half a minute")),
    ],
)
def test_large_lists_and_wide_tables_fit_in_little_memory(
    number: str, method: str, gigabytes: int, tmp_path: Path
) -> None:
    schema = schema_file(tmp_path, SCHEMAS[number])
    arguments = ["synthesize", str(given(number)), "--schema", str(schema), "--epsilon", "1", "--single-release"]
    done = alone(COMMAND, *arguments, "--method", method, "-o", str(tmp_path / "OUT"))
    assert done.code == 0
    assert done.peak < gigabytes * 2**30


def test_28_no_table_above_the_cap_is_ever_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells: list[int] = []
    tally = counting.Tally

    def noted(domain: Any, cliques: Any, *rest: Any, **named: Any) -> Any:
        made = tally(domain, cliques, *rest, **named)
        cells.extend(table.size for table in made.tables())
        return made

    monkeypatch.setattr(counting, "Tally", noted)
    assert synthesize(given("28"), SCHEMAS["28"], tmp_path, "--rows", "10", epsilon="1").code == 0
    assert max(cells) <= 2**26
    assert len(cells) >= 3


def test_29_nothing_of_names_numbers_and_notes_is_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = synthesize(given("29"), SCHEMAS["29"], tmp_path, "--rows", "50")
    assert len(set(made.column("person_id"))) == 50
    assert made.header == ["person_id", "email", "age"]
    content = given("29").read_text()
    for secret in SECRETS_OF_29:
        assert secret in content
        assert all(secret.encode() not in path.read_bytes() for path in made.out.rglob("*") if path.is_file())
    said = capsys.readouterr()
    for line in content.splitlines()[1:]:
        assert line.split(",")[0] not in said.out + said.err
    bare = synthesize(
        given("29"), [*SCHEMAS["29"][:4], SCHEMAS["29"][4] | {"margent": {"role": "drop"}}], tmp_path, out="K"
    )
    assert bare.code == 0
    document = bare.document("charges.json")
    assert (document["spent"], document["charges"]) == ("0", [])


def test_30_categories_alone_use_the_whole_budget(tmp_path: Path) -> None:
    for method in ("dense", "privsyn", "independent"):
        made = synthesize(given("30"), SCHEMAS["30"], tmp_path, "--method", method, epsilon="1", out=method)
        assert made.code == 0
        document = made.document("charges.json")
        assert Fraction(99, 100) <= Fraction(document["spent"]) / Fraction(document["total"]) <= 1
        assert (made.out / "release.html").exists()


@pytest.mark.parametrize("method", ["dense", "privsyn"])
def test_32_what_the_model_holds_the_records_hold(method: str) -> None:
    """b = 10 a in 99 % of 100,000 drawn rows, a and c independent, and the records as near the table as the model.

    Of independent draws 2 n I(a, c) has mean 8; 60 is exceeded with probability under 1e-8.
    """
    schema, budget = read(SCHEMAS["32"]), Budget(5)
    found = measure(given("32"), schema, budget=budget, method=method)
    model = method_named(method).synthesizer.build(found.transcript, silent)
    with open_table(given("32"), schema) as source:
        counts = StreamedCounts(source, Codec(schema))
        cliques = [("a", "b"), ("a", "c"), ("b", "c")]
        true = [table / table.sum() for table in counts.count(cliques)]
    codes = model.sample(100_000, 3, silent)
    place = {name: where for where, name in enumerate(model.domain.names)}
    fitted = model.marginals(cliques, 3)
    for clique, exact, held in zip(cliques, true, fitted, strict=True):
        drawn = np.zeros(exact.shape)
        np.add.at(drawn, tuple(codes[:, place[name]] for name in clique), 1 / len(codes))
        model_error = 0.5 * np.abs(held / held.sum() - exact).sum()
        assert 0.5 * np.abs(drawn - exact).sum() <= 1.5 * model_error + 1 / 10_000, clique
        if clique == ("a", "b"):
            assert np.trace(drawn) > 0.99
        if clique == ("a", "c"):
            product = drawn.sum(1, keepdims=True) * drawn.sum(0, keepdims=True)
            some = drawn > 0
            information = float((drawn[some] * np.log(drawn[some] / product[some])).sum())
            assert 2 * len(codes) * information < 60


def test_34_the_noise_covers_all_rows_of_one_person(tmp_path: Path) -> None:
    unit = {"field": "patient", "maxRows": 3}
    made = synthesize(given("34"), SCHEMAS["34"], tmp_path, "--rows", "30", epsilon="1", unit=unit)
    found = measure(given("34"), read(SCHEMAS["34"], unit), budget=Budget(1))
    assert found.transcript.charges
    for charge in found.transcript.charges:
        assert charge.person_rows == 3
        assert charge.sensitivity_squared >= 9, "three rows move one table by three"
        assert charge.scale_squared is not None
    # With the same shares, three times the deviation; scales are rounded up to a grid of steps of under 1 %.
    schemas = [read(SCHEMAS["34"], unit), read(SCHEMAS["34"])]
    runs = [measure(given("34"), each, budget=Budget(1), method="independent").transcript for each in schemas]
    noise = [float(runs[place].charges[0].scale_squared or 0) for place in (0, 1)]
    assert noise[0] == pytest.approx(9 * noise[1], rel=0.05)
    page = (made.out / "release.html").read_text()
    assert "every person, as told apart by the column" in page
    assert "At most 3 rows of each" in page
    assert made.header == ["visit", "drug"]


def test_34_three_of_five_rows_are_kept() -> None:
    schema = read(SCHEMAS["34"], {"field": "patient", "maxRows": 3})
    assert isinstance(schema.unit, PersonUnit)
    with open_table(given("34"), schema) as source:
        kept = KeptRows(source, Identity.of(schema, schema.unit), 3, 16)
        rows = [cell for batch in kept.batches() for cell in batch.column("patient").to_pylist()]
    assert {name: rows.count(name) for name in set(rows)} == {b"p1": 3, b"p2": 1, b"p3": 2}


def test_35_a_header_alone_is_a_table(tmp_path: Path) -> None:
    for method in ("dense", "privsyn"):
        made = synthesize(given("35"), SCHEMAS["35"], tmp_path, "--method", method, epsilon="1", out=method)
        assert made.code == 0
        found = measure(given("35"), read(SCHEMAS["35"]), budget=Budget(1), method=method)
        model = method_named(method).synthesizer.build(found.transcript, silent)
        assert model.total >= 0
        assert len(model.sample(model.total, 1, silent)) == model.total
        for table in model.marginals([("sex",), ("sex", "age")], 1):
            assert np.isfinite(table).all()
        for path in made.out.rglob("*.json"):
            assert "NaN" not in path.read_text()


def test_35_no_byte_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert synthesize(given("35", "input_zero_bytes.csv"), SCHEMAS["35"], tmp_path).code == 3
    assert "the file has no header line" in capsys.readouterr().err


def test_37_something_is_said_before_the_first_row_is_read() -> None:
    """The first line of progress does not wait for the data, so it does not wait long."""
    told: list[str] = []
    schema = read([ranged(f"v{place}", "integer", 0, 4) for place in range(400)])

    def rows() -> Iterator[pa.RecordBatch]:
        told.append("first row")
        yield pa.RecordBatch.from_pydict({f"v{place}": [1, 2, 3] for place in range(400)})

    first = next(rows())
    told.clear()
    reader = pa.RecordBatchReader.from_batches(first.schema, rows())
    margent.synthesize(
        reader, schema, budget=Budget(1), rows=5, method="independent", progress=lambda stage, _: told.append(stage)
    )
    assert told.index("first row") > 0
    assert len(set(told)) > 1
