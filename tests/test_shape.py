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


METHODS = ["dense", "privsyn", "privbayes", "priview", "jtree", "independent"]


def shape_of(
    rows: list[list[str]], method: str, schema: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Everything about a run that neighbors must have in common."""
    csv = write_csv(out.parent / "t.csv", rows)
    code = run(
        ["synthesize", str(csv), "--schema", str(schema), "--epsilon", "0.02", "--single-release",
         "--method", method, "--seed", "4", "--rows", "50", "-o", str(out)]
    )  # fmt: skip
    said = capsys.readouterr()
    transcript = json.loads((out / "measurements" / "transcript.json").read_text())
    answers = [
        {key: answer[key] for key in ("kind", "charge", "offset", "variance") if key in answer}
        | {"clique": answer.get("clique"), "shape": answer.get("shape")}
        for answer in transcript["answers"]
    ]
    return {
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


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("extra", EXTRA_ROWS, ids=range(len(EXTRA_ROWS)))
@pytest.mark.parametrize("method", METHODS)
def test_one_more_record_changes_no_shape(
    method: str, extra: list[str], people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = people_rows(60)
    before = shape_of(rows, method, people_schema, tmp_path / "A", capsys)
    after = shape_of([*rows[:20], extra, *rows[20:]], method, people_schema, tmp_path / "B", capsys)
    assert before["code"] == 0
    assert before == after


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize(
    "name", ["P00003", "new", "", " new", "9" * 5000], ids=["theirs", "new", "none", "blank", "long"]
)
@pytest.mark.parametrize("method", METHODS)
def test_one_more_person_changes_no_shape(
    method: str, name: str, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole person of 1, 7 or 100 rows, odd cells and short records among them, somewhere in the table."""
    document = json.loads(people_schema.read_text())
    document["margent"]["unit"] = {"field": "id", "maxRows": 3}
    people_schema.write_text(json.dumps(document))
    rows = people_rows(60)
    before = shape_of(rows, method, people_schema, tmp_path / "A", capsys)
    assert before["code"] == 0
    for count in (1, 7, 100):
        person = [[*(EXTRA_ROWS[place % len(EXTRA_ROWS)] + [""] * 4)[:4], name] for place in range(count)]
        table = [*rows[:20], *person[::2], *rows[20:40], *person[1::2], *rows[40:]]
        assert shape_of(table, method, people_schema, tmp_path / str(count), capsys) == before
