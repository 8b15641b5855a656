"""The measurements folder: exact round trip, and a typed refusal of whatever was altered."""

from __future__ import annotations

import json
import shutil
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent import Budget, Category, Integer, Schema, read_release, synthesize
from margent.errors import TranscriptError
from margent.release.measurements import VERSION, measurement_files, read_measurements
from tests.conftest import SHARED  # noqa: F401  (the import shows that tests are a package)

SCHEMA = Schema([Category("sex", ["F", "M"]), Integer("age", 0, 30), Category("<b>x</b>", ["1", "2"])], unit="row")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow as pa

    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "sex": pa.array(np.array(["F", "M"])[rng.integers(0, 2, 300)]),
            "age": pa.array(rng.integers(0, 31, 300)),
            "<b>x</b>": pa.array(np.array(["1", "2"])[rng.integers(0, 2, 300)]),
        }
    )
    release = synthesize(table, SCHEMA, budget=Budget(epsilon=4), seed=1)
    return release.save(tmp_path_factory.mktemp("release") / "OUT")


def test_round_trip_is_exact(folder: Path) -> None:
    transcript = read_measurements(folder / "measurements")
    files = {path.name: path.read_bytes() for path in (folder / "measurements").iterdir()}
    assert measurement_files(transcript) == files
    assert all(isinstance(charge.cost, Fraction) for charge in transcript.charges)


def test_the_documented_snippet_reads_it(folder: Path) -> None:
    facts = json.loads((folder / "measurements" / "transcript.json").read_text())
    integers = np.fromfile(folder / "measurements" / "answers.i64", dtype="<i8")
    transcript = read_measurements(folder / "measurements")
    assert facts["integers"]["count"] == integers.size
    for answer, read in zip(facts["answers"], transcript.answers, strict=True):
        if answer["kind"] == "marginal":
            size = int(np.prod(answer["shape"]))
            table = integers[answer["offset"] : answer["offset"] + size].reshape(answer["shape"])
            assert (table == read.counts).all()  # type: ignore[union-attr]


def test_release_is_read_back_with_budget_and_options(folder: Path) -> None:
    _, budget, summary = read_release(folder)
    assert budget == Budget(epsilon=4)
    assert summary["seed"] == 1


def test_hostile_names_are_escaped_on_the_page(folder: Path) -> None:
    page = (folder / "release.html").read_text()
    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize("file", ["summary.json", "measurements/transcript.json", "measurements/answers.i64"])
def test_an_absent_file_is_named(file: str, folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / file).unlink()
    with pytest.raises(TranscriptError, match=Path(file).name):
        read_release(copy)


def test_another_version_is_refused_with_the_next_step(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / "measurements" / "transcript.json"
    path.write_text(path.read_text().replace(f'"version": {VERSION}', '"version": 99'))
    with pytest.raises(TranscriptError, match="upgrade Margent"):
        read_release(copy)


def test_a_file_of_version_1_is_read_and_its_unit_is_a_row(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / "measurements" / "transcript.json"
    document = json.loads(path.read_text())
    document["version"] = 1
    for charge in document["charges"]:
        assert charge.pop("personRows") is None
    path.write_text(json.dumps(document))
    older, newer = read_measurements(path.parent), read_measurements(folder / "measurements")
    assert older.charges == newer.charges
    assert {charge.person_rows for charge in older.charges} == {None}


def test_charges_for_another_unit_than_the_schemas_are_refused(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / "measurements" / "transcript.json"
    document = json.loads(path.read_text())
    document["charges"][0]["personRows"] = 2
    path.write_text(json.dumps(document))
    with pytest.raises(TranscriptError, match="damaged or altered"):
        read_measurements(path.parent)


@pytest.mark.parametrize("kind", ["marginal", "interaction", "scores"])
@pytest.mark.parametrize("both", [False, True], ids=["the answer", "answer and charge"])
def test_an_answer_is_what_its_charge_bought(kind: str, both: bool, folder: Path, tmp_path: Path) -> None:
    """Of other columns, or of columns that are none (whatever its charge says): refused before it is used."""
    copy = Path(shutil.copytree(folder / "measurements", tmp_path / "copy"))
    path = copy / "transcript.json"
    document = json.loads(path.read_text())
    answer = next(answer for answer in document["answers"] if answer["kind"] == kind)
    charge = document["charges"][answer["charge"]]
    read_measurements(copy)
    if kind == "scores":
        answer["cliques"][0] = answer["cliques"][0][:1] if both else answer["cliques"][1]
        charge["cliques"] = answer["cliques"] if both else charge["cliques"]
    elif both:
        answer["clique"][0] = "nobody"
        charge["cliques"] = [answer["clique"]]
    else:
        charge["cliques"] = [["nobody"]]
    path.write_text(json.dumps(document))
    with pytest.raises(TranscriptError, match="damaged or altered"):
        read_measurements(copy)


@pytest.mark.parametrize(
    "written", ["1e9999999", "1e-9999999", "1.5", " 1", "1_000", "1/0", "1/00", "", "٣", "-", "9" * 5000]
)
def test_a_number_is_written_in_digits_alone(written: str, folder: Path, tmp_path: Path) -> None:
    """Ten characters could stand for a number of millions of digits: seconds and gigabytes before any refusal."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / "measurements" / "transcript.json"
    for place in ("answers", "charges"):
        document = json.loads(path.read_text())
        document[place][0]["variance" if place == "answers" else "cost"] = written
        path.write_text(json.dumps(document))
        started = time.process_time()
        with pytest.raises(TranscriptError, match="damaged or altered"):
            read_measurements(path.parent)
        assert time.process_time() - started < 1
        shutil.copy(folder / "measurements" / "transcript.json", path)


def test_a_flipped_integer_is_noticed(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / "measurements" / "answers.i64"
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    with pytest.raises(TranscriptError, match="checksum"):
        read_release(copy)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_altered_transcripts_give_typed_errors_or_read(data: st.DataObject, folder: Path) -> None:
    """Any one value of the JSON replaced by any other small JSON value: read, or refused by a typed error."""
    import tempfile

    document = json.loads((folder / "measurements" / "transcript.json").read_text())
    spot = document
    while True:
        keys = sorted(spot) if isinstance(spot, dict) else list(range(len(spot)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(spot[key], dict | list) and spot[key] and data.draw(st.booleans()):
            spot = spot[key]
            continue
        spot[key] = data.draw(
            st.none()
            | st.booleans()
            | st.integers(-3, 2**65)
            | st.text(max_size=3)
            | st.just([])
            | st.just({})
            | st.just("1/0")
        )
        break
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "transcript.json").write_text(json.dumps(document))
        (Path(name) / "answers.i64").write_bytes((folder / "measurements" / "answers.i64").read_bytes())
        said = None
        try:
            read_measurements(Path(name))
        except TranscriptError as error:
            said = str(error)
    assert said is None or "transcript.json" in said or "answers.i64" in said
