"""The junction tree on the command line: planned, bought, drawn again by every synthesizer, stated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from margent.cli import run
from tests.conftest import people_rows, write_csv
from tests.synthesizers.made import TAKING_ANY


@pytest.mark.parametrize("account", [(), ("--accountant", "pure")], ids=["gdp", "pure"])
def test_a_junction_tree_from_plan_to_statement(
    account: tuple[str, ...], people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = write_csv(tmp_path / "t.csv", people_rows(3000)), tmp_path / "OUT"
    options = ["--schema", str(people_schema), "--epsilon", "4", "--method", "jtree", *account]
    assert run(["plan", *options]) == 0
    assert "clusters of cliques" in capsys.readouterr().out
    assert run(["synthesize", str(table), *options, "--single-release", "--seed", "3", "-o", str(out)]) == 0
    transcript = json.loads((out / "measurements" / "transcript.json").read_text())
    cliques = transcript["structure"]["cliqueTree"]
    assert {name for names in cliques for name in names} == {"sex", "work", "age", "since"}
    assert "jtree" in (out / "release.html").read_text()
    assert run(["statement", str(out), "-o", str(tmp_path / "statement.html")]) == 0
    assert "dependence of pairs" in (tmp_path / "statement.html").read_text()

    made = (out / "synthetic.csv").read_bytes()
    for number, synthesizer in enumerate(TAKING_ANY):
        again = tmp_path / f"AGAIN{number}"
        assert run(["resample", str(out), "--synthesizer", synthesizer.name, "--seed", "3", "-o", str(again)]) == 0
        assert ((again / "synthetic.csv").read_bytes() == made) == (synthesizer.name == "junction-tree")


def test_a_tree_that_is_too_large_is_refused_with_a_way_out(
    people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from margent.synthesizers.junction_tree import JunctionTreeSampling

    table, out = write_csv(tmp_path / "t.csv", people_rows(3000)), tmp_path / "OUT"
    bought = ["--epsilon", "40", "--method", "dense", "--single-release", "-o", str(out)]
    assert run(["synthesize", str(table), "--schema", str(people_schema), *bought]) == 0
    monkeypatch.setattr("margent.methods.SYNTHESIZERS", (JunctionTreeSampling(most_cells=100),))
    capsys.readouterr()
    assert run(["resample", str(out), "--synthesizer", "junction-tree", "-o", str(tmp_path / "NEW")]) == 2
    assert "too many pairs of columns were measured" in capsys.readouterr().err
    assert not (tmp_path / "NEW").exists()
