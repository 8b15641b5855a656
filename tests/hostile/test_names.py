"""Hostile names as columns, categories, labels, titles, data sets and files: they stay text in every sink.

Four sinks: pages (the same elements and attributes as with plain names), the terminal (no character that it obeys),
SQL (names are parameters only), tables and JSON (the same text comes back; formulas are told of, not changed).
"""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
import unicodedata
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margent
from margent import Budget, BudgetFile, Category, Schema, read_release, read_schema, synthesize
from margent.cli import console, run
from margent.internal.evaluation import evaluate
from margent.internal.inspection import inspect
from margent.metrics.marginals import MarginalDistance
from margent.release.officer import Account, EarlierRun, statement
from margent.report import pages
from margent.report.evaluation import evaluation_page
from margent.report.inspection import inspection_page
from margent.schema.formulas import formula_cells, is_formula
from margent.schema.write import schema_to_json
from tests.hostile.names import FAMILIES, hostile_names
from tests.sizes import rounds

NAMES = hostile_names(rounds(300, 5000))
COLUMNS = 6
AT_ONCE = 25
"""Names of one schema: some are columns, the others categories and labels."""
SOURCE = Path(margent.__file__).parent


def groups() -> list[list[str]]:
    return [NAMES[first : first + AT_ONCE] for first in range(0, len(NAMES), AT_ONCE)]


def schema_of(names: list[str]) -> Schema:
    """The first names are columns, with all others as categories and, turned round, as their labels."""
    columns, values = names[:COLUMNS], names[COLUMNS:]
    listed = dict(zip(values, reversed(values), strict=True))
    fields = [Category(name, listed, title=name, description=name, missing_values=["NA"]) for name in columns]
    return Schema(fields, unit="row", name=names[0], provenance=names[-1])


def frame_of(schema: Schema, rows: int = 60) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {field.name: [str(item.value) for item in rng.choice(field.listed, rows)] for field in schema.fields}
    )


class Skeleton(HTMLParser):
    """Elements with the names of their attributes, and the text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: Counter[tuple[str, ...]] = Counter()
        self.text = ""
        self.odd = 0
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag, *(name for name, _ in attrs)] += 1

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.odd += 1

    def handle_pi(self, data: str) -> None:
        self.odd += 1


def pages_of(names: list[str]) -> dict[str, str]:
    schema = schema_of(names)
    frame = frame_of(schema)
    release = synthesize(frame, schema, budget=Budget(40), method="privsyn", rows=40, seed=1)
    from margent.release.page import release_page

    paid = [EarlierRun("2020", *2 * (1,), names[1], again=True)]
    account = Account(names[0], Budget(9).epsilon, Budget(9).delta, 0.5, 1, paid)
    made = evaluate(frame, {names[0]: frame, names[1]: frame}, schema, metrics=[MarginalDistance(1, "tvd")])
    return {
        "release": release_page(release.transcript, release.budget, release.summary, release.counts),
        "statement": statement(release.transcript, release.budget, release.summary, account=account),
        "evaluation": evaluation_page(made.document),
        "inspection": inspection_page(inspect(frame, schema).document),
    }


OWN = {
    "a", "body", "br", "caption", "circle", "code", "col", "details", "div", "em", "footer", "g", "h1", "h2", "h3",
    "h4",
    "head", "header", "html", "li", "line", "main", "meta", "nav", "ol", "p", "path", "polygon", "polyline", "rect",
    "section", "small", "span", "strong", "style", "summary", "svg", "table", "tbody", "td", "text", "tfoot", "th",
    "thead", "title", "tr", "ul", "link", "figure", "figcaption", "label", "tspan", "desc", "defs",
}  # fmt: skip


def page_faults(source: str, plain: str) -> list[str]:
    """Kinds of elements, with their attributes, that the page with plain names has not; comments; things that load."""
    shown, usual = Skeleton(source), Skeleton(plain)
    faults = [f"{kind}" for kind in shown.elements if kind not in usual.elements or kind[0] not in OWN]
    return faults + ["a comment or declaration"] * (shown.odd - usual.odd)


def test_pages_have_no_element_or_attribute_more() -> None:
    plain = pages_of([f"=plain {place}" for place in range(AT_ONCE)])
    for names in groups():
        for kind, source in pages_of(names).items():
            assert page_faults(source, plain[kind]) == [], (kind, names)
            if kind == "release":
                for name in names[:COLUMNS]:
                    # Parsers read NUL and CR as other characters: compared without.
                    assert re.sub(r"[\0\r\n]", "", name) in re.sub(r"[\0\r\n]", "", Skeleton(source).text)


def test_a_page_without_escaping_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = pages_of([f"=plain {place}" for place in range(AT_ONCE)])
    careless = pages.environment().overlay(autoescape=False)
    monkeypatch.setattr(pages, "environment", lambda: careless)
    caught = {kind for kind, source in pages_of(groups()[0]).items() if page_faults(source, plain[kind])}
    assert caught == set(plain)


def test_no_value_is_marked_safe() -> None:
    """Only drawings of ours, made of numbers, may pass unescaped."""
    for path in (SOURCE / "report").rglob("*.html"):
        assert "|safe" not in path.read_text().replace(" ", ""), path
    marked = {path.name for path in SOURCE.rglob("*.py") if re.search(r"\bMarkup\(", path.read_text())}
    assert marked <= {"charts.py"}


def obeyed(said: str) -> set[str]:
    """Characters that a terminal obeys; line ends are ours."""
    return {char for char in said if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char != "\n"}


def commands(folder: Path, names: list[str]) -> list[list[str]]:
    """Commands that have names to show, good and bad."""
    table, schema, budget = folder / "t.csv", folder / "s.json", folder / "b.budget"
    made = schema_of(names)
    schema.write_text(json.dumps(schema_to_json(made)))
    frame = frame_of(made)
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(frame.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in frame.columns), strict=True))
    other = folder / "other.csv"
    with other.open("w", newline="") as file:
        csv.writer(file).writerow([*names[1:COLUMNS], names[-1]])
    broken = json.loads(schema.read_text())
    broken["fields"][0] |= {names[0]: 1, "type": names[1]}
    (folder / "broken.json").write_text(json.dumps(broken))
    odd = names[2].replace("/", "_").replace("\0", "_")[:60]
    out = folder / f"OUT{odd}"
    run_it = ["synthesize", str(table), "--schema", str(schema), "--epsilon", "1", "--method", "independent", "-q"]
    return [
        ["schema", "check", str(schema), str(table)],
        ["schema", "check", str(schema), str(table), "--json"],
        ["schema", "check", str(schema), str(other)],
        ["schema", "check", str(folder / "broken.json")],
        ["schema", "draft", str(table), "-o", str(folder / f"D{odd}.json")],
        ["plan", "--schema", str(schema), "--epsilon", "1", "--expect-rows", "20"],
        ["plan", "--schema", str(schema), "--epsilon", "1", "--method", "priview"],
        ["plan", "--schema", str(schema), "--epsilon", "1", "--set", "merge_above=10"],
        ["budget", "init", str(budget), "--data-set", names[3], "--epsilon", "9"],
        [*run_it, "--budget", str(budget), "--data-set", names[4], "-o", str(folder / "no")],
        [*run_it, "--single-release", "--rows", "9", "-o", str(out)],
        [*run_it, "--single-release", "-o", str(out)],
        [*run_it, "--single-release", "--delimiter", names[5], "-o", str(folder / "no")],
        [*run_it, "--single-release", "--method", names[0], "-o", str(folder / "no")],
        ["resample", str(out), "-o", str(folder / "again"), "--json"],
        ["query", str(out), names[0].replace('"', '""').join('""'), "--csv"],
        ["evaluate", str(table), str(out), "--schema", str(schema), "--no-learning", "-o", str(folder / f"I{odd}")],
        ["evaluate", str(table), str(out), "--schema", str(schema), "--group", names[0], "-o", str(folder / "no\x1b")],
        ["inspect", str(table), "--schema", str(schema), "-o", str(folder / f"J{odd}")],
        ["statement", str(out), "--no-selftest", "-o", str(folder / f"S{odd}.html")],
        [names[0]],
        ["plan", f"--{names[1]}"],
        ["schema", "check", str(folder / odd)],
    ]


def said_by(folder: Path, names: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    said = ""
    for command in commands(folder, names):
        capsys.readouterr()
        code = run([part.replace("\0", "") for part in command])
        seen = capsys.readouterr()
        assert code in range(6), command
        assert code != 1, (command, seen.err)
        if "--json" in command and code == 0:
            json.loads(seen.out)
        said += seen.out + seen.err
    return said


def test_the_terminal_sees_no_character_that_it_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = groups()[:: rounds(3, 1)]
    for place, names in enumerate(few):
        (tmp_path / str(place)).mkdir()
        said = said_by(tmp_path / str(place), names, capsys)
        assert obeyed(said) == set(), names
        assert not [line for line in said.splitlines() if line.startswith("margent: forged")]
        assert any(repr(name)[1:-1] in said or name in said for name in names), "no name was shown: nothing was tested"


def test_an_echo_that_passes_names_on_is_caught(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "visible", lambda text, keep="": text)
    assert obeyed(said_by(tmp_path, groups()[0], capsys)) - {"\r"} != set()


def printing(tree: ast.AST) -> list[str]:
    """Calls that print, by how they are spelled."""
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if re.search(r"(^|\.)(s?echo|print|show_usage)$|std(out|err)\.write", call)]


def test_all_that_is_printed_goes_through_one_door() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.name != "console.py":
            assert printing(ast.parse(path.read_text())) == [], path
    assert len(printing(ast.parse((SOURCE / "cli" / "console.py").read_text()))) == 2
    assert printing(ast.parse("click.echo(1); print(2); sys.stderr.write(3)")) != []


def test_file_names_that_are_no_text_and_terminals_that_know_few_letters(tmp_path: Path) -> None:
    schema = os.fsencode(tmp_path) + b"/\xff\x1b[2J.json"
    program = [sys.executable, "-m", "margent", "schema", "check", schema]
    for encoding in ("utf-8", "ascii", "latin-1"):
        setting = os.environ | {"PYTHONIOENCODING": f"{encoding}:strict", "PYTHONPATH": str(SOURCE.parent)}
        done = subprocess.run(program, capture_output=True, check=False, env=setting)
        assert done.returncode == 3
        assert b"udcff\\u001b[2J.json" in done.stderr
        assert b"\x1b" not in done.stderr


def statements(path: Path) -> list[ast.expr]:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [
        call.args[0]
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in {"execute", "executemany", "executescript", "sql"}
    ]


def composed(statement: ast.expr) -> list[str]:
    """Names that a statement is put together from, unless they are constants in capitals, or numbers made of them."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return sorted(name for name in names if not name.isupper())


def test_no_statement_is_composed_of_names() -> None:
    found = {path.name: statements(path) for path in SOURCE.rglob("*.py") if statements(path)}
    # Databases that hold tables are asked for columns by name: one function quotes each name, and hostile ones are
    # tried on both engines (tests/tables/test_duckdb.py, tests/tables/test_postgres.py). The journal's are constants.
    databases = {"duckdb_rows.py", "postgres_rows.py"}
    assert set(found) == {"budget_store.py", "budget_disk.py", "journal.py", *databases}
    assert {name for each in found["budget_disk.py"] for name in composed(each)} == set()
    assert {name for each in found["journal.py"] for name in composed(each)} <= {"statement", "pragma"}
    for module in databases:
        text = (SOURCE / "tables" / module).read_text()
        assert "from margent.tables.address import" in text
        assert re.search(r"\bquoted\b", text)
        assert not re.search(r"""["']\{name\}["']|'\{column\}'""", text), module
    # "statement" runs over the constant texts that make the tables, "order" is a constant text.
    assert {name for each in found["budget_store.py"] for name in composed(each)} <= {"statement", "order"}
    text = (SOURCE / "privacy" / "budget_store.py").read_text()
    assert re.search(r"for statement in OBJECTS", text)
    assert re.search(r'order = "[^"{]*"\n', text)
    planted = ast.parse("file.execute(f\"SELECT 1 FROM entries WHERE data_set = '{name}'\")").body[0]
    assert isinstance(planted, ast.Expr)
    assert composed(planted.value) == ["file", "name"]


def test_hostile_data_sets_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "b.budget"
    kept = []
    for name in NAMES[: rounds(60, 5000)]:
        try:
            BudgetFile(path, name).init(Budget(1))
        except margent.MargentError:
            assert not name.isprintable() or len(name) > 100
        else:
            kept.append(name)
    assert list(BudgetFile(path).balances()) == kept
    assert len(kept) > 20
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*) FROM entries").fetchone() == (len(kept),)
    file.close()


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather"])
def test_names_and_values_come_back_exactly(kind: str, tmp_path: Path) -> None:
    for place, names in enumerate(groups()[:: rounds(4, 1)]):
        schema = schema_of(names)
        made = synthesize(frame_of(schema), schema, budget=Budget(50), method="independent", rows=80, seed=1)
        out = made.save(tmp_path / str(place), file_format=kind)
        columns = read_table(out / f"synthetic.{kind}", kind)
        assert list(columns) == names[:COLUMNS]
        expected = {name: column.to_pylist() for name, column in zip(names, made.table.columns, strict=False)}
        assert {name: ["NA" if cell is None else cell for cell in cells] for name, cells in expected.items()} == {
            name: ["NA" if cell is None else cell for cell in cells] for name, cells in columns.items()
        }
        transcript, _, summary = read_release(out)
        assert schema_to_json(transcript.schema) == schema_to_json(schema)
        package = json.loads((out / "datapackage.json").read_bytes())
        assert [field["name"] for field in package["resources"][0]["schema"]["fields"]] == names[:COLUMNS]
        assert summary["formulas"] == formula_cells(schema)
        document = tmp_path / f"{place}.json"
        document.write_text(json.dumps(schema_to_json(schema)))
        assert schema_to_json(read_schema(document)) == schema_to_json(schema)


def read_table(path: Path, kind: str) -> dict[str, list[Any]]:
    if kind in {"csv", "tsv"}:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file, delimiter="," if kind == "csv" else "\t")
        return {name: [row[place] for row in rows] for place, name in enumerate(header)}
    import pyarrow.feather
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path) if kind == "parquet" else pyarrow.feather.read_table(path)
    return {name: table.column(name).to_pylist() for name in table.column_names}


def test_formulas_are_told_of_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a spreadsheet would run is what it says; the check, the summary and the page tell of all of it."""
    fields = [
        {"name": "=a", "type": "string", "categories": ["=1+1", "x", "-5", "\tz"], "missingValues": ["@NA"]},
        {"name": "b", "type": "boolean", "trueValues": ["+yes"], "falseValues": ["no"]},
        {"name": "c", "type": "integer", "constraints": {"minimum": -9, "maximum": 9}, "margent": {"special": ["-99"]}},
        {"name": "id", "type": "string", "margent": {"role": "identifier"}},
        {"name": "=gone", "type": "string", "margent": {"role": "drop"}},
    ]
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"name": "t", "fields": fields, "margent": {"unit": "row"}}))
    cells = {each["cell"] for each in formula_cells(read_schema(path))}
    assert cells == {"=a", "=1+1", "\tz", "@NA", "+yes"}
    assert run(["schema", "check", str(path)]) == 0
    assert "Warning: a spreadsheet" in capsys.readouterr().out
    assert run(["schema", "check", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 1
    table = tmp_path / "t.csv"
    with table.open("w", newline="") as file:
        rows = [["=1+1", "+yes", "-5", "1", "z"], ["\tz", "no", "4", "2", "z"], ["@NA", "no", "-99", "3", "z"]]
        csv.writer(file).writerows([["=a", "b", "c", "id", "=gone"], *rows * 40])
    out = tmp_path / "OUT"
    assert run(["synthesize", str(table), "--schema", str(path), "--epsilon", "30", "--single-release", "-q", "-o",
                str(out)]) == 0  # fmt: skip
    assert "may run these names or cells as formulas" in capsys.readouterr().out
    assert "may run these names or cells as formulas" in (out / "release.html").read_text()
    columns = read_table(out / "synthetic.csv", "csv")
    written = {cell for column in columns.values() for cell in column} | set(columns)
    assert {"=1+1", "@NA", "+yes"} <= written
    assert {cell for cell in written if is_formula(cell)} <= cells


@pytest.mark.parametrize("family", range(len(FAMILIES)))
def test_visible_text_is_plain_and_tells_names_apart(family: int) -> None:
    shown = {console.visible(name) for name in FAMILIES[family]}
    assert len(shown) == len(FAMILIES[family])
    assert obeyed("".join(shown)) == set()
    assert "\n" not in "".join(shown)
