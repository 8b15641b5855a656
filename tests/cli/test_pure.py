"""Pure epsilon on the command line: every method runs, and no sentence promises less or more than (epsilon, 0)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from margent.cli import run
from margent.methods import METHODS
from tests.cli.test_synthesize import synthesize


@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_a_pure_release(
    method: str, people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "OUT"
    assert synthesize(people_csv, people_schema, out, "--accountant", "pure", "--delta", "0", "--method", method) == 0
    said = capsys.readouterr().out
    summary = json.loads((out / "summary.json").read_text())
    for text in (said, " ".join(summary["promise"]), (out / "release.html").read_text()):
        assert "(3, 0)-differential privacy" in text
        assert "(delta)" not in text
        assert "delta 0" not in text
    charges = json.loads((out / "charges.json").read_text())["charges"]
    assert {charge["mechanism"] for charge in charges} <= {"discrete-laplace", "exponential"}
    assert run(["resample", str(out), "-o", str(tmp_path / "AGAIN")]) == 0


def test_delta_may_be_left_out(people_schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--schema", str(people_schema), "--epsilon", "1", "--accountant", "pure"]) == 0
    assert "pure epsilon 1: " in capsys.readouterr().out
    wrong = ["plan", "--schema", str(people_schema), "--epsilon", "1", "--accountant", "pure", "--delta", "1e-9"]
    assert run(wrong) == 2
    assert "delta must be 0" in capsys.readouterr().err
