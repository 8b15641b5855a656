"""Kinds of input that broke other tools, from end to end through the command line.

Every table here is made up. A good one must run, keep its header, write nothing but what the schema allows, and
give the same bytes again from the noisy answers; a bad one must be refused in words, before any charge.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import margent
from margent.cli import run
from margent.privacy import ledger

REPEATS = 60
"""How often the few records of a case stand in its table, so that the noise does not drown them."""

Cells = str | frozenset[str] | Callable[[str], bool]


def listed(name: str, values: Sequence[Any] | Mapping[str, str], **keys: Any) -> dict[str, Any]:
    kind = "integer" if all(isinstance(value, int) for value in values) else "string"
    return {"name": name, "type": kind, "categories": list(values), **keys}


def ranged(name: str, kind: str, low: Any, high: Any, **block: Any) -> dict[str, Any]:
    keys = {key: block.pop(key) for key in ("format", "decimalChar", "groupChar") if key in block}
    required = {"required": True} if block.pop("required", False) else {}
    made = {"name": name, "type": kind, "constraints": {"minimum": low, "maximum": high, **required}, **keys}
    return made | ({"margent": block} if block else {})


def role(name: str, what: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "margent": {"role": what}}


def one_of(*texts: str) -> frozenset[str]:
    return frozenset(texts)


def whole(low: int, high: int, *others: str) -> Cells:
    return lambda cell: cell in others or (re.fullmatch(r"-?\d+", cell) is not None and low <= int(cell) <= high)


def instant(low: str, high: str) -> Cells:
    bounds = datetime.fromisoformat(low), datetime.fromisoformat(high)
    return lambda cell: cell == "" or bounds[0] <= datetime.fromisoformat(cell) <= bounds[1]


REQUIRED = {"required": True}


@dataclass(frozen=True)
class Case:
    """A small table, its public schema, and what each written cell must look like."""

    name: str
    header: str
    records: Sequence[str | bytes]
    fields: Sequence[Mapping[str, Any]]
    cells: Mapping[str, Cells]
    options: Sequence[str] = ()
    encoding: str = "utf-8"
    newline: str = "\n"
    seen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values that must turn up: they were in the table often enough."""
    secrets: Sequence[str] = ()
    """Texts of the table that may stand in no file and no message."""

    def content(self, repeats: int = REPEATS) -> bytes:
        lines = [self.header.encode(self.encoding)]
        raw = [record if isinstance(record, bytes) else record.encode(self.encoding) for record in self.records]
        return self.newline.encode().join([*lines, *(raw * repeats), b""])


CASES = [
    Case(
        "semicolons and decimal commas",
        "site;weight;price",
        ["Upper;2,35;1.499,90", "Lower;0,80;12,00", "Upper;3,10;250,75"],
        [
            listed("site", ["Upper", "Lower", "Middle"], constraints=REQUIRED),
            ranged("weight", "number", 0, 5, bins=10, decimals=2, decimalChar=",", required=True),
            ranged("price", "number", 0, 9000, bins=9, decimals=2, decimalChar=",", groupChar=".", required=True),
        ],
        {"site": one_of("Upper", "Lower", "Middle"), "weight": r"[0-5],\d\d", "price": r"[\d.]{1,5},\d\d"},
        options=("--delimiter", ";"),
        seen={"site": ("Upper", "Lower")},
    ),
    Case(
        "a byte order mark",
        "\ufeffvisitor,trips",
        ["first,2", "again,6"],
        [listed("visitor", ["first", "again"], constraints=REQUIRED), ranged("trips", "integer", 0, 9)],
        {"visitor": one_of("first", "again"), "trips": whole(0, 9, "")},
        seen={"visitor": ("first", "again")},
    ),
    Case(
        "another encoding, declared",
        "town,pets",
        ["Zürich,1", "Genève,0", "Bern,4"],
        [listed("town", ["Zürich", "Genève", "Bern"], constraints=REQUIRED), ranged("pets", "integer", 0, 9)],
        {"town": one_of("Zürich", "Genève", "Bern"), "pets": whole(0, 9, "")},
        options=("--encoding", "latin-1"),
        encoding="latin-1",
        seen={"town": ("Zürich", "Genève")},
    ),
    Case(
        "bytes that are not the declared encoding",
        "town,pets",
        [b"Z\xfcrich,1", b"Gen\xe8ve,0", b"Bern,4"],
        [
            listed("town", ["Zürich", "Genève", "Bern", "elsewhere"], margent={"unlisted": {"to": "elsewhere"}}),
            ranged("pets", "integer", 0, 9),
        ],
        {"town": one_of("Zürich", "Genève", "Bern", "elsewhere", ""), "pets": whole(0, 9, "")},
        seen={"town": ("elsewhere",)},
    ),
    Case(
        "commas, quotes and line ends inside cells",
        "reply,mark",
        ['"no, never",3', '"well\nmaybe",1', '"they wrote ""fine""",2'],
        [
            listed("reply", ["no, never", "well\nmaybe", 'they wrote "fine"'], constraints=REQUIRED),
            ranged("mark", "integer", 0, 5),
        ],
        {"reply": one_of("no, never", "well\nmaybe", 'they wrote "fine"'), "mark": whole(0, 5, "")},
        newline="\r\n",
        seen={"reply": ("well\nmaybe", 'they wrote "fine"')},
    ),
    Case(
        "odd column names",
        'Civil state,<i>wage</i>,sum,from,rôle Ü,"x,y","p""q",v.1,v_1,__class__, gap',
        ["wed,12,1,L,1,2,3,4,5,6,7", "free,31,2,R,7,6,5,4,3,2,1"],
        [
            listed("Civil state", ["wed", "free"]),
            listed("from", ["L", "R"]),
            *(
                ranged(name, "integer", 0, 40)
                for name in ("<i>wage</i>", "sum", "rôle Ü", "x,y", 'p"q', "v.1", "v_1", "__class__", " gap")
            ),
        ],
        {"Civil state": one_of("wed", "free", ""), "<i>wage</i>": whole(0, 40, ""), " gap": whole(0, 40, "")},
        seen={"Civil state": ("wed", "free")},
    ),
    Case(
        "leading zeros",
        "post,serial,born",
        ["00210,000031,07031994", "90001,410000,21121960", "00210,000031,01011901"],
        [
            listed("post", ["00210", "90001", "04100"], constraints=REQUIRED),
            listed("serial", ["000031", "410000"], constraints=REQUIRED),
            ranged("born", "date", "1900-01-01", "2019-12-31", format="%d%m%Y", bins="year", required=True),
        ],
        {"post": r"\d{5}", "serial": r"\d{6}", "born": r"[0-3]\d[01]\d(19|20)\d\d"},
        seen={"post": ("00210",), "serial": ("000031",)},
    ),
    Case(
        "whole numbers beside missing cells",
        "home,rooms",
        ["1,3", "2,", "3,1", "4,"],
        [role("home", "drop"), ranged("rooms", "integer", 0, 8)],
        {"rooms": whole(0, 8, "")},
        seen={"rooms": ("3", "")},
    ),
    Case(
        "whole numbers above 2^53",
        "block,tick",
        ["9007199254740997,1600000000987654321", "9007199254740999,1600000000000000001"],
        [
            listed("block", [9007199254740997, 9007199254740999], constraints=REQUIRED),
            ranged("tick", "integer", 1600000000000000000, 1600000001000000000, bins=4, required=True),
        ],
        {
            "block": one_of("9007199254740997", "9007199254740999"),
            "tick": whole(1600000000000000000, 1600000001000000000),
        },
        seen={"block": ("9007199254740997", "9007199254740999")},
    ),
    Case(
        "words for true and false",
        "member,car,alive,agreed",
        ["TRUE,1,yes,Y", "false,0,yes,N", "True,1,no,"],
        [
            {"name": "member", "type": "boolean", "constraints": REQUIRED},
            {"name": "car", "type": "boolean", "trueValues": ["1"], "falseValues": ["0"], "constraints": REQUIRED},
            {"name": "alive", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"], "constraints": REQUIRED},
            {"name": "agreed", "type": "boolean", "trueValues": ["Y"], "falseValues": ["N"]},
        ],
        {
            "member": one_of("true", "false"),
            "car": one_of("1", "0"),
            "alive": one_of("yes", "no"),
            "agreed": one_of("Y", "N", ""),
        },
        seen={"member": ("true", "false"), "agreed": ("Y", "N", "")},
    ),
    Case(
        "offsets and clock changes",
        "begin,end",
        [
            "2022-03-27T01:10:00+01:00,2022-03-27T03:40:00+02:00",
            "2022-10-30T02:20:00+02:00,2022-10-30T02:20:00+01:00",
            "2022-07-01T10:00:00Z,2022-07-01T05:30:00-06:00",
        ],
        [
            ranged(name, "datetime", "2022-01-01T00:00:00Z", "2022-12-31T23:59:00Z", bins="month", timeZone=zone)
            for name, zone in (("begin", "Europe/Vienna"), ("end", "UTC"))
        ],
        {
            "begin": instant("2022-01-01T00:00:00+00:00", "2022-12-31T23:59:59+00:00"),
            "end": lambda cell: (
                cell == "" or ("2022-01-01" <= cell <= "2022-12-31T23:59:59Z" and cell[-1:] == "Z") or "+00:00" in cell
            ),
        },
    ),
    Case(
        "ordered categories, one of which never occurs",
        "view,band",
        ["good,B", "fair,A", "very good,C"],
        [
            listed("view", ["very bad", "bad", "fair", "good", "very good"], categoriesOrdered=True),
            listed("band", ["A", "B", "C", "D"]),
        ],
        {"view": one_of("very bad", "bad", "fair", "good", "very good", ""), "band": one_of("A", "B", "C", "D", "")},
        seen={"view": ("fair", "good", "very good")},
    ),
    Case(
        "numbers and words in one column",
        "door,level",
        ["3,10", "3B,2.5", "Cellar,<1", "4,traces"],
        [
            listed("door", ["3", "3B", "4", "Cellar"]),
            ranged("level", "number", 0, 40, bins=8, decimals=1, special=["<1", "traces"]),
        ],
        {"door": one_of("3", "3B", "4", "Cellar", ""), "level": r"(<1|traces|\d\d?\.\d|)"},
        seen={"door": ("3B", "Cellar"), "level": ("<1", "traces")},
    ),
    Case(
        "sentinel codes",
        "wage,children,moved",
        ["31000,1,-6", "-8,0,2011", "777777,-6,-6", "52500,88,"],
        [
            ranged(
                "wage",
                "integer",
                0,
                90000,
                bins={"width": 9000},
                special={"-8": "refused", "-6": "not asked", "777777": "more"},
            ),
            ranged("children", "integer", 0, 9, special=["-6", "88"]),
            ranged("moved", "integer", 1990, 2020, special=["-6"]),
        ],
        {
            "wage": whole(0, 90000, "-8", "-6", "777777", ""),
            "children": whole(0, 9, "-6", "88", ""),
            "moved": whole(1990, 2020, "-6", ""),
        },
        seen={"wage": ("-8", "777777"), "children": ("-6", "88"), "moved": ("-6",)},
    ),
    Case(
        "negative and narrow bounds",
        "frost,saldo,step",
        ["-30,-4999.01,7", "12,250.50,7", "-2,0.00,9"],
        [
            ranged("frost", "integer", -35, 40, required=True),
            ranged("saldo", "number", -5000, 5000, bins=20, decimals=2, required=True),
            ranged("step", "integer", 7, 7, required=True),
        ],
        {"frost": whole(-35, 40), "saldo": r"-?\d{1,4}\.\d\d", "step": one_of("7")},
    ),
    Case(
        "a column of nothing but missing cells",
        "grade,remark,day",
        ["3,,", "1,,", "4,,"],
        [
            ranged("grade", "integer", 0, 4, required=True),
            ranged("remark", "integer", 0, 7),
            ranged("day", "date", "2021-01-01", "2021-12-31", bins="month"),
        ],
        {"grade": whole(0, 4), "remark": whole(0, 7, ""), "day": r"(2021-\d\d-\d\d|)"},
        seen={"grade": ("1", "3", "4"), "remark": ("",), "day": ("",)},
    ),
    Case(
        "constant columns",
        "clinic,dose,size",
        ["K7,ml,1", "K7,ml,2", "K7,ml,2"],
        [
            listed("clinic", ["K7"], constraints=REQUIRED),
            listed("dose", ["ml", "l"], constraints=REQUIRED),
            ranged("size", "integer", 1, 2, required=True),
        ],
        {"clinic": one_of("K7"), "dose": one_of("ml", "l"), "size": whole(1, 2)},
        seen={"dose": ("ml",)},
    ),
    Case(
        "values outside the schema",
        "unit,years",
        ["Eye,30", "Ear,52", "Ear ,31", "eye,999", ",-5", "Dentistry-77,40"],
        [listed("unit", ["Eye", "Ear", "Skin"]), ranged("years", "integer", 0, 110)],
        {"unit": one_of("Eye", "Ear", "Skin", ""), "years": whole(0, 110, "")},
        seen={"unit": ("Eye", "Ear", "")},
        secrets=("Dentistry-77",),
    ),
    Case(
        "identifiers, contact data and free text",
        "key,mail,remark,years",
        ['K-71,zoe@example.net,"allergic, see file",44', 'K-72,max@example.net,"none",38'],
        [role("key", "identifier"), role("mail", "drop"), role("remark", "drop"), ranged("years", "integer", 0, 110)],
        {"key": r"\d+", "years": whole(0, 110, "")},
        secrets=("K-71", "zoe@", "max@example", "allergic"),
    ),
    Case(
        "identifiers and nothing else",
        "key,mail",
        ["K-71,zoe@example.net", "K-72,max@example.net"],
        [role("key", "identifier"), role("mail", "drop")],
        {"key": r"\d+"},
        secrets=("K-71", "zoe@"),
    ),
    Case(
        "categories only",
        "side,tier",
        ["L,top", "R,low", "L,mid"],
        [listed("side", ["L", "R"], constraints=REQUIRED), listed("tier", ["low", "mid", "top"], constraints=REQUIRED)],
        {"side": one_of("L", "R"), "tier": one_of("low", "mid", "top")},
        seen={"side": ("L", "R"), "tier": ("low", "mid", "top")},
    ),
]


def schema_file(folder: Path, fields: Sequence[Mapping[str, Any]], **keys: Any) -> Path:
    path = folder / "schema.json"
    path.write_text(json.dumps({"fields": list(fields), "margent": {"unit": "row"}, **keys}))
    return path


def synthesize(table: Path, schema: Path, out: Path, *options: str, epsilon: str = "6") -> int:
    arguments = ["synthesize", str(table), "--schema", str(schema), "--epsilon", epsilon, "--single-release"]
    return run([*arguments, "-o", str(out), *options])


def rows_of(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def fits(cell: str, wanted: Cells) -> bool:
    if isinstance(wanted, str):
        return re.fullmatch(wanted, cell) is not None
    return cell in wanted if isinstance(wanted, frozenset) else wanted(cell)


@pytest.fixture
def no_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a charge was made")

    monkeypatch.setattr(ledger.Ledger, "spend", spend)


BY_METHOD = [
    pytest.param(case, method, id=f"{case.name}-{method}") for case in CASES for method in ("dense", "privsyn")
]


@pytest.mark.parametrize(("case", "method"), BY_METHOD)
def test_a_table_runs_and_its_copy_stays_inside_the_schema(
    case: Case, method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes(case.content())
    schema = schema_file(tmp_path, case.fields)
    assert run(["schema", "check", str(schema), str(table), *case.options]) == 0
    out = tmp_path / "OUT"
    assert synthesize(table, schema, out, *case.options, "--rows", "400", "--seed", "5", "--method", method) == 0
    header, *rows = rows_of(out / "synthetic.csv", ";" if "--delimiter" in case.options else ",")
    dropped = {item["name"] for item in case.fields if item.get("margent", {}).get("role") == "drop"}
    own = [item["name"] for item in case.fields]
    assert header == [name for name in own if name not in dropped]
    assert not (out / "synthetic.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert len(rows) == 400
    assert set(case.cells) <= set(header)
    for name, wanted in case.cells.items():
        column = [row[header.index(name)] for row in rows]
        assert [cell for cell in column if not fits(cell, wanted)] == [], name
        for value in case.seen.get(name, ()):
            assert value in column, (name, value)

    charges = json.loads((out / "charges.json").read_text())
    spent = as_float(charges["spent"]) / as_float(charges["total"])
    modeled = [item for item in case.fields if item.get("margent", {}).get("role", "model") == "model"]
    assert 0.98 < spent <= 1 if modeled else spent == 0
    said = capsys.readouterr()
    for secret in case.secrets:
        assert secret not in said.out + said.err
        assert all(secret.encode() not in path.read_bytes() for path in out.rglob("*") if path.is_file())

    table.unlink()
    assert run(["resample", str(out), "--rows", "400", "--seed", "5", "-o", str(tmp_path / "AGAIN")]) == 0
    assert (tmp_path / "AGAIN" / "synthetic.csv").read_bytes() == (out / "synthetic.csv").read_bytes()


def as_float(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_rows_are_legal_in_every_case(case: Case, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes(case.content(repeats=0))
    options = (*case.options, "--method", "privsyn")
    assert synthesize(table, schema_file(tmp_path, case.fields), tmp_path / "OUT", *options) == 0
    assert len(rows_of(tmp_path / "OUT" / "synthetic.csv")) >= 1


def test_odd_names_are_escaped_on_the_page(tmp_path: Path) -> None:
    (case,) = [case for case in CASES if case.name == "odd column names"]
    (tmp_path / "t.csv").write_bytes(case.content(5))
    assert synthesize(tmp_path / "t.csv", schema_file(tmp_path, case.fields), tmp_path / "OUT") == 0
    page = (tmp_path / "OUT" / "release.html").read_text()
    assert "&lt;i&gt;wage&lt;/i&gt;" in page
    assert "<i>" not in page


def test_constant_columns_cost_nothing(tmp_path: Path) -> None:
    (case,) = [case for case in CASES if case.name == "negative and narrow bounds"]
    (tmp_path / "t.csv").write_bytes(case.content())
    assert synthesize(tmp_path / "t.csv", schema_file(tmp_path, case.fields), tmp_path / "OUT") == 0
    charges = json.loads((tmp_path / "OUT" / "charges.json").read_text())["charges"]
    assert not any("step" in clique for charge in charges for clique in charge["cliques"])


SMALL = [
    listed("sex", ["F", "M"], constraints=REQUIRED),
    ranged("age", "integer", 0, 110, bins={"width": 10}, required=True),
]

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


def small_table(folder: Path, rows: int = 40) -> Path:
    lines = [f"{'FM'[place % 2]},{20 + place % 50}" for place in range(rows)]
    (folder / "t.csv").write_text("\n".join(["sex,age", *lines, ""]))
    return folder / "t.csv"


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "-inf", "1,5", "", "one", "1e999", "0x1"])
def test_an_epsilon_that_makes_no_sense_is_refused_before_the_table_is_opened(
    epsilon: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = schema_file(tmp_path, SMALL)
    assert synthesize(tmp_path / "absent.csv", schema, tmp_path / "OUT", epsilon=epsilon) == 2
    assert "epsilon" in capsys.readouterr().err


def test_one_epsilon_however_it_is_written(tmp_path: Path) -> None:
    budgets = {margent.Budget(written) for written in (1, 1.0, "1", "1.0", "1e0", "2/2")}
    assert len(budgets) == 1
    for written in ("1e-9", "0.01", "10", "1000"):
        out, rows = tmp_path / written, ("--rows", "50") if written == "1e-9" else ()
        assert synthesize(small_table(tmp_path), schema_file(tmp_path, SMALL), out, *rows, epsilon=written) == 0
        for facts in (out / "summary.json", out / "charges.json", out / "measurements" / "transcript.json"):
            assert not re.search(r"NaN|Infinity", facts.read_text())


def test_a_large_epsilon_shows_the_table_and_a_tiny_one_does_not(tmp_path: Path) -> None:
    table, schema = small_table(tmp_path, 400), schema_file(tmp_path, SMALL)
    deviations = {}
    for epsilon in ("0.001", "100"):
        assert synthesize(table, schema, tmp_path / epsilon, "--rows", "2000", epsilon=epsilon) == 0
        charges = json.loads((tmp_path / epsilon / "charges.json").read_text())["charges"]
        deviations[epsilon] = min(as_float(charge["scaleSquared"]) ** 0.5 for charge in charges)
    ages = [int(row[1]) for row in rows_of(tmp_path / "100" / "synthetic.csv")[1:]]
    assert sum(20 <= age < 70 for age in ages) > 0.98 * len(ages)
    assert deviations["0.001"] > 400 > 100 * deviations["100"], "in records, of which the table has 400"


@pytest.mark.usefixtures("no_charge")
def test_where_even_the_number_of_records_is_noise_somebody_must_say_how_many_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At epsilon 1e-9 the noise of the total is billions, and half of all runs would fill the memory."""
    schema = schema_file(tmp_path, SMALL)
    assert synthesize(small_table(tmp_path), schema, tmp_path / "OUT", epsilon="1e-9") == 5
    assert "--rows" in capsys.readouterr().err
    assert run(["plan", "--schema", str(schema), "--epsilon", "1e-9", "--expect-rows", "40"]) == 0
    assert "say --rows" in capsys.readouterr().out
    assert run(["plan", "--schema", str(schema), "--epsilon", "0.01"]) == 0
    assert "say --rows" not in capsys.readouterr().out


@pytest.mark.parametrize("rows", ["-1", "3.5", "3.0", "x", "True", "1e3", "+1", " 1"])
def test_a_number_of_rows_that_makes_no_sense_is_refused(
    rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthesize(tmp_path / "absent.csv", schema_file(tmp_path, SMALL), tmp_path / "OUT", "--rows", rows) == 2
    assert "--rows" in capsys.readouterr().err


@pytest.mark.parametrize("rows", [-1, 3.5, 3.0, "10", True])
def test_and_so_it_is_from_python(rows: Any, tmp_path: Path) -> None:
    synthesizer = margent.TableSynthesizer(margent.read_schema(schema_file(tmp_path, SMALL)), epsilon=1)
    synthesizer.fit(small_table(tmp_path))
    with pytest.raises(margent.UsageError, match="rows"):
        synthesizer.sample(rows)


def test_no_rows_are_a_typed_table_and_the_default_is_the_noisy_number(tmp_path: Path) -> None:
    schema = margent.read_schema(schema_file(tmp_path, SMALL))
    synthesizer = margent.TableSynthesizer(schema, epsilon=0.05).fit(pd.read_csv(small_table(tmp_path, 400)))
    none = synthesizer.sample(0)
    assert len(none) == 0
    assert list(none.columns) == ["sex", "age"]
    assert list(none["sex"].cat.categories) == ["F", "M"]
    assert str(none["age"].dtype) == "Int64"
    assert len(synthesizer.sample()) == len(synthesizer.sample())
    # The noise of a total at epsilon 0.05 has a deviation above 100; five runs that all hit 400 would show a leak.
    table = small_table(tmp_path, 400)
    fitted = [margent.TableSynthesizer(schema, epsilon=0.05).fit(table) for _ in range(5)]
    assert {len(each.sample()) for each in fitted} != {400}


def test_many_rows_are_written_in_blocks(tmp_path: Path) -> None:
    out = tmp_path / "OUT"
    options = ("--rows", "150000", "--format", "csv.gz", "--method", "independent")
    assert synthesize(small_table(tmp_path), schema_file(tmp_path, SMALL), out, *options) == 0
    with gzip.open(out / "synthetic.csv.gz", "rt") as file:
        assert sum(1 for _ in file) == 150_001


def test_two_runs_differ_and_the_seed_of_the_sampling_is_published(tmp_path: Path) -> None:
    schema, table = schema_file(tmp_path, SMALL), small_table(tmp_path)
    for name in ("A", "B"):
        assert synthesize(table, schema, tmp_path / name, "--seed", "4", "--rows", "50") == 0
    answers = [(tmp_path / name / "measurements" / "answers.i64").read_bytes() for name in ("A", "B")]
    assert answers[0] != answers[1]
    assert json.loads((tmp_path / "A" / "summary.json").read_text())["seed"] == 4
    for name in ("charges.json", "measurements/transcript.json"):
        assert "seed" not in (tmp_path / "A" / name).read_text()


def test_a_release_can_be_moved_and_a_newer_or_damaged_one_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    out = home / "OUT"
    assert synthesize(small_table(home), schema_file(home, SMALL), out, "--seed", "4") == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    table = before[out / "synthetic.csv"]
    assert run(["resample", str(out), "--seed", "4", "-o", str(tmp_path / "B")]) == 0
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}, "sampling changes nothing"
    moved = out.rename(tmp_path / "moved")
    (home / "t.csv").unlink()
    assert run(["resample", str(moved), "--seed", "4", "-o", str(tmp_path / "C")]) == 0
    assert (tmp_path / "B" / "synthetic.csv").read_bytes() == (tmp_path / "C" / "synthetic.csv").read_bytes() == table
    facts = moved / "measurements" / "transcript.json"
    document = json.loads(facts.read_text())
    for change, words in (
        ({"version": 99}, "version"),
        ({"format": "pickle"}, "not a Margent measurements file"),
        ({"answers": None}, "damaged or altered"),
    ):
        facts.write_text(json.dumps(document | change))
        capsys.readouterr()
        assert run(["resample", str(moved), "-o", str(tmp_path / "D")]) == 3
        assert words in capsys.readouterr().err
        assert not (tmp_path / "D").exists()


@pytest.mark.parametrize("method", ["dense", "privsyn"])
def test_a_column_that_another_determines_and_one_that_is_independent(method: str, tmp_path: Path) -> None:
    """b = 7 a holds in 99 % of the rows; the mutual information of a and c is that of independent draws.

    Of 2 x 3,000 independent rows the mean of 2 n I is about 8, and 60 is exceeded with probability under 1e-8; a
    dependence of one row in ten gives several hundred.
    """
    lines = [f"{place % 5},{7 * (place % 5)},{place % 3}" for place in range(3000)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *lines, ""]))
    fields = [
        listed("a", list("01234"), constraints=REQUIRED),
        listed("b", [str(7 * place) for place in range(5)], constraints=REQUIRED),
        listed("c", list("012"), constraints=REQUIRED),
    ]
    options = ("--rows", "3000", "--method", method)
    assert synthesize(tmp_path / "t.csv", schema_file(tmp_path, fields), tmp_path / "OUT", *options, epsilon="5") == 0
    rows = np.array(rows_of(tmp_path / "OUT" / "synthetic.csv")[1:], dtype=int)
    assert np.mean(rows[:, 1] == 7 * rows[:, 0]) > 0.99
    joint = np.zeros((5, 3))
    np.add.at(joint, (rows[:, 0], rows[:, 2]), 1 / len(rows))
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    information = float((joint[joint > 0] * np.log(joint[joint > 0] / product[joint > 0])).sum())
    assert 2 * len(rows) * information < 60


def test_very_many_categories_are_planned_before_a_row_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [f"{place:05d}" for place in range(30_000)]
    (tmp_path / "codes.csv").write_text("\n".join(["value", *codes, ""]))
    fields = [
        {"name": "trade", "type": "string", "categories": {"file": "codes.csv"}},
        listed("area", codes[:20_000]),
        listed("part", ["N", "S"]),
    ]
    schema = schema_file(tmp_path, fields)
    assert run(["plan", "--schema", str(schema), "--epsilon", "1", "--json"]) == 0
    (plan,) = json.loads(capsys.readouterr().out)
    assert [column["codes"] for column in plan["columns"]] == [30_001, 20_001, 3]
    assert max(stage["largestTableCells"] for stage in plan["stages"]) <= 2**26, "the pair of 6e8 cells is never built"
    assert plan["memoryBytes"] < 2 * 2**30
    (tmp_path / "t.csv").write_text("\n".join(["trade,area,part", *(f"{code},{code},N" for code in codes[:500])]))
    assert synthesize(tmp_path / "t.csv", schema, tmp_path / "OUT", "--rows", "10", "--method", "privsyn") == 0


# --- typed tables


def typed_frame(rows: int = 200) -> pd.DataFrame:
    place = np.arange(rows)
    moments = pd.to_datetime("2022-03-27T00:30:00Z") + pd.to_timedelta(place, unit="D")
    words = ["never", "rarely", "often"]
    return pd.DataFrame(
        {
            "small": pd.Series([None if row % 5 == 0 else row % 8 for row in place], dtype="UInt8"),
            "signed": pd.Series(place % 11 - 5, dtype="Int16"),
            "half": np.where(place % 7 == 0, np.nan, place % 9 / 2).astype("float32"),
            "flag": pd.Series([None if row % 6 == 0 else bool(row % 2) for row in place], dtype="boolean"),
            "word": pd.Series([None if row % 9 == 0 else "uv"[row % 2] for row in place], dtype="string"),
            "often": pd.Categorical([words[1 + row % 2] for row in place], categories=words, ordered=True),
            "mixed": pd.Series([(5, 5.0, "5", "5A")[row % 4] for row in place], dtype=object),
            "gone": np.full(rows, np.nan),
            "at": pd.Series(moments).dt.tz_convert("Europe/Vienna"),
        }
    )


TYPED = [
    ranged("small", "integer", 0, 9),
    ranged("signed", "integer", -5, 5, required=True),
    ranged("half", "number", 0, 5, bins=10, decimals=1),
    {"name": "flag", "type": "boolean"},
    listed("word", ["u", "v"]),
    listed("often", ["never", "rarely", "often"], categoriesOrdered=True, constraints=REQUIRED),
    listed("mixed", ["5", "5A"], constraints=REQUIRED),
    ranged("gone", "integer", 0, 3),
    ranged("at", "datetime", "2022-01-01T00:00:00Z", "2022-12-31T23:59:59Z", bins="month", timeZone="Europe/Vienna"),
]


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet"])
def test_typed_tables_get_their_types_from_the_schema(kind: str, tmp_path: Path) -> None:
    frame, schema = typed_frame(), margent.read_schema(schema_file(tmp_path, TYPED))
    table: Any = frame
    if kind != "pandas":
        # Arrow has no columns of mixed objects: there the mixed one is a number.
        numbers = pa.Table.from_pandas(frame.assign(mixed=5.0), preserve_index=False)
        table = pl.from_arrow(numbers) if kind == "polars" else tmp_path / "t.parquet"
        if kind == "parquet":
            pq.write_table(numbers, table)
    release = margent.synthesize(table, schema, budget=margent.Budget(8), rows=500, seed=2)
    made = release.to_pandas()
    kinds = {name: str(dtype) for name, dtype in made.dtypes.items()}
    assert kinds["small"] == kinds["signed"] == kinds["gone"] == "Int64"
    assert kinds["half"] == "float64"
    assert kinds["flag"] == "boolean"
    assert made["often"].dtype == frame["often"].dtype
    assert kinds["at"].endswith("Europe/Vienna]")
    assert release.table.schema.field("signed").nullable is False
    assert made["signed"].between(-5, 5).all()
    assert made["gone"].isna().mean() > 0.8
    assert 0.05 < made["small"].isna().mean() < 0.4
    assert set(made["mixed"]) <= {"5", "5A"}
    inside = made["at"].dropna().dt.tz_convert("UTC")
    assert inside.between(pd.Timestamp("2022-01-01", tz="UTC"), pd.Timestamp("2023-01-01", tz="UTC")).all()


@pytest.mark.usefixtures("no_charge")
def test_nested_columns_are_named_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"labels": [["x"], []], "age": [1, 2]}), tmp_path / "t.parquet")
    schema = schema_file(tmp_path, [listed("labels", ["x"]), SMALL[1]])
    assert synthesize(tmp_path / "t.parquet", schema, tmp_path / "OUT") == 3
    said = capsys.readouterr().err
    assert "labels" in said
    assert "list<" in said


def test_names_of_cases_are_distinct() -> None:
    assert all(one.name != other.name for one, other in itertools.combinations(CASES, 2))
