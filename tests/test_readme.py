"""The commands and the Python block of the README, run as they stand there, on a table made here."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from margent.cli import run

README = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str, holding: str) -> str:
    """The one code block of a language that holds some text."""
    blocks = [text for text in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if holding in text]
    assert len(blocks) == 1
    return blocks[0]


def commands(holding: str) -> list[list[str]]:
    """The `margent` commands of a shell block, as arguments."""
    lines = [shlex.split(line, comments=True) for line in block("sh", holding).splitlines()]
    return [words[1:] for words in lines if words and words[0] == "margent"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the reader's people.csv in it."""
    rng = np.random.default_rng(3)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sex", "age", "admitted", "patient"])
        for row in range(3000):
            day = f"{rng.integers(2020, 2025)}-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
            writer.writerow(["FM"[rng.integers(0, 2)], rng.integers(0, 100), day, f"P{row}"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_five_minutes_with_the_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draft, edit, *rest = commands("schema draft")
    assert run(draft) == 0
    drafted = json.loads((folder / "schema.json").read_text())
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    assert run(edit) == 0
    assert run(rest[0]) == 3, "open questions are faults"
    edited = json.loads(block("json", '"admitted"'))
    assert [field["name"] for field in edited["fields"]] == [field["name"] for field in drafted["fields"]]
    (folder / "schema.json").write_text(json.dumps(edited))
    for words in (*rest, *commands("resample")):
        assert run(words) == 0, words
    assert [words[0] for words in rest] == ["schema", "plan", "synthesize"]
    header, *rows = rows_of(folder / "OUT" / "synthetic.csv")
    assert header == ["sex", "age", "admitted", "patient"]
    assert abs(len(rows) - 3000) < 500
    assert {row[0] for row in rows} == {"F", "M"}
    assert len(rows_of(folder / "OUT2" / "synthetic.csv")) == 5001
    names = {path.name for path in (folder / "OUT").iterdir()}
    told = re.findall(r"`([^`]*)`", README[README.index("`OUT/` then holds") : README.index("From those, anybody")])
    (evaluate,) = commands("margent evaluate")
    assert run(evaluate) == 0
    assert (folder / "INTERNAL" / "INTERNAL-evaluation.html").exists()
    assert names == {"synthetic.csv", *(name.strip("/") for name in told if name != "OUT/")}
    assert "Warning" not in capsys.readouterr().out


def test_the_python_block(folder: Path) -> None:
    exec(compile(block("python", "import margent"), "README.md", "exec"), {})
    assert len(rows_of(folder / "OUT3" / "synthetic.csv")) > 2500


def test_every_command_of_the_table_exists(capsys: pytest.CaptureFixture[str]) -> None:
    listed = re.findall(r"^\| `margent ([a-z]+)( [a-z]+)?`((?:, `[a-z]+`)*) \|", README, re.MULTILINE)
    told = {first + second for first, second, _ in listed}
    told |= {f"{first} {other}" for first, _, others in listed for other in re.findall("[a-z]+", others)}
    assert {"schema draft", "schema check", "plan", "synthesize", "demo", "budget init", "budget verify"} <= told
    for words in told:
        assert run([*words.split(), "--help"]) == 0
        capsys.readouterr()
