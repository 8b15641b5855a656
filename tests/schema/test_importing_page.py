"""The page on importing: its commands as they stand there, and its table of formats and columns."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from margent.cli import run
from margent.schema.imports.sheet_cells import COLUMNS
from margent.schema.imports.sources import FORMATS
from tests.conftest import people_rows, write_csv

PAGE = (Path(__file__).parents[2] / "docs" / "importing.md").read_text()

ANSWERS = ["20", "month", "", "no"]
"""Bins of weight and admission, no texts for "no value", every row somebody else."""


def test_the_commands_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], people_schema: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (dictionary,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "dictionary.csv").write_text(dictionary)
    table = write_csv(tmp_path / "people.csv", people_rows(200))
    run(["synthesize", str(table), "--schema", str(people_schema), "--epsilon", "1", "--single-release", "-o", "OUT"])
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    commands = [shlex.split(line.partition(" > ")[0])[1:] for line in lines]
    assert [words[1] for words in commands] == [
        "import",
        "edit",
        "check",
        "export",
        "import",
        "export",
        "export",
        "json-schema",
    ]
    for words in commands:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in ANSWERS)))
        capsys.readouterr()
        if "schema.json" in words and not (tmp_path / "schema.json").exists():
            shutil.copy("clinic.json", "schema.json")  # a page may call another one so
        assert run(words) == 0, words
    assert json.loads(capsys.readouterr().out)["$defs"]
    edited, again = (json.loads((tmp_path / name).read_text()) for name in ("schema.json", "again.json"))
    assert edited["fields"] == again["fields"]
    assert edited["margent"] == again["margent"]
    assert (tmp_path / "croissant.json").exists()


def test_formats_and_columns_are_those_of_the_page() -> None:
    assert re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE) == list(FORMATS)
    (told,) = re.findall(r"^Columns are (.*?); in any order", PAGE, re.MULTILINE | re.DOTALL)
    assert tuple(re.findall(r"`([A-Za-z]+)`", told)) == COLUMNS
