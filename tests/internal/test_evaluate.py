"""`margent evaluate`, `inspect` and `sweep`: what they write, where they refuse to, and what they never lose."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margent.cli import run
from margent.errors import TranscriptError, UsageError
from margent.internal.evaluation import evaluate
from margent.internal.inspection import inspect
from margent.internal.label import LABEL, refuse_release, save_internal
from margent.internal.reading import given
from margent.internal.sweep import sweep
from margent.metrics.marginals import MarginalDistance
from margent.metrics.registry import METRICS
from margent.schema.fields import Boolean, Category, Date, Identifier, Integer, Number, Schema
from margent.schema.read import read_schema
from margent.tables.options import ReadOptions
from tests.conftest import people_rows, write_csv

FILES = {"INTERNAL-evaluation.json", "INTERNAL-evaluation.html"}
FEW = (MarginalDistance(1, "tvd"), MarginalDistance(2, "tvd"))


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(finite(each) for each in value.values())
    if isinstance(value, list):
        return all(finite(each) for each in value)
    return not isinstance(value, float) or math.isfinite(value)


@pytest.fixture
def release(people_csv: Path, people_schema: Path, tmp_path: Path) -> Path:
    out = tmp_path / "OUT"
    code = run(
        ["synthesize", str(people_csv), "--schema", str(people_schema), "--epsilon", "5", "--single-release",
         "--seed", "1", "-o", str(out), "-q"]
    )  # fmt: skip
    assert code == 0
    return out


def test_the_command_writes_internal_files_and_says_so(
    release: Path, people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, out = write_csv(tmp_path / "other.csv", people_rows(150, 9)), tmp_path / "INTERNAL"
    capsys.readouterr()
    code = run(
        ["evaluate", str(people_csv), str(release), str(other), "--schema", str(people_schema), "-o", str(out),
         "--no-learning"]
    )  # fmt: skip
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    assert said.out.startswith(LABEL)
    assert "not covered by the promise" in said.out
    assert {path.name for path in out.iterdir()} == FILES
    if os.name != "nt":
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
    text = (out / "INTERNAL-evaluation.json").read_text()
    document = json.loads(text)
    assert document["label"] == LABEL
    assert finite(document)
    assert [table["rows"] for table in document["tables"]][:2] == [400, 400]
    assert document["tables"][3]["rows"] == 150
    assert document["tables"][2]["release"]["epsilon"] == "5"
    assert {metric["key"] for metric in document["metrics"]} == {
        metric.key for metric in METRICS if not metric.key.startswith("learning")
    }
    page = (out / "INTERNAL-evaluation.html").read_text()
    assert page.count(LABEL) == 1
    assert page.count('class="tag">INTERNAL') >= 6
    assert "nan" not in page.lower().replace("nance", "")
    for sentence in document["tables"][2]["release"]["promise"]:
        assert sentence.split("'")[0][:40] in page


def test_the_headline_can_be_recomputed_from_the_json(people_csv: Path, people_schema: Path, tmp_path: Path) -> None:
    other = write_csv(tmp_path / "other.csv", people_rows(150, 9))
    made = evaluate(people_csv, {"other": other}, read_schema(people_schema), metrics=FEW)
    figures = made.document["figures"]
    ones = np.mean([entry["distances"] for entry in figures["oneWays"]], axis=0)
    pairs = np.mean(figures["pairs"]["distances"], axis=1)
    assert list(made.scores["tvd-1"].values()) == pytest.approx(ones.tolist(), abs=1e-5)
    assert list(made.scores["tvd-2"].values()) == pytest.approx(pairs.tolist(), abs=1e-4)
    assert list(made.scores["tvd-1"]) == ["real rows resampled", "exact columns, independent", "other"]


def test_scores_are_the_same_in_every_run(people_csv: Path, people_schema: Path) -> None:
    metrics = [metric for metric in METRICS if not metric.key.startswith("learning")]
    runs = [evaluate(people_csv, [people_csv], read_schema(people_schema), metrics=metrics).document for _ in range(2)]
    assert json.dumps(runs[0]) == json.dumps(runs[1])


@pytest.mark.parametrize("inside", ["", "INTERNAL", "measurements/INTERNAL"])
@pytest.mark.parametrize("command", ["evaluate", "inspect", "sweep"])
def test_nothing_internal_is_written_inside_a_release(
    command: str, inside: str, release: Path, people_csv: Path, people_schema: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(release.rglob("*"))
    extra = {"evaluate": [str(people_csv)], "inspect": [], "sweep": ["--epsilon", "1", "--on-public-data"]}[command]
    code = run([command, str(people_csv), *extra, "--schema", str(people_schema), "-o", str(release / inside)])
    assert code == 2
    assert "inside the release" in capsys.readouterr().err
    assert sorted(release.rglob("*")) == before


def test_a_link_into_a_release_is_still_inside_it(release: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(release)
    with pytest.raises(UsageError, match="inside the release"):
        refuse_release(tmp_path / "link" / "INTERNAL")
    with pytest.raises(UsageError, match="exists already"):
        refuse_release(tmp_path)


def test_a_release_command_takes_no_internal_folder(people_csv: Path, people_schema: Path, tmp_path: Path) -> None:
    evaluate(people_csv, [people_csv], read_schema(people_schema), metrics=FEW).save(tmp_path / "INTERNAL")
    assert run(["resample", str(tmp_path / "INTERNAL"), "-o", str(tmp_path / "OUT2")]) == 3
    assert not (tmp_path / "OUT2").exists()


@pytest.mark.parametrize(
    "file", ["..", ".", "", "../t.csv", "summary.json", "synthetic.csv/..", None, 5, "synthetic.txt"]
)
def test_a_release_s_table_lies_in_it(file: object, release: Path, people_csv: Path, people_schema: Path) -> None:
    """Where its summary names something else, that is not read as a table: the folder above least of all."""
    summary = json.loads((release / "summary.json").read_text())
    (release / "summary.json").write_text(json.dumps(summary | {"file": file}))
    with pytest.raises(TranscriptError, match="does not name the synthetic table beside it"):
        given(release, ReadOptions())


def test_a_release_s_promise_is_that_of_its_charges(release: Path, people_csv: Path, people_schema: Path) -> None:
    """Whatever its summary says in words: a forger's would stand on the page as if they had been checked."""
    path = release / "summary.json"
    honest = json.loads(path.read_text())
    for forged in (["Everybody is protected perfectly."], "words", None):
        path.write_text(json.dumps(honest | {"promise": forged}))
        made = evaluate(people_csv, [release], read_schema(people_schema), metrics=FEW)
        assert made.document["tables"][2]["release"]["promise"] == honest["promise"]
    path.write_text(json.dumps(honest | {"where": ["sex=F"]}))
    assert given(release, ReadOptions()).summary["promise"][-1].startswith("This table holds only records with sex=F:")
    for odd in (["Protected: everybody."], ["sex=F", 1], "sex=F", 5, [None]):
        path.write_text(json.dumps(honest | {"where": odd}))
        with pytest.raises(TranscriptError, match="conditions"):
            given(release, ReadOptions())


@pytest.mark.parametrize("what", ["link", "pipe", "folder with a link", "folder with a pipe"])
def test_a_release_s_table_is_no_link_or_pipe(what: str, release: Path, people_csv: Path) -> None:
    table = release / "synthetic.csv"
    table.unlink()
    if what.startswith("folder"):
        table.mkdir()
        table = table / "part-00000.csv"
    if what.endswith("link"):
        table.symlink_to(people_csv)
    else:
        os.mkfifo(table)
    with pytest.raises(TranscriptError, match="does not name the synthetic table beside it"):
        given(release, ReadOptions())


def test_a_release_is_given_through_a_link(release: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(release)
    assert given(tmp_path / "link", ReadOptions()).table == tmp_path / "link" / "synthetic.csv"


def test_internal_files_bear_the_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="INTERNAL"):
        save_internal(tmp_path / "X", {"summary.json": b""})
    assert not (tmp_path / "X").exists()


def test_columns_absent_on_either_side_are_left_out_and_named(
    people_csv: Path, people_schema: Path, tmp_path: Path
) -> None:
    rows = [row[:2] + row[3:4] for row in people_rows(100, 3)]
    short = write_csv(tmp_path / "short.csv", rows, ["sex", "work", "since"])
    made = evaluate(people_csv, [short, people_csv], read_schema(people_schema), metrics=FEW).document
    assert made["notCompared"] == ["age"]
    assert [table["absent"] for table in made["tables"][2:]] == [["age"], []]
    assert [one["name"] for one in made["columns"]] == ["sex", "work", "since"]
    turned = evaluate(short, [people_csv], read_schema(people_schema), metrics=FEW).document
    assert turned["absentFromReal"] == ["age"]
    alone = write_csv(tmp_path / "none.csv", [["P1"]], ["id"])
    with pytest.raises(UsageError, match="share no column"):
        evaluate(people_csv, [alone], read_schema(people_schema), metrics=FEW)


@pytest.mark.parametrize("real", [0, 1, 60])
@pytest.mark.parametrize("other", [0, 1, 60])
def test_tables_of_any_length_have_a_page(real: int, other: int, people_schema: Path, tmp_path: Path) -> None:
    one = write_csv(tmp_path / "one.csv", people_rows(real))
    two = write_csv(tmp_path / "two.csv", people_rows(other, 2))
    made = evaluate(one, [two], read_schema(people_schema), learning=False)
    assert finite(made.document)
    assert all(score["status"] != "failed" for metric in made.document["metrics"] for score in metric["scores"])
    made.save(tmp_path / "I")
    assert {path.name for path in (tmp_path / "I").iterdir()} == FILES


def test_a_table_with_columns_of_missing_constant_and_unseen_values(tmp_path: Path) -> None:
    """The published edge case: all-missing, constant and out-of-list columns, an empty and an identical table."""
    schema = Schema(
        [Integer("a", 1, 3), Category("b", ["x", "y", "z"]), Integer("c", 0, 9), Integer("d", 0, 9)], unit="row"
    )
    header = ["a", "b", "c", "d"]
    rows = [["1", "x", "", "5"], ["2", "y", "", "5"], ["1", "x", "", "5"], ["3", "z", "", "5"]]
    real = write_csv(tmp_path / "real.csv", rows, header)
    tables = [
        write_csv(tmp_path / "unseen.csv", [["2", "x", "1", "5"], ["2", "q", "", "5"]], header),
        write_csv(tmp_path / "empty.csv", [], header),
        write_csv(tmp_path / "copy.csv", rows, header),
    ]
    made = evaluate(real, tables, schema, learning=False)
    assert finite(made.document)
    assert made.scores["tvd-2"]["copy.csv"] == 0
    assert made.scores["tvd-1"]["empty.csv"] == 1
    assert all(score["status"] != "failed" for metric in made.document["metrics"] for score in metric["scores"])
    made.save(tmp_path / "I")


def test_frames_and_equal_names() -> None:
    schema = Schema([Integer("a", 0, 3), Category("b", ["x", "y"])], unit="row")
    frame = pa.table({"a": [0, 1, 2, 3, None], "b": ["x", "y", "x", "y", "x"]})
    made = evaluate(frame, [frame, frame], schema, metrics=FEW)
    assert list(made.scores["tvd-1"])[2:] == ["table", "table (2)"]


def test_inspection_counts_what_a_plain_loop_counts(tmp_path: Path) -> None:
    schema = Schema(
        [
            Integer("age", 0, 99, bins={"width": 10}, special=["999"], missing_values=["", "?"]),
            Number("dose", 0.5, 2, bins=3, required=True),
            Category("kind", ["a", "b"], unlisted={"to": "b"}),
            Boolean("flag", true_values=["yes"], false_values=["no"]),
            Date("day", "2020-01-01", "2020-12-31", bins="month"),
            Identifier("id"),
        ],
        unit="row",
    )
    header = ["age", "dose", "kind", "flag", "day", "id"]
    rows = [
        ["5", "1", "a", "yes", "2020-05-01", "1"],
        ["-3", "0.1", "b", "no", "2019-12-31", "2"],
        ["120", "7", "c", "maybe", "2021-01-01", "3"],
        ["999", "x", "", "", "2020-02-30", "4"],
        ["?", "2", "a", "yes", "", "5"],
        ["", "0.5", "a", "yes", "2020-12-31", "6"],
        ["old", "1.5", "A", "yes", "2022-01-01", "7"],
    ]
    table = write_csv(tmp_path / "t.csv", rows, header)
    made = inspect(table, schema)
    found = {column["column"]: column for column in made.document["columns"]}

    def of(name: str) -> tuple[int, ...]:
        keys = ("missing", "special", "unlisted", "clippedBelow", "clippedAbove")
        return tuple(found[name][key] for key in keys)

    assert of("age") == (2, 1, 1, 1, 1)
    assert of("dose") == (0, 0, 1, 1, 1)
    assert of("kind") == (1, 0, 2, 0, 0)
    assert of("flag") == (1, 0, 1, 0, 0)
    assert of("day") == (1, 0, 1, 1, 2)
    assert found["kind"]["used"] == 2
    assert made.document["notModeled"] == ["id"]
    made.save(tmp_path / "I")
    assert {path.name for path in (tmp_path / "I").iterdir()} == {
        "INTERNAL-inspection.json",
        "INTERNAL-inspection.html",
    }


def test_inspection_of_typed_columns_sees_the_same(tmp_path: Path) -> None:
    import datetime

    schema = Schema(
        [
            Integer("age", 0, 99, bins={"width": 10}),
            Number("dose", 0, 1, bins=2),
            Date("day", "2020-01-01", "2020-12-31", bins="month"),
        ],
        unit="row",
    )
    frame = pa.table(
        {
            "age": pa.array([5, -1, 100, 300, None]),
            "dose": [0.5, -0.1, 1.5, float("nan"), None],
            "day": pa.array(
                [datetime.date(2020, 1, 1), datetime.date(2019, 1, 1), datetime.date(2021, 1, 1), None, None]
            ),
        }
    )
    found = {column["column"]: column for column in inspect(frame, schema).document["columns"]}
    assert (found["age"]["clippedBelow"], found["age"]["clippedAbove"], found["age"]["missing"]) == (1, 2, 1)
    assert (found["dose"]["clippedBelow"], found["dose"]["clippedAbove"]) == (1, 1)
    assert (found["day"]["clippedBelow"], found["day"]["clippedAbove"], found["day"]["missing"]) == (1, 1, 2)


@pytest.mark.parametrize("rows", [0, 3])
def test_inspect_command(rows: int, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_csv(tmp_path / "t.csv", people_rows(rows))
    assert run(["inspect", str(table), "--schema", str(people_schema), "-o", str(tmp_path / "I")]) == 0
    assert capsys.readouterr().out.startswith(LABEL)


def test_a_sweep_wants_to_hear_that_the_table_is_public(
    people_csv: Path, people_schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sweep", str(people_csv), "--schema", str(people_schema), "--epsilon", "1,5", "-o", str(tmp_path / "S")]
    assert run(command) == 2
    assert "--on-public-data" in capsys.readouterr().err
    assert not (tmp_path / "S").exists()
    assert run([*command, "--on-public-data", "--method", "independent"]) == 0
    document = json.loads((tmp_path / "S" / "INTERNAL-sweep.json").read_text())
    assert document["epsilons"] == [1.0, 5.0]
    assert all(np.array(metric["means"]).shape == (1, 2) for metric in document["metrics"])
    assert LABEL in (tmp_path / "S" / "INTERNAL-sweep.html").read_text()


def test_a_sweep_of_a_strong_dependence_falls_with_epsilon() -> None:
    """Error at epsilon .05 against 20 on 2,000 rows: noise differs by a factor of 400, so chance cannot turn it."""
    schema = Schema([Category("a", list("abcd")), Category("b", list("abcd"))], unit="row")
    frame = pa.table({"a": list("abcd") * 500, "b": list("abcd") * 500})
    document = sweep(frame, schema, epsilons=["0.05", "20"], methods=["dense"], on_public_data=True).document
    means = document["metrics"][1]["means"][0]
    assert means[1] < means[0] / 2
    with pytest.raises(UsageError, match="on-public-data"):
        sweep(frame, schema, epsilons=["1"], methods=["dense"], on_public_data=False)
    steps: list[str] = []
    with pytest.raises(UsageError, match="no method 'dance'"):
        sweep(frame, schema, epsilons=["1"], methods=["independent", "dance"], on_public_data=True,
              progress=lambda step, share: steps.append(step))  # fmt: skip
    assert not steps  # refused before any run


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "nothing"], "not a modeled column"),
        (["--group", "id"], "not a modeled column"),
        (["--pay-gap", "sex,age"], "three column names"),
        (["--tolerance", "-1"], "--tolerance"),
    ],
)
def test_options_that_are_off(
    options: list[str], words: str, people_csv: Path, people_schema: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    code = run(
        [
            "evaluate",
            str(people_csv),
            str(people_csv),
            "--schema",
            str(people_schema),
            "-o",
            str(tmp_path / "I"),
            *options,
        ]
    )
    assert code == 2
    assert words in capsys.readouterr().err
