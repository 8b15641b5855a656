"""One real measurements folder of each format version there was, written by the Margent of its time: read for ever."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from margent import Budget, from_transcript
from margent.methods import method_named
from margent.release.measurements import VERSION, measurement_files, read_measurements
from margent.version import VERSION as MARGENT

GOLDEN = Path(__file__).parent / "golden"
BUDGETS = {
    1: Budget(2, "1e-6"),
    2: Budget(4, accountant="pure"),
    3: Budget(2, "1e-6"),
    4: Budget(3, "1e-6", delta_for_atoms="1e-7"),
    5: Budget(8, "1e-6"),
}
TABLES = {
    1: "0b00f9ef9284ac6a",
    2: "ab93160f3c35fa16",
    3: "761529396c903593",
    4: "1647c10fab3e1494",
    5: "253ab3f926001912",
}
"""SHA-256 of 50 rows at seed 7, by the minor version below; before its first release they follow the methods."""
MINOR = "0.1"
versions = pytest.mark.parametrize("version", BUDGETS)


def test_every_version_has_its_folder() -> None:
    assert sorted(BUDGETS) == list(range(1, VERSION + 1)) == sorted(int(path.name[1:]) for path in GOLDEN.iterdir())
    for version in BUDGETS:
        assert f'"version": {version}\n' in (GOLDEN / f"v{version}" / "transcript.json").read_text().replace(
            ",\n", "\n"
        )


@versions
def test_a_folder_of_then_is_read_and_makes_a_table_now(version: int) -> None:
    transcript = read_measurements(GOLDEN / f"v{version}")
    method = method_named(transcript.method)
    release = from_transcript(transcript, budget=BUDGETS[version], synthesizer=method.synthesizer.name, rows=50, seed=7)
    assert release.table.column_names == ["sex", "town", "age", "smoker"]
    assert release.rows == 50
    towns = {"Ulm", "Bonn", "Aachen"}
    assert set(release.table["town"].to_pylist()) <= towns | {None}


@versions
def test_it_is_written_in_the_present_format_and_read_back_the_same(version: int, tmp_path: Path) -> None:
    transcript = read_measurements(GOLDEN / f"v{version}")
    files = measurement_files(transcript)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert measurement_files(read_measurements(tmp_path)) == files
    assert (GOLDEN / f"v{version}" / "answers.i64").read_bytes() == files["answers.i64"]


@versions
def test_the_same_bytes_as_when_this_minor_version_began(version: int, tmp_path: Path) -> None:
    if ".".join(MARGENT.split(".")[:2]) != MINOR:
        pytest.fail("a new minor version: tables may differ; write its digests here and say so in the changelog")
    transcript = read_measurements(GOLDEN / f"v{version}")
    name = method_named(transcript.method).synthesizer.name
    table = from_transcript(transcript, budget=BUDGETS[version], synthesizer=name, rows=50, seed=7).table
    digest = hashlib.sha256("\n".join(map(str, table.to_pylist())).encode()).hexdigest()
    assert digest[:16] == TABLES[version]
