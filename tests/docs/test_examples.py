"""The example scripts and the notebook: run as they stand, and what they print and write is what they say."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.docs.stage import ROOT

FOLDER = ROOT / "examples"
SCRIPTS = sorted(FOLDER.glob("0*.py"))


def number(text: str, before: str) -> float:
    """The number that follows some words."""
    found = re.search(rf"{re.escape(before)}\s*([\d,.]+)", text)
    assert found, before
    return float(found[1].replace(",", "").rstrip("."))


def first_table(said: str, folder: Path) -> None:
    assert said.startswith("verdict: good")
    real, made = (float(each) for each in re.findall(r"rows; ([\d.]+)% of those", said))
    assert abs(real - made) < 4
    assert abs(number(said, "synthetic:") - 6000) < 400
    assert (folder / "first-release" / "synthetic.parquet").exists()


def patients(said: str, folder: Path) -> None:
    assert "every person, as told apart by the column 'patient'" in said
    assert "stays under one id: 1 to 2" in said
    assert abs(number(said, "counted; synthetic:") - number(said, "of which")) < 500
    heart, surgery = (
        number(said, "synthetic: nights in heart"),
        number(said[said.rindex("synthetic: nights") :], "in surgery"),
    )
    assert heart > surgery + 2, "the wards are told apart"


def questions(said: str, folder: Path) -> None:
    assert "health poor by limitation: measured" in said
    assert "500 records of people in poor health, all of them: {'1'}" in said
    assert said.rstrip().endswith("the same seed gives the same table: True")


def compared(said: str, folder: Path) -> None:
    errors = {
        name: [float(low), float(high)] for name, low, high in re.findall(r"  (\w+) +(\.?\d[\d.]*) (\d[\d.]*)", said)
    }
    assert set(errors) == {"dense", "privsyn", "privbayes", "independent"}
    assert errors["dense"][1] < errors["dense"][0] < errors["independent"][0]
    assert len(list((folder / "methods").iterdir())) == 2


def database(said: str, folder: Path) -> None:
    visits = [float(each) for each in re.findall(r"people, ([\d.]+) visits", said)]
    ill = [float(each) for each in re.findall(r"([\d.]+)% with", said)]
    assert abs(visits[0] - visits[1]) < 0.2
    assert abs(ill[0] - ill[1]) < 3


def budget(said: str, folder: Path) -> None:
    assert "2024: refused" in said
    assert said.count("rows") == 3
    assert 0 < number(said, "of the cap,") < 20
    assert sorted(path.name for path in folder.glob("registry-*")) == [
        "registry-2021",
        "registry-2022",
        "registry-2023",
    ]


CHECKS: dict[str, Callable[[str, Path], None]] = {
    "01_first_table": first_table,
    "02_patients_with_several_stays": patients,
    "03_conditions_and_questions": questions,
    "04_compare_methods": compared,
    "05_from_a_database": database,
    "06_budget_across_releases": budget,
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_does_what_it_says(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(script), run_name="__main__")
    CHECKS[script.stem](said.getvalue(), tmp_path)


def test_every_script_has_a_check_and_is_on_the_page() -> None:
    assert set(CHECKS) == {script.stem for script in SCRIPTS}
    page = (ROOT / "docs" / "examples.md").read_text()
    assert [path.name for path in [*SCRIPTS, FOLDER / "analyst.ipynb"] if path.name not in page] == []


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="the group docs is not installed")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(FOLDER / "analyst.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    said = "".join(
        str(output.get("text", output.get("data", {}).get("text/plain", "")))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    own, margent = number(said, "without the noise"), number(said, "with the noise")
    assert margent > own, "an interval that knows of the noise is wider"
    assert np.isfinite(margent)


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = json.loads((FOLDER / "analyst.ipynb").read_text())["cells"]
    assert [cell["cell_type"] for cell in cells].count("code") >= 5
    assert all(
        cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code"
    )
