"""One record changes nothing but noise centers: the shape of a whole run is the same for neighboring tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.cli import run
from margent.privacy import curator
from tests.conftest import people_rows, write_csv

Noise = Callable[[int, Fraction], NDArray[np.int64]]


def wide_noise(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    """The same draws in every run, so wide that one record decides nothing."""
    rng = np.random.default_rng(count)
    return np.rint(rng.normal(0, float(scale_squared) ** 0.5, count)).astype(np.int64)


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every curator draws `wide_noise` instead of exact noise."""
    original = curator.DataCurator

    def made(*arguments: Any, **options: Any) -> curator.DataCurator:
        return original(*arguments, **(options | {"noise": wide_noise}))

    monkeypatch.setattr("margent.pipeline.DataCurator", made)


EXTRA_ROWS = [
    ["M", "office", "44", "2020-05-05", "P1"],
    ["", "", "", "", ""],
    ["X", "astronaut", "-7", "1850-01-01", "P2"],
    ["F", "none", "1e400", "not a date", "\x00"],
    ["F"],
    ["F", "none", "3", "2020-02-02", "P3", "one too many"],
    ["\ufeffF", "nöne", "NaN", "2020-02-30", "漢字"],
    ["F", "x" * 5000, "9" * 400, "", ""],
]


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("extra", EXTRA_ROWS, ids=range(len(EXTRA_ROWS)))
@pytest.mark.parametrize("method", ["dense", "privsyn", "independent"])
def test_one_more_record_changes_no_shape(
    method: str, extra: list[str], people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = people_rows(60)
    seen = []
    for name, table in (("A", rows), ("B", [*rows[:20], extra, *rows[20:]])):
        csv = write_csv(tmp_path / "t.csv", table)
        out = tmp_path / name
        code = run(
            ["synthesize", str(csv), "--schema", str(people_schema), "--epsilon", "0.02", "--single-release",
             "--method", method, "--seed", "4", "--rows", "50", "-o", str(out)]
        )  # fmt: skip
        said = capsys.readouterr()
        transcript = json.loads((out / "measurements" / "transcript.json").read_text())
        answers = [
            {key: answer[key] for key in ("kind", "charge", "offset", "variance") if key in answer}
            | {"clique": answer.get("clique"), "shape": answer.get("shape")}
            for answer in transcript["answers"]
        ]
        seen.append(
            {
                "code": code,
                "errors": said.err,
                "words": said.out.split("Close to the noisy answers")[0].replace(str(out), "OUT"),
                "files": sorted(str(path.relative_to(out)) for path in out.rglob("*")),
                "charges": transcript["charges"],
                "answers": answers,
                "domain": transcript["domain"],
                "header": (out / "synthetic.csv").read_text().splitlines()[0],
                "summary keys": sorted(json.loads((out / "summary.json").read_text())),
            }
        )
    assert seen[0]["code"] == 0
    assert seen[0] == seen[1]
