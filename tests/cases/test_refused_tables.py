"""Made-up tables and schemas that cannot run are refused in words, before any charge."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cases.made_up import SMALL, listed, ranged, schema_file, synthesize

REFUSED = [
    ("semicolons without saying so", "sex;age\nF;30\n", SMALL, 3, '--delimiter ";"'),
    ("a name twice", "age,sex,age\n1,F,2\n", SMALL, 3, "'?age'?.*positions 1 and 3"),
    ("a file without a header", "", SMALL, 3, "header"),
    ("bounds the wrong way", "sex,age\n", [SMALL[0], ranged("age", "integer", 50, -40)], 3, "above maximum"),
    (
        "a bound that is no number",
        "sex,age\n",
        [SMALL[0], ranged("age", "integer", "x", 9)],
        3,
        "/minimum: field 'age'",
    ),
    ("bounds beyond 64 bits", "sex,age\n", [SMALL[0], ranged("age", "integer", 0, 2**64, bins=9)], 3, "64 bits"),
    ("text without a list", "sex,age\n", [{"name": "sex", "type": "string"}, SMALL[1]], 3, "closed list"),
    ("a column too many", "sex,age,note\nF,1,x\n", SMALL, 3, "note"),
]


@pytest.mark.parametrize(
    ("content", "fields", "code", "words"), [pytest.param(*each[1:], id=each[0]) for each in REFUSED]
)
@pytest.mark.usefixtures("no_charge")
def test_what_cannot_run_is_refused_before_any_charge(
    content: str,
    fields: list[dict[str, Any]],
    code: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert synthesize(tmp_path / "t.csv", schema_file(tmp_path, fields), tmp_path / "OUT") == code
    assert re.search(words, capsys.readouterr().err)
    assert not (tmp_path / "OUT").exists()


@pytest.mark.usefixtures("no_charge")
def test_nested_columns_are_named_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"labels": [["x"], []], "age": [1, 2]}), tmp_path / "t.parquet")
    schema = schema_file(tmp_path, [listed("labels", ["x"]), SMALL[1]])
    assert synthesize(tmp_path / "t.parquet", schema, tmp_path / "OUT") == 3
    said = capsys.readouterr().err
    assert "labels" in said
    assert "list<" in said
