"""`--strict`: the one refusal that depends on rows, before any charge, by request, and marked."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import margent
from margent.cli import run
from margent.errors import SchemaError
from margent.privacy import ledger
from tests.conftest import people_rows, write_csv

SECRET = "canary-93"
FAULTS = {
    "a category that is not listed": ("F,Telehealth canary-93,30,2020-01-05,P1", "work", "values of the list (4)"),
    "a number that is none": ("F,office,canary-93,2020-01-05,P1", "age", "an integer"),
    "a date of another format": ("F,office,30,05.01.2020,P1", "since", "a date"),
    "a missing cell in a required column": (",office,30,2020-01-05,P1", "sex", "(required)"),
    "a record with a cell too many": ("F,office,30,2020-01-05,P1,canary-93", "the file", "another number of cells"),
    "a record with a cell too few": ("F,office,canary-93", "the file", "another number of cells"),
    "bytes of another encoding": (b"F,caf\xe9,30,2020-01-05,P1", "work", "values of the list"),
}


def synthesize(table: Path, schema: Path, out: Path, *options: str) -> int:
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", "1", "--single-release"]
    return run([*arguments, "-o", str(out), *options])


@pytest.mark.parametrize("name", FAULTS)
def test_a_table_that_breaks_the_schema_is_refused_before_any_charge_and_only_then(
    name: str,
    people_csv: Path,
    people_schema: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record, column, words = FAULTS[name]
    with people_csv.open("ab") as file:
        file.write((record if isinstance(record, bytes) else record.encode()) + b"\r\n")
    assert synthesize(people_csv, people_schema, tmp_path / "LENIENT", "--rows", "5") == 0
    assert "DATA-DEPENDENT" not in capsys.readouterr().out

    def spend(*_: object) -> None:
        raise AssertionError("a charge was made")

    monkeypatch.setattr(ledger.Ledger, "spend", spend)
    assert synthesize(people_csv, people_schema, tmp_path / "OUT", "--strict") == 3
    said = capsys.readouterr().err
    assert "DATA-DEPENDENT" in said.replace("- ", "-"), "wherever the line is broken"
    assert "1 fault:" in said
    assert f"  {column}: " in said
    assert words in said
    assert "without --strict" in said or "delimiter" in said
    assert SECRET not in said
    assert "caf" not in said
    assert not (tmp_path / "OUT").exists()


def test_all_faults_are_listed_at_once(people_schema: Path, tmp_path: Path) -> None:
    rows = [*people_rows(50), ["X", "Y", "Z", "W", "P"], ["F"], ["F", "office", "30", "?", "P", "more"]]
    table = write_csv(tmp_path / "t.csv", rows)
    with pytest.raises(SchemaError) as caught:
        margent.synthesize(table, margent.read_schema(people_schema), budget=margent.Budget(1), strict=True)
    assert [fault.pointer for fault in caught.value.faults] == ["the file", "sex", "work", "age", "since"]


def test_a_clean_table_passes_clipped_numbers_too_and_the_end_says_what_that_tells(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_csv(tmp_path / "t.csv", [*people_rows(60), ["F", "none", "7000", "", "P"], ["M", "?", "-1", "?", ""]])
    assert synthesize(table, people_schema, tmp_path / "OUT", "--strict", "--rows", "5") == 0
    said = capsys.readouterr()
    assert "DATA-DEPENDENT" in said.err
    assert "no budget pays for" in said.err
    for path in (tmp_path / "OUT").rglob("*"):
        assert path.is_dir() or b"strict" not in path.read_bytes().lower(), "nothing in the release tells of it"


def test_frames_are_checked_and_streams_are_read_once(people_schema: Path) -> None:
    schema = margent.read_schema(people_schema)
    columns = [field.name for field in schema.fields]
    frame = pd.DataFrame(people_rows(40), columns=columns).replace({"": None, "?": None})
    budget = margent.Budget(1)
    assert margent.synthesize(frame, schema, budget=budget, rows=3, strict=True).rows == 3
    import pyarrow as pa

    stream = pa.Table.from_pandas(frame, preserve_index=False).to_reader()
    assert margent.synthesize(stream, schema, budget=budget, rows=3, strict=True).rows == 3
    frame.loc[7, "work"] = SECRET
    with pytest.raises(SchemaError, match="work") as caught:
        margent.synthesize(frame, schema, budget=budget, rows=3, strict=True)
    assert SECRET not in str(caught.value)


def test_a_value_that_the_schema_sends_elsewhere_is_refused_too(tmp_path: Path) -> None:
    block = {"unlisted": {"to": "other"}}
    fields = [{"name": "unit", "type": "string", "categories": ["A", "other"], "margent": block}]
    schema = tmp_path / "s.json"
    schema.write_text(json.dumps({"fields": fields, "margent": {"unit": "row"}}))
    (tmp_path / "t.csv").write_text("unit\nA\nB\n")
    assert synthesize(tmp_path / "t.csv", schema, tmp_path / "OUT", "--strict") == 3
    assert synthesize(tmp_path / "t.csv", schema, tmp_path / "OUT", "--rows", "2") == 0


@pytest.mark.parametrize("first", ["place", "unit"])
@pytest.mark.parametrize("record", ["A", "B", "A,A"])
def test_a_folder_whose_name_says_no_value_is_as_sound_as_its_records(first: str, record: str, tmp_path: Path) -> None:
    """Whichever column comes first in the schema; a fault in the file is found whatever its folder is called."""
    fields = {
        "place": {"name": "place", "type": "string", "categories": ["north"]},
        "unit": {"name": "unit", "type": "string", "categories": ["A"]},
    }
    schema = tmp_path / "s.json"
    ordered = [fields.pop(first), *fields.values()]
    schema.write_text(json.dumps({"fields": ordered, "margent": {"unit": "row"}}))
    for folder in ("place=north", "place=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / "t" / folder).mkdir(parents=True)
        (tmp_path / "t" / folder / "part.csv").write_text("unit\nA\n")
    (tmp_path / "t" / folder / "part.csv").write_text(f"unit\nA\n{record}\n")
    code = synthesize(tmp_path / "t", schema, tmp_path / "OUT", "--strict", "--rows", "2")
    assert code == (0 if record == "A" else 3)


def test_the_help_says_what_it_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["synthesize", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "--strict Refuse, before anything is spent" in said
    assert "DATA-DEPENDENT" in said.replace("- ", "-"), "wherever the line is broken"
