"""The small inputs lying beside this checkout, a schema for each, and how a test runs one through the command line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from margent.cli import run
from tests.conftest import SHARED

FOLDER = SHARED / "cases"
REQUIRED = {"required": True}

Field = dict[str, Any]


def listed(name: str, values: Sequence[Any], **keys: Any) -> Field:
    """A closed list; ``required=True`` where no cell is missing."""
    constraints = {"constraints": REQUIRED} if keys.pop("required", False) else {}
    return {"name": name, "type": "string", "categories": list(values), **constraints, **keys}


def ranged(name: str, kind: str, low: Any, high: Any, **keys: Any) -> Field:
    """A field with bounds; keys of the margent block are given as they are, others in ``standard``."""
    required = REQUIRED if keys.pop("required", False) else {}
    standard = keys.pop("standard", {})
    made = {"name": name, "type": kind, "constraints": {"minimum": low, "maximum": high, **required}, **standard}
    return made | ({"margent": keys} if keys else {})


def role(name: str, what: str) -> Field:
    return {"name": name, "type": "string", "margent": {"role": what}}


PERSONS = [
    listed("sex", ["F", "M"], required=True),
    ranged("age", "integer", 0, 120, required=True),
    listed("edu", ["lo", "mid", "hi"], required=True, categoriesOrdered=True),
]
CODES = [f"{code:05d}" for code in range(100_000)]

SCHEMAS: dict[str, list[Field]] = {
    "01": [
        listed("ward", ["North", "South", "East", "West"], required=True),
        ranged("height_m", "number", 0.4, 2.4, bins=10, decimals=2, required=True, standard={"decimalChar": ","}),
        ranged(
            "cost", "number", 0, 50000, bins=50, decimals=2, required=True,
            standard={"decimalChar": ",", "groupChar": "."},
        ),
    ],
    "02": [listed("patient_kind", ["new", "returning"], required=True), ranged("visits", "integer", 0, 20)],
    "03": [listed("city", ["Münster", "Köln", "Bonn"]), ranged("n", "integer", 0, 50, required=True)],
    "04": [
        listed("answer", ["yes, mostly", "no\nnever", 'she said "maybe"'], required=True),
        ranged("score", "integer", 0, 5, required=True),
    ],
    "05": [ranged("age", "integer", 0, 120), listed("sex", ["F", "M"])],
    "07": [
        listed("Marital status", ["single", "married"]),
        ranged("<b>pay</b>", "integer", 0, 50),
        ranged("count", "integer", 0, 50),
        listed("select", ["A", "B"]),
        *(
            ranged(name, "integer", 0, 50)
            for name in ("naïve é", "a,b", 'x"y', "col.1", "col_1", "__index__", " lead")
        ),
    ],
    "08": [
        listed("zip", ["02116", "00501", "10001", "94110"], required=True),
        listed("code6", ["093418", "000007", "120000", "000000"], required=True),
        ranged(
            "birth_ddmmyyyy", "date", "1900-01-01", "2010-12-31", bins="year", required=True,
            standard={"format": "%d%m%Y"},
        ),
    ],
    "10": [role("household", "drop"), ranged("children", "integer", 0, 12)],
    "11": [
        listed("acct_block", [9007199254740993, 9007199254740995], required=True) | {"type": "integer"},
        ranged("ns_clock", "integer", 1700000000000000000, 1700000001000000000, bins=4, required=True),
    ],
    "12": [
        {"name": "smoker", "type": "boolean", "constraints": REQUIRED},
        {"name": "has_car", "type": "boolean", "trueValues": ["1"], "falseValues": ["0"], "constraints": REQUIRED},
        {"name": "alive", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"], "constraints": REQUIRED},
        {"name": "consent", "type": "boolean", "trueValues": ["T"], "falseValues": ["F"]},
    ],
    "14": [
        ranged("start", "datetime", "2023-01-01T00:00:00Z", "2023-12-31T23:59:00Z", bins="month", timeZone="UTC"),
        ranged("stop", "datetime", "2023-01-01T00:00:00Z", "2023-12-31T23:59:00Z", bins="month", timeZone="UTC"),
    ],
    "14 typed": [
        ranged(
            "start", "datetime", "2023-01-01T00:00:00Z", "2023-12-31T23:59:00Z", bins="month", timeZone="Europe/Berlin"
        ),
    ],
    "16": [
        listed(
            "likert", ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"], categoriesOrdered=True
        ),
        listed("grade", ["A", "B", "C", "D"]),
    ],
    "18": [
        listed("room", ["7", "12", "12A", "Basement"], required=True),
        ranged("dose", "number", 0, 50, bins={"width": 5}, decimals=1, special=["<5", "trace"], required=True),
    ],
    "20": [
        ranged(
            "income", "integer", 0, 200000, bins={"width": 5000}, required=True,
            special={"-9": "refused", "-7": "not applicable", "999999": "top code"},
        ),
        ranged("kids", "integer", 0, 12, special=["-7", "99"], required=True),
        ranged("year_off", "integer", 2000, 2025, special=["-7"]),
    ],
    "21": [
        ranged("temp", "integer", -40, 50, required=True),
        ranged("balance", "number", -10000, 10000, bins=40, decimals=2, required=True),
        ranged("step", "integer", 5, 5, required=True),
    ],
    "22": [
        ranged("u8", "integer", 0, 10),
        ranged("i16", "integer", -10, 10, required=True),
        ranged("f32", "number", 0, 5, bins={"width": 0.5}, decimals=1),
        {"name": "b", "type": "boolean"},
        listed("s", ["x", "y"]),
        ranged("arrow_i", "integer", 0, 9),
        listed("arrow_s", ["p", "q"]),
        # A duration column is read as a whole number of its own unit, here microseconds: 0 to 10 hours.
        ranged("dur", "integer", 0, 36_000_000_000, bins={"width": 3_600_000_000}),
        listed("cat", ["lo", "hi"], required=True),
    ],
    "23": [
        ranged("score", "integer", 0, 5, required=True),
        ranged("notes_code", "integer", 0, 9),
        ranged("when", "date", "2020-01-01", "2020-12-31", bins="month"),
    ],
    "25": [
        listed("site", ["A1"], required=True),
        listed("unit", ["mg", "g"], required=True),
        ranged("value", "integer", 1, 3, required=True),
    ],
    "27": [listed("dept", ["ER", "ICU", "XRAY"]), ranged("age", "integer", 0, 120, required=True)],
    "28": [
        listed("occupation_code", CODES[:20_000], required=True),
        listed("zip5", CODES, required=True),
        listed("grp", list("ABCD"), required=True),
    ],
    "29": [
        role("person_id", "identifier"),
        role("email", "identifier"),
        role("ssn", "drop"),
        role("note", "drop"),
        ranged("age", "integer", 0, 120, required=True),
    ],
    "30": [listed("sex", ["F", "M"], required=True), listed("edu", ["lo", "mid", "hi"], required=True)],
    "32": [
        listed("a", list("01234"), required=True),
        listed("b", ["0", "10", "20", "30", "40"], required=True),
        listed("c", list("012"), required=True),
    ],
    "34": [
        role("patient", "drop"),
        ranged("visit", "integer", 1, 20, required=True),
        listed("drug", ["A", "B", "C"], required=True),
    ],
    "35": [listed("sex", ["F", "M"], required=True), ranged("age", "integer", 0, 120, required=True)],
    "37": [
        ranged(f"v{place:03d}", "integer", 0, 1 if place % 2 else 4, required=True) for place in range(400)
    ],
    "39": PERSONS,
    "47": [
        ranged("a", "integer", 1, 3),
        listed("b", ["x", "y", "z"]),
        ranged("c", "integer", 0, 9),
        ranged("d", "integer", 0, 9),
    ],
    "48": PERSONS,
}  # fmt: skip


def given(number: str, name: str = "input.csv") -> Path:
    """A file of a case; skips where the cases are not beside this checkout."""
    found = sorted(FOLDER.glob(f"{number}-*"))
    if not found:
        pytest.skip("the shared cases are not beside this checkout")
    return found[0] / name


@dataclass(frozen=True)
class Made:
    """What a run wrote: its folder, and its text table cell by cell (nothing for typed ones)."""

    code: int
    out: Path
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def column(self, name: str) -> list[str]:
        """The cells of one column."""
        return [row[self.header.index(name)] for row in self.rows]

    def document(self, name: str) -> Any:
        """One of the release's JSON files."""
        return json.loads((self.out / name).read_text(encoding="utf-8"))


def schema_file(folder: Path, fields: Sequence[Mapping[str, Any]], unit: Any = "row") -> Path:
    """A schema file in the folder."""
    path = folder / "schema.json"
    path.write_text(json.dumps({"fields": list(fields), "margent": {"unit": unit}}), encoding="utf-8")
    return path


def synthesize(
    table: Path,
    fields: Sequence[Mapping[str, Any]],
    folder: Path,
    *options: str,
    epsilon: str = "10000",
    unit: Any = "row",
    out: str = "OUT",
) -> Made:
    """Run the command; a text table is read back cell by cell."""
    schema = schema_file(folder, fields, unit)
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", epsilon, "--single-release"]
    code = run([*arguments, "-o", str(folder / out), *options])
    written = folder / out / "synthetic.csv"
    if code or not written.exists():
        return Made(code, folder / out)
    delimiter = options[options.index("--delimiter") + 1] if "--delimiter" in options else ","
    with written.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    return Made(code, folder / out, header, rows)


def whole(cell: str, low: int, high: int, *others: str) -> bool:
    """Whether a cell is a plain whole number between the bounds, or one of the others."""
    return cell in others or (re.fullmatch(r"-?\d+", cell) is not None and low <= int(cell) <= high)
