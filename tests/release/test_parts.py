"""Tables of many blocks: the same bytes however they are made, in as many files as asked, whole or absent."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margent
from margent import Budget, read_release, synthesize
from margent.cli import run
from margent.errors import PlanError, TableError, UsageError
from margent.pipeline import from_transcript
from margent.release.parts import Parts
from margent.release.release import Release
from margent.release.room import require_room, row_bytes
from margent.release.summary import closeness
from margent.schema.read import schema_from_json
from margent.synthesizers import blocks as module
from margent.synthesizers.blocks import Blocks
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.peaks import STEADY, alone

ROWS = 2500
HERE = os.environ | {"PYTHONPATH": str(Path(margent.__file__).parent.parent)}


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    table = write_csv(folder / "t.csv", people_rows(400))
    return synthesize(table, schema_from_json(SCHEMA), budget=Budget(20), rows=10, seed=1).save(folder / "OUT")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of at most 600 records and row groups of 128."""
    monkeypatch.setattr(module, "MOST_ROWS", 600)
    monkeypatch.setattr("margent.release.synthetic.GROUP_ROWS", 128)


def made(bought: Path, rows: int = ROWS, kind: str = "parquet", **options: Any) -> Release:
    transcript, budget, _ = read_release(bought)
    return from_transcript(transcript, budget=budget, synthesizer="descent", rows=rows, seed=3, kind=kind, **options)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv", "csv.gz"])
def test_the_same_bytes_whatever_the_number_of_workers(
    kind: str, bought: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for workers in (1, 2, 5):
        monkeypatch.setattr(module, "threads", lambda workers=workers: workers)
        found.append(digests(made(bought, kind=kind).save(tmp_path / str(workers))))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == (11 if kind in ("parquet", "feather") else 7)


def test_parts_are_the_table_and_the_table_is_the_blocks(bought: Path, tmp_path: Path) -> None:
    release = made(bought)
    out = release.save(tmp_path / "OUT")
    names = [f"part-{number:05d}.parquet" for number in range(5)]
    assert sorted(path.name for path in (out / "synthetic.parquet").iterdir()) == names
    parts = [pq.read_table(out / "synthetic.parquet" / name) for name in names]
    assert [part.num_rows for part in parts] == [500] * 5
    table = pa.concat_tables(parts)
    assert table.to_pydict() == release.table.to_pydict()
    assert table.to_pydict() == pa.concat_tables(list(release.blocks())).to_pydict()
    assert release.block(3).to_pydict() == parts[3].to_pydict()
    assert len(set(table["id"].to_pylist())) == ROWS
    package = json.loads((out / "datapackage.json").read_text())
    assert package["resources"][0]["path"] == [f"synthetic.parquet/{name}" for name in names]
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["file"], summary["parts"], summary["rows"]) == ("synthetic.parquet", 5, ROWS)


def test_counts_come_from_the_pass_that_writes(bought: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing is what takes time: every block is drawn once, and what is said of them is true."""
    drawn: list[int] = []
    genuine = module.drawn_block

    def noted(model: Any, rows: int, seed: int, index: int, *rest: Any) -> Any:
        drawn.append(index)
        return genuine(model, rows, seed, index, *rest)

    monkeypatch.setattr(module, "drawn_block", noted)
    release = made(bought)
    release.save(tmp_path / "OUT")
    said = release.summary["oneWays"]["columns"]
    assert sorted(drawn) == [0, 1, 2, 3, 4]
    again = made(bought)
    assert said == again.summary["oneWays"]["columns"] == closeness(again.transcript, again.counts)
    codes = again.codes
    for place, name in enumerate(again.transcript.domain.names):
        assert (
            again.counts.columns[name].tolist()
            == np.bincount(codes[:, place], minlength=again.transcript.domain.sizes[place]).tolist()
        )


def test_text_stays_one_file_unless_parts_are_asked_for(bought: Path, tmp_path: Path) -> None:
    one = made(bought, kind="csv").save(tmp_path / "one")
    many = made(bought, kind="csv").save(tmp_path / "many", rows_per_file=700)
    files = sorted((many / "synthetic.csv").iterdir())
    assert [path.name for path in files] == [f"part-{number:05d}.csv" for number in range(4)]
    texts = [path.read_text().splitlines() for path in files]
    assert [len(text) - 1 for text in texts] == [700, 700, 700, 400]
    whole = (one / "synthetic.csv").read_text().splitlines()
    assert [text[0] for text in texts] == 4 * [whole[0]]
    assert [line for text in texts for line in text[1:]] == whole[1:]


@pytest.mark.parametrize("rows_per_file", [1, 499, 500, 501, 1000, 2499, 2500, 10**9])
def test_files_have_as_many_rows_as_asked_for(rows_per_file: int, bought: Path, tmp_path: Path) -> None:
    release = made(bought)
    out = release.save(tmp_path / "OUT", rows_per_file=rows_per_file)
    path = out / "synthetic.parquet"
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    rows = [pq.read_metadata(file).num_rows for file in files]
    assert rows[:-1] == [rows_per_file] * (len(files) - 1)
    assert sum(rows) == ROWS
    if len(files) < 10:
        assert pa.concat_tables([pq.read_table(file) for file in files]).to_pydict() == release.table.to_pydict()


@settings(deadline=None)
@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_files_cover_all_rows(rows: int, rows_per_file: int) -> None:
    if -(-rows // rows_per_file) > 100_000:
        with pytest.raises(UsageError, match="rows a file"):
            Parts.of(Blocks.of(rows, 16, 0), "parquet", rows_per_file)
        return
    parts = Parts.of(Blocks.of(rows, 16, 0), "parquet", rows_per_file)
    assert (parts.files - 1) * rows_per_file <= max(rows - 1, 0) < max(parts.files * rows_per_file, 1)
    assert len(set(parts.paths)) == parts.files == len(parts.paths)
    assert list(parts.paths) == sorted(parts.paths)


def test_no_rows_a_file_is_refused(bought: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        made(bought).save(tmp_path / "OUT", rows_per_file=0)
    assert list(tmp_path.iterdir()) == []


def test_small_tables_are_one_file_as_before(bought: Path, tmp_path: Path) -> None:
    out = made(bought, rows=600).save(tmp_path / "OUT")
    assert (out / "synthetic.parquet").is_file()
    assert "parts" not in json.loads((out / "summary.json").read_text())
    assert json.loads((out / "datapackage.json").read_text())["resources"][0]["path"] == "synthetic.parquet"


def test_conditions_draw_block_by_block_and_write_one_file(bought: Path, tmp_path: Path) -> None:
    release = made(bought, where=["sex=F"], kind="csv")
    assert release.rows == ROWS
    out = release.save(tmp_path / "OUT")
    read = pyarrow.csv.read_csv(out / "synthetic.csv")
    assert set(read["sex"].to_pylist()) == {"F"}
    assert read.num_rows == ROWS


def test_the_command_line_writes_parts_and_reads_them(bought: Path, tmp_path: Path) -> None:
    out = tmp_path / "OUT"
    assert run(["resample", str(bought), "--rows", "2500", "--seed", "3", "--format", "parquet",
                "--rows-per-file", "900", "-q", "-o", str(out)]) == 0  # fmt: skip
    assert len(list((out / "synthetic.parquet").iterdir())) == 3
    again = tmp_path / "AGAIN"
    assert (
        run(["resample", str(out), "--rows", "2500", "--seed", "3", "--rows-per-file", "900", "-q", "-o", str(again)])
        == 0
    )
    assert digests(again / "synthetic.parquet") == digests(out / "synthetic.parquet")
    assert run(["query", str(out), "sex,work"]) == 0
    schema, table = tmp_path / "s.json", write_csv(tmp_path / "t.csv", people_rows(300))
    schema.write_text(json.dumps(SCHEMA))
    assert run(["evaluate", str(table), str(out), "--schema", str(schema), "--no-learning", "-q",
                "-o", str(tmp_path / "INTERNAL")]) == 0  # fmt: skip


def test_a_full_disk_leaves_nothing(bought: Path, tmp_path: Path) -> None:
    """Each part is small, so the limit stops the first part, and the text of the one file in the middle."""
    place = tmp_path / "place"
    place.mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for kind, limit in (("parquet", 3000), ("csv", 20_000), ("csv", 60_000)):
            release = made(bought, kind=kind)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
            with pytest.raises(TableError, match="cannot be written"):
                release.save(place / "OUT")
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert list(place.iterdir()) == []
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


KILLED = """
import sys
from margent import read_release
from margent.pipeline import from_transcript
from margent.synthesizers import blocks
blocks.MOST_ROWS = 600
transcript, budget, _ = read_release(sys.argv[1])
release = from_transcript(transcript, budget=budget, synthesizer="descent", rows=10**6, seed=3, kind="parquet")
print("ready", flush=True)
release.save(sys.argv[2])
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_an_end_in_the_middle_leaves_no_folder(how: signal.Signals, bought: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    program = [sys.executable, "-c", KILLED, str(bought), str(place / "OUT")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=HERE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        while not list(place.glob(".OUT*/synthetic.parquet/part-00002.parquet")):
            time.sleep(0.01)
        process.send_signal(how)
        assert process.wait(timeout=60) != 0
    assert not (place / "OUT").exists()
    # Nothing runs after a kill: what is left then is hidden, under a temporary name.
    assert [path.name[0] for path in place.iterdir()] == ([] if how == signal.SIGINT else ["."])


def test_a_disk_without_room_is_refused_before(bought: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_from_json(SCHEMA)
    for kind in ("parquet", "csv", "csv.gz"):
        path = made(bought, rows=600, kind=kind).save(tmp_path / kind) / f"synthetic.{kind}"
        assert 0.3 * path.stat().st_size / 600 < row_bytes(schema, kind) < 3 * path.stat().st_size / 600
    free = int(10_000 * row_bytes(schema, "csv"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 0, free))
    require_room(tmp_path / "OUT", schema, 9_900, "csv")
    with pytest.raises(PlanError, match=r"10,100 rows take about .* free: ask for fewer rows"):
        require_room(tmp_path / "OUT", schema, 10_100, "csv")
    with pytest.raises(PlanError, match="free"):
        made(bought, rows=20_000, kind="csv").save(tmp_path / "OUT")
    assert not (tmp_path / "OUT").exists()
    table, file = write_csv(tmp_path / "t.csv", people_rows(300)), tmp_path / "s.json"
    file.write_text(json.dumps(SCHEMA))
    asked = ["synthesize", str(table), "--schema", str(file), "--epsilon", "1", "--single-release", "-q"]
    monkeypatch.setattr("margent.pipeline.measure", lambda *_, **__: pytest.fail("spent before the refusal"))
    assert run([*asked, "--rows", "1000000", "-o", str(tmp_path / "OUT")]) == 5
    asked[1] = str(table.rename(tmp_path / "t.tab"))  # what is written of it is text, which takes more than Parquet
    assert run([*asked, "--rows", "12000", "-o", str(tmp_path / "OUT")]) == 5
    for disk in (FileNotFoundError(errno.ENOENT, "x"), OSError(errno.ENOSYS, "x")):

        def unknown(path: Any, disk: OSError = disk) -> Any:
            raise disk

        monkeypatch.setattr(shutil, "disk_usage", unknown)
        require_room(tmp_path / "OUT", schema, 10**11, "csv")


PEAK = (
    """
import sys
from margent import read_release
from margent.pipeline import from_transcript
from margent.synthesizers import blocks
blocks.MOST_ROWS = 50_000
""",
    """
transcript, budget, _ = read_release(sys.argv[1])
rows = int(sys.argv[2])
release = from_transcript(transcript, budget=budget, synthesizer="descent", rows=rows, seed=3, kind="parquet")
release.save(sys.argv[3])
""",
)
KEPT = """
drawn, kept = blocks.drawn_block, []
blocks.drawn_block = lambda *block: kept.append(drawn(*block)) or kept[-1]
"""


@pytest.mark.parametrize("planted", ["", KEPT], ids=["as it is", "all blocks kept"])
def test_memory_follows_the_block_and_not_the_rows(planted: str, bought: Path, tmp_path: Path) -> None:
    """Twenty blocks against a hundred: the codes of the others alone, held at once, are 64 MB and their cells 150."""
    few, many = (
        alone(planted.join(PEAK), str(bought), str(rows), str(tmp_path / str(rows)), allocators=STEADY).peak
        for rows in (1_000_000, 5_000_000)
    )
    assert (many < few + 15 * 2**20) == (not planted), f"{(many - few) / 2**20:.0f} MiB more"
