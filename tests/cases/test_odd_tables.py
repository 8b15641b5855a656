"""Kinds of input that broke other tools, from end to end through the command line.

Every table here is made up. A good one must run, keep its header, write nothing but what the schema allows, and
give the same bytes again from the noisy answers.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from margent.cli import run
from tests.cases.made_up import REQUIRED, Case, Cells, as_float, listed, rows_of, schema_file, synthesize
from tests.cases.odd_columns import ODD_COLUMNS
from tests.cases.odd_files import ODD_FILES


def fits(cell: str, wanted: Cells) -> bool:
    if isinstance(wanted, str):
        return re.fullmatch(wanted, cell) is not None
    return cell in wanted if isinstance(wanted, frozenset) else wanted(cell)


CASES = [*ODD_FILES, *ODD_COLUMNS]
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


def test_names_of_cases_are_distinct() -> None:
    assert all(one.name != other.name for one, other in itertools.combinations(CASES, 2))
