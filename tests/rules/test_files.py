"""Rules from file to file: mappings beside the schema, JSON that comes back, whole runs over rows that break rules."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margent import Budget, synthesize
from margent.cli import run
from margent.errors import SchemaError
from margent.schema.codec import Codec
from margent.schema.read import read_schema, schema_from_json
from margent.schema.write import schema_text
from tests.rules.oracle import Reader
from tests.rules.strategies import document, obeying

FIELDS: list[dict[str, Any]] = [
    {"name": "zip", "type": "string", "categories": ["02138", "02139", "01002"]},
    {"name": "county", "type": "string", "categories": ["Middlesex", "Hampshire"]},
    {
        "name": "age",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 99, "required": True},
    },
    {"name": "status", "type": "string", "categories": ["never", "married"]},
    {
        "name": "came",
        "type": "date",
        "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
        "margent": {"bins": "month"},
    },
    {
        "name": "went",
        "type": "date",
        "constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"},
        "margent": {"bins": "quarter"},
    },
]
LINES = [["02138", "Middlesex"], ["02139", "Middlesex"], ["01002", "Hampshire"]]
RULES: list[dict[str, Any]] = [
    {"determines": ["zip"], "column": "county", "mapping": LINES},
    {"if": {"age": {"below": 15}}, "then": {"status": "never"}},
    {"order": ["came", "went"], "strict": True},
]


def write_mapping(folder: Path, content: str) -> Path:
    (folder / "counties.csv").write_text(content)
    rules = [RULES[0] | {"mapping": {"file": "counties.csv"}}, *RULES[1:]]
    path = folder / "schema.json"
    path.write_text(json.dumps(document(FIELDS, rules)))
    return path


GOOD = "zip,county\n" + "".join(f"{one},{other}\n" for one, other in LINES)


def test_a_mapping_in_a_file_is_written_out_and_recorded(tmp_path: Path) -> None:
    schema = read_schema(write_mapping(tmp_path, GOOD))
    rule = schema.rules[0]
    assert rule["mapping"] == LINES
    assert rule["mappingFile"] == {"file": "counties.csv", "sha256": hashlib.sha256(GOOD.encode()).hexdigest()}
    assert schema_from_json(json.loads(schema_text(schema))) == schema


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("zip,town\n02138,Middlesex\n", "header: zip,county"),
        (GOOD + "02140\n", "line 5 has 1 cells"),
        (GOOD + "02138,Hampshire\n", "another line maps"),
        ("zip,county\n02138,Middlesex\n", "lacks lines for 2"),
    ],
)
def test_a_mapping_file_that_is_wrong_is_refused(content: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=said):
        read_schema(write_mapping(tmp_path, content))


def test_a_mapping_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = write_mapping(tmp_path, GOOD)
    raw = json.loads(path.read_text())
    raw["margent"]["rules"][0]["mapping"]["sha256"] = "0" * 64
    path.write_text(json.dumps(raw))
    with pytest.raises(SchemaError, match="it has changed"):
        read_schema(path)


def private_rows(count: int) -> list[list[str]]:
    """Rows of which many break every rule."""
    rng = np.random.default_rng(8)
    rows = []
    for _ in range(count):
        code, month, later = rng.integers(3), rng.integers(1, 13), rng.integers(1, 13)
        county = LINES[code][1] if rng.random() < 0.7 else "Hampshire"
        status = "married" if rng.random() < 0.5 else "never"
        rows.append(
            [LINES[code][0], county, str(rng.integers(100)), status, f"2020-{month:02}-11", f"2020-{later:02}-11"]
        )
    return rows


@pytest.mark.parametrize("method", ["dense", "privsyn", "independent"])
def test_runs_over_rows_that_break_rules_say_nothing_and_write_rows_that_obey(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, schema = tmp_path / "people.csv", write_mapping(tmp_path, GOOD)
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows([[field["name"] for field in FIELDS], *private_rows(600)])
    assert run(["schema", "check", str(schema)]) == 0
    out = tmp_path / "out"
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", "5", "--single-release"]
    assert run([*arguments, "--method", method, "--out", str(out), "--seed", "1"]) == 0
    printed = capsys.readouterr()
    said = (printed.out + printed.err).replace(str(tmp_path), "")
    assert "break" not in said
    assert "rule" not in said
    with (out / "synthetic.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 400
    assert Reader(FIELDS).broken(rows, RULES) == []
    assert {row["status"] for row in rows} >= {"never", "married"}
    again = tmp_path / "again"
    assert run(["resample", str(out), "--out", str(again), "--seed", "9", "--rows", "50"]) == 0
    with (again / "synthetic.csv").open(newline="") as stream:
        assert Reader(FIELDS).broken(list(csv.DictReader(stream)), RULES) == []


def test_moments_in_different_zones_are_in_order(tmp_path: Path) -> None:
    fields = [
        {
            "name": name,
            "type": "datetime",
            "constraints": {"minimum": "2023-03-25T00:00:00", "maximum": "2023-03-27T00:00:00", "required": True},
            "margent": {"bins": 3, "timeZone": zone},
        }
        for name, zone in (("out", "Europe/Berlin"), ("back", "America/Chicago"))
    ]
    schema = schema_from_json(document(fields, [{"order": ["out", "back"], "strict": True}]))
    codec = Codec(schema)
    assert schema.rulebook is not None
    grid = np.stack(np.meshgrid(np.arange(3), np.arange(3)), axis=-1).reshape(-1, 2)
    codes = {name: grid[:, place] for place, name in enumerate(codec.domain.names)}
    allowed = np.repeat(grid[obeying(schema.rulebook.zeros, codes, 9)], 50, axis=0)
    table = codec.decode(allowed, 1).to_pydict()
    assert len(table["out"]) >= 50
    assert all(one < other for one, other in zip(table["out"], table["back"], strict=True))


def test_sums_and_orders_that_share_columns_hold(tmp_path: Path) -> None:
    fields = [
        {
            "name": name,
            "type": "number",
            "constraints": {"minimum": -5, "maximum": 20, "required": True},
            "margent": {"bins": 5, "decimals": 2},
        }
        for name in ("a", "b", "c", "t")
    ]
    rules = [
        {"sum": ["a", "b"], "equals": "t"},
        {"sum": ["b", "c"], "equals": "t"},
        {"order": ["a", "t"], "strict": True},
    ]
    schema = schema_from_json(document(fields, rules))
    codec = Codec(schema)
    assert schema.rulebook is not None
    assert schema.rulebook.joints[0].system.loose
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 5, (20_000, 4))
    columns = {name: codes[:, i] for i, name in enumerate(codec.domain.names)}
    good = obeying(schema.rulebook.zeros, columns, 20_000)
    rows = codec.decode_text(codes[good], 3).to_pylist()
    assert len(rows) > 200
    assert Reader(fields).broken(rows, rules) == []


def test_frames_obey_too() -> None:
    schema = schema_from_json(document(FIELDS, RULES))
    import pandas as pd

    frame = pd.DataFrame(private_rows(300), columns=[field["name"] for field in FIELDS])
    made = synthesize(frame, schema, budget=Budget(epsilon=3), seed=2).to_pandas()
    both = made.dropna(subset=["came", "went"])
    assert (both["came"] < both["went"]).all()
    assert len(both) > 50
