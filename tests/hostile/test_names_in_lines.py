"""Names that somebody else chose begin no line of ours; what spreadsheets may run is told of where a CSV is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from margent import Budget, Category, Schema, synthesize
from margent.cli import run
from margent.schema.write import schema_to_json
from tests.hostile.test_names import AT_ONCE, frame_of, schema_of

FORGED = "a\nmargent forged"


def test_a_name_that_somebody_else_chose_begins_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files inside of a release or of a folder of tables, a schema's own files, columns in a plan."""
    schema = schema_of([FORGED, *(f"n{place}" for place in range(AT_ONCE - 1))])
    path, out, folder = tmp_path / "s.json", tmp_path / "OUT", tmp_path / "tables"
    path.write_text(json.dumps(schema_to_json(schema)))
    synthesize(frame_of(schema), schema, budget=Budget(1), method="independent", rows=9).save(out)
    (out / f"INTERNAL-{FORGED}").write_text("")
    (folder / "key=1").mkdir(parents=True)
    for name in ("a.csv", f"key=1/{FORGED}.csv"):
        (folder / name).write_text("other\n")
    codes = json.loads(path.read_text())
    codes["fields"][0] = {"name": "c", "type": "string", "categories": {"file": FORGED}}
    (tmp_path / "codes.json").write_text(json.dumps(codes))
    spending = ["--schema", str(path), "--epsilon", "1"]
    for command in (
        ["query", str(out), "n0"],
        ["synthesize", str(folder), *spending, "--single-release", "-o", str(tmp_path / "no")],
        ["schema", "check", str(path), str(folder)],
        ["schema", "check", str(tmp_path / "codes.json")],
        ["plan", *spending, "--set", "merge_above=10"],
    ):
        capsys.readouterr()
        run(command)
        said = "".join(capsys.readouterr())
        assert not [line for line in said.splitlines() if line.startswith("margent forged")], command
        assert "forged" in said, command


def test_a_query_as_csv_tells_of_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = Schema([Category("=a", ["=1+1", "x"]), Category("b", ["y", "-5"])], unit="row")
    table = pa.table({"=a": ["x", "=1+1"] * 9, "b": ["y", "-5"] * 9})
    out = synthesize(table, schema, budget=Budget(9), method="independent", rows=9).save(tmp_path / "OUT")
    assert run(["query", str(out), "=a,b", "--csv"]) == 0
    seen = capsys.readouterr()
    assert seen.out.startswith("=a,b,count")
    assert "this CSV may run these names or cells as formulas: '=a' (column '=a'), '=1+1' (column '=a');" in seen.err
    assert run(["query", str(out), "b", "--csv"]) == 0
    assert capsys.readouterr().err == ""
